//! Files that are no documents, and documents that use all of YAML.

use super::*;
use crate::config::load;

#[track_caller]
fn shown(text: &str) -> String {
    parse(text, "t.yaml", Path::new(""))
        .expect_err("there should be faults")
        .to_string()
}

#[test]
fn a_fault_shows_file_place_path_and_the_line() {
    let faults = parsed("drain: 30\n").unwrap_err();
    assert_eq!(
        faults.to_string(),
        "t.yaml:1:8: drain: 30 has no unit, write 30s (or a time such as 250ms, 30s or 5m)\n    \
         drain: 30\n           ^"
    );
}

#[test]
fn an_empty_file_says_what_it_needs() {
    let what = "t.yaml:1:1: the file is empty, it needs at least listen, upstreams and routes";
    assert_eq!(shown(""), what);
    assert_eq!(shown("# only a comment\n"), what);
    assert_eq!(shown("---\n").lines().next().unwrap(), what);
}

#[test]
fn a_file_that_is_no_mapping_is_one_fault() {
    assert_eq!(
        shown("- a\n- b\n"),
        "t.yaml:1:1: a list does not fit here, write keys and values, such as `key: value`\n    \
         - a\n    ^"
    );
}

#[test]
fn what_every_file_needs_is_missing_at_its_beginning() {
    let faults = parse("drain: 1s\n", "t.yaml", Path::new("")).unwrap_err();
    let paths: Vec<_> = faults
        .list()
        .iter()
        .map(|f| (f.line, f.column, f.path.as_str()))
        .collect();
    assert_eq!(
        paths,
        [(1, 1, "listen"), (1, 1, "routes"), (1, 1, "upstreams")]
    );
}

#[test]
fn broken_yaml_names_the_place_and_what_is_open() {
    let text = "upstreams:\n  app:\n    servers: [demo\nroutes: []\n";
    let shown = shown(text);
    assert!(shown.starts_with("t.yaml:"), "{shown}");
    assert!(shown.contains("upstreams.app.servers"), "{shown}");
    assert!(shown.contains("not YAML from here on: "), "{shown}");
}

#[test]
fn tabs_for_indentation_are_broken_yaml() {
    let shown = shown("listen:\n\t- address: 127.0.0.1:80\n");
    assert!(shown.starts_with("t.yaml:2:"), "{shown}");
    assert!(shown.contains("not YAML"), "{shown}");
}

#[test]
fn a_second_document_is_refused_where_it_begins() {
    let text = format!("{}---\ndrain: 1s\n", completed(""));
    let faults = parse(&text, "t.yaml", Path::new("")).unwrap_err();
    let [fault] = faults.list() else {
        panic!("{faults}")
    };
    assert_eq!((fault.line, fault.column), (9, 1));
    assert!(
        fault.what.starts_with("a second document begins here"),
        "{fault}"
    );
}

#[test]
fn a_document_may_be_marked_as_one() {
    let text = format!("%YAML 1.2\n---\n{}...\n", completed(""));
    parse(&text, "t.yaml", Path::new("")).unwrap();
    parse(
        &format!("\u{feff}{}", completed("")),
        "t.yaml",
        Path::new(""),
    )
    .unwrap();
}

#[test]
fn json_is_yaml() {
    let json = r#"{"listen": [{"address": "127.0.0.1:1"}], "upstreams": {"a": {"servers": ["demo"]}},
        "routes": [{"name": "r", "upstream": "a"}]}"#;
    parse(json, "t.json", Path::new("")).unwrap();
}

#[test]
fn anchors_aliases_and_merge_keys_work() {
    let settings = parsed(
        "defaults:\n  timeouts: &slow { request_body: 2m, response: &long 5m }\n  \
         websocket: { idle_timeout: *long }\nroutes:\n  - &base\n    name: one\n    upstream: app\n    \
         timeouts: { <<: *slow, response: 9m }\n  - <<: *base\n    name: two\n",
    )
    .unwrap();
    let seconds = |d: std::time::Duration| d.as_secs();
    assert_eq!(seconds(settings.defaults.websocket.idle_timeout), 300);
    assert_eq!(
        seconds(settings.routes[1].policy.timeouts.request_body),
        120
    );
    assert_eq!(seconds(settings.routes[1].policy.timeouts.response), 540);
    assert_eq!(settings.routes[1].name, "two");
}

