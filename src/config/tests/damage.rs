//! Whatever a file holds: no panic, and every fault points into it.

use proptest::prelude::*;

use super::*;

fn check(text: &str) -> Result<(), TestCaseError> {
    let Err(faults) = parse(text, "t.yaml", Path::new("/nowhere")) else {
        return Ok(());
    };
    prop_assert!(!faults.list().is_empty());
    let places: Vec<_> = faults.list().iter().map(|f| (f.line, f.column)).collect();
    prop_assert!(places.is_sorted(), "{faults}");
    let lines = text.lines().count().max(1);
    for fault in faults.list() {
        // A file that ends too early is at fault behind its last line.
        prop_assert!((1..=lines + 1).contains(&fault.line), "{fault}");
        prop_assert!(fault.column >= 1, "{fault}");
        prop_assert!(!fault.what.contains('\n'), "{fault}");
    }
    Ok(())
}

proptest! {
    #[test]
    fn of_a_configuration_with_something_else_in_it(
        (start, length) in (0..12_000_usize, 0..40_usize),
        other in "[-\\[\\]{}:,&*<>|?!%@'\"#a-z0-9 \n\t\u{e9}\u{2028}]{0,12}",
    ) {
        let text = example::uncommented(&["key", "+"]);
        let chars: Vec<char> = text.chars().collect();
        let start = start.min(chars.len());
        let end = (start + length).min(chars.len());
        let damaged: String =
            chars[..start].iter().copied().chain(other.chars()).chain(chars[end..].iter().copied()).collect();
        check(&damaged)?;
    }

    #[test]
    fn of_anything(text in "\\PC{0,200}") {
        check(&text)?;
    }

    #[test]
    fn of_yaml_punctuation(text in "[-\\[\\]{}:,&*<>|?!%'\"#a \n\t]{0,60}") {
        check(&text)?;
    }
}