#[test]
fn a_bad_alias_is_a_fault_where_the_alias_stands() {
    only(
        "drain: &x 5s\ndefaults:\n  compress: { min_size: *x }\n",
        "3:25 defaults.compress.min_size: \"5s\" does not fit here, write a size such as 512B, \
         64KiB or 8MiB",
    );
}

#[test]
fn an_unknown_alias_and_a_recursive_one_are_faults() {
    assert!(shown("drain: *nothing\n").contains("t.yaml:1:"));
    let recursive = shown("listen: &a [*a]\n");
    assert!(
        recursive.contains("an alias inside of what it stands for"),
        "{recursive}"
    );
}

#[test]
fn merging_what_is_no_mapping_is_a_fault() {
    let faults = faults("drain: 5s\ndefaults: { <<: [3] }\n");
    assert_eq!(
        faults,
        ["2:18 defaults: `<<` takes a mapping, write `<<: *anchor`"]
    );
}

#[test]
fn aliases_of_aliases_cannot_explode() {
    let mut text = "a: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..9 {
        let inner = vec![format!("*a{}", level - 1); 10].join(", ");
        let _ = writeln!(text, "a{level}: &a{level} [{inner}]");
    }
    assert!(shown(&text).contains("aliases expand to more than 100000 values"));
}

#[test]
fn deep_nesting_is_refused_and_not_a_crash() {
    let nested = |levels| shown(&format!("listen: {}", "[".repeat(levels)));
    assert!(nested(40).contains("nested deeper than 32 levels"));
    assert!(nested(100_000).contains("not YAML from here on"));
    let lines: String = (0..1000)
        .map(|level| format!("{}a:\n", " ".repeat(level)))
        .collect();
    assert!(shown(&lines).contains("nested deeper than 32 levels"));
}

#[test]
fn tags_and_complex_keys_are_refused() {
    assert!(shown("drain: !include other.yaml\n").contains("the tag !include means nothing here"));
    assert!(shown("? [a, b]\n: 5\n").contains("a key has to be a word"));
}

#[test]
fn a_missing_file_is_a_fault_of_the_file() {
    let scratch = Scratch::new();
    let path = scratch.0.join("none.yaml");
    let faults = load(&path).unwrap_err().to_string();
    let begin = format!("{}:1:1: it cannot be read: ", path.display());
    assert!(faults.starts_with(&begin), "{faults}");
}

#[test]
fn bytes_that_are_not_utf8_are_named_by_their_place() {
    let scratch = Scratch::new();
    let path = scratch.write("latin1.yaml", b"drain: 5s\nlog: { level: \xe9 }\n");
    let faults = load(&path).unwrap_err();
    let [fault] = faults.list() else {
        panic!("{faults}")
    };
    assert_eq!((fault.line, fault.column), (2, 15));
    assert_eq!(
        fault.what,
        "byte 24 of the file is not UTF-8, save the file as UTF-8"
    );
}

#[test]
fn windows_line_ends_are_line_ends() {
    only(
        "drain: 30\r\n",
        "1:8 drain: 30 has no unit, write 30s (or a time such as 250ms, 30s or 5m)",
    );
}

#[test]
fn secrets_are_in_no_message() {
    let message = parsed(
        "admin: { adress: 127.0.0.1:1, token: \"s3 cret\" }\ncache:\n  shared:\n    \
         url: http://user:s3cret@host\n    tmeout: 1s\n",
    )
    .unwrap_err()
    .to_string();
    assert!(!message.contains("cret"), "{message}");
    assert!(message.contains("token: ***"), "{message}");
    assert!(message.contains("http://***@host"), "{message}");
}
