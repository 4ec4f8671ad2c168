//! W3C Trace Context: a trace that a client began is joined, otherwise one begins here.
//!
//! The proxy stands in the trace with a span id of its own; `otlp` reports its span. A trace that
//! begins here is marked as sampled: applications commonly record exactly what their parent marks,
//! and a proxy put in front of one must not switch its tracing off.

use http::{HeaderMap, HeaderName, HeaderValue};

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

const SAMPLED: u8 = 0b01;
/// Level 2 of the specification; to be kept when it is set.
const RANDOM: u8 = 0b10;

/// The place of one exchange in a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceContext {
    trace: [u8; 32],
    /// Ours: what the app sees as its parent.
    span: [u8; 16],
    /// The client's span, where its trace was joined.
    parent: Option<[u8; 16]>,
    flags: u8,
}

impl TraceContext {
    /// Joins the trace of the request's one valid `traceparent`, or begins one.
    #[must_use]
    pub fn join(headers: &HeaderMap) -> Self {
        let mut values = headers.get_all(TRACEPARENT).iter();
        let only = values.next().filter(|_| values.next().is_none());
        match only.and_then(|value| parse(value.as_bytes())) {
            Some((trace, parent, flags)) => Self {
                trace,
                span: random(),
                parent: Some(parent),
                flags,
            },
            None => Self {
                trace: random(),
                span: random(),
                parent: None,
                flags: SAMPLED,
            },
        }
    }

    /// Puts it into the request for the app. What other systems noted of a trace (`tracestate`)
    /// goes where that trace is not joined.
    pub fn pass_on(&self, headers: &mut HeaderMap) {
        if self.parent.is_none() {
            headers.remove(TRACESTATE);
        }
        headers.insert(TRACEPARENT, self.header_value());
    }

    /// 32 hexadecimal digits, lower case.
    #[must_use]
    pub const fn trace_id(&self) -> [u8; 32] {
        self.trace
    }

    /// 16 hexadecimal digits: our own span.
    #[must_use]
    pub const fn span_id(&self) -> [u8; 16] {
        self.span
    }

    /// The client's span; absent where the trace began here.
    #[must_use]
    pub const fn parent_id(&self) -> Option<[u8; 16]> {
        self.parent
    }

    /// Whether its spans are recorded.
    #[must_use]
    pub const fn is_sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }

    /// The value of `traceparent` for the app.
    #[must_use]
    pub fn header_value(&self) -> HeaderValue {
        let mut value = *b"00-................................-................-00";
        value[3..35].copy_from_slice(&self.trace);
        value[36..52].copy_from_slice(&self.span);
        value[54] = b'0' + self.flags;
        HeaderValue::from_bytes(&value).expect("digits and dashes are a field value")
    }
}

/// Trace id, parent id, and the flags that are kept, of `version-trace-parent-flags`.
fn parse(value: &[u8]) -> Option<([u8; 32], [u8; 16], u8)> {
    let (known, more) = value.split_at_checked(55)?;
    let version = byte(&known[0..2])?;
    // Later versions may append what we do not know; 255 is none.
    let well_ended = if version == 0 {
        more.is_empty()
    } else {
        matches!(more, [] | [b'-', ..])
    };
    let dashes = [2, 35, 52].iter().all(|at| known[*at] == b'-');
    if version == 0xff || !well_ended || !dashes {
        return None;
    }
    let trace: [u8; 32] = known[3..35].try_into().ok()?;
    let flags = byte(&known[53..55])?;
    let parent: [u8; 16] = known[36..52].try_into().ok()?;
    (is_id(&trace) && is_id(&parent)).then_some((trace, parent, flags & (SAMPLED | RANDOM)))
}

/// Lower case hexadecimal, not all zero.
fn is_id(digits: &[u8]) -> bool {
    digits.iter().all(|digit| nibble(*digit).is_some()) && digits.iter().any(|digit| *digit != b'0')
}

fn byte(digits: &[u8]) -> Option<u8> {
    match digits {
        [high, low] => Some(nibble(*high)? << 4 | nibble(*low)?),
        _ => None,
    }
}

const fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

/// An id that no other exchange has; nothing secret.
fn random<const N: usize>() -> [u8; N] {
    let mut digits = [0; N];
    for part in digits.chunks_mut(16) {
        // Never zero, so that no id is.
        let mut bits = fastrand::u64(1..);
        for digit in part {
            *digit = b"0123456789abcdef"[(bits & 15) as usize];
            bits >>= 4;
        }
    }
    digits
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use proptest::prelude::*;

    use super::*;

    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
    const PARENT: &str = "b7ad6b7169203331";

    fn headers(values: &[&str]) -> HeaderMap {
        let values = values
            .iter()
            .map(|value| (TRACEPARENT, value.parse().unwrap()));
        let mut headers: HeaderMap = values.collect();
        headers.insert(TRACESTATE, HeaderValue::from_static("vendor=1"));
        headers
    }

    fn sent(context: &TraceContext) -> String {
        context.header_value().to_str().unwrap().to_owned()
    }

    #[test]
    fn a_valid_parent_is_joined_with_its_flags() {
        for (given, flags) in [
            (format!("00-{TRACE}-{PARENT}-01"), "01"),
            (format!("00-{TRACE}-{PARENT}-00"), "00"),
            (format!("00-{TRACE}-{PARENT}-03"), "03"),
            (format!("00-{TRACE}-{PARENT}-ff"), "03"),
            (format!("01-{TRACE}-{PARENT}-01"), "01"),
            (
                format!("cc-{TRACE}-{PARENT}-01-what-the-future-brings"),
                "01",
            ),
        ] {
            let mut headers = headers(&[&given]);
            let context = TraceContext::join(&headers);
            assert_eq!(&context.trace_id(), TRACE.as_bytes(), "{given}");
            assert_eq!(
                context.parent_id().as_ref().map(|id| &id[..]),
                Some(PARENT.as_bytes())
            );
            assert_eq!(context.is_sampled(), flags != "00");
            let value = sent(&context);
            assert!(value.starts_with(&format!("00-{TRACE}-")), "{value}");
            assert!(value.ends_with(&format!("-{flags}")), "{value} of {given}");
            assert!(!value.contains(PARENT), "a span of our own: {value}");
            context.pass_on(&mut headers);
            assert_eq!(headers["traceparent"], value);
            assert_eq!(headers["tracestate"], "vendor=1");
        }
    }

    #[test]
    fn anything_else_begins_a_trace() {
        let zeros = "0".repeat(32);
        for given in [
            &format!("ff-{TRACE}-{PARENT}-01"),
            &format!("00-{zeros}-{PARENT}-01"),
            &format!("00-{TRACE}-{}-01", &zeros[..16]),
            &format!("00-{}-{PARENT}-01", TRACE.to_uppercase()),
            &format!("00-{TRACE}-{PARENT}-01-more"),
            &format!("00-{TRACE}-{PARENT}-0"),
            &format!("00-{TRACE}-{PARENT}-0x"),
            &format!("0x-{TRACE}-{PARENT}-01"),
            &format!("01-{TRACE}-{PARENT}-01more"),
            &format!("00-{TRACE}_{PARENT}-01"),
            &format!(" 00-{TRACE}-{PARENT}-01"),
            &format!("00-{}g-{PARENT}-01", &TRACE[..31]),
            "",
        ] {
            let mut headers = headers(&[given]);
            let context = TraceContext::join(&headers);
            assert_ne!(&context.trace_id(), TRACE.as_bytes(), "{given}");
            context.pass_on(&mut headers);
            assert!(!headers.contains_key("tracestate"), "{given}");
            assert!(sent(&context).ends_with("-01"));
        }
    }

    #[test]
    fn two_parents_are_none_and_leave_one() {
        let given = format!("00-{TRACE}-{PARENT}-01");
        let mut headers = headers(&[]);
        headers.append(TRACEPARENT, given.parse().unwrap());
        headers.append(TRACEPARENT, given.parse().unwrap());
        let context = TraceContext::join(&headers);
        assert_ne!(&context.trace_id(), TRACE.as_bytes());
        context.pass_on(&mut headers);
        assert_eq!(headers.get_all(TRACEPARENT).iter().count(), 1);
    }

    #[test]
    fn what_we_send_is_valid_and_never_the_same() {
        let context = TraceContext::join(&HeaderMap::new());
        let again = TraceContext::join(&HeaderMap::new());
        assert_ne!(context, again);
        let value = sent(&context);
        let read = Some((context.trace_id(), context.span_id(), SAMPLED));
        assert_eq!(parse(value.as_bytes()), read);
    }

    proptest! {
        #[test]
        fn no_value_makes_it_panic_or_send_nonsense(value in any::<Vec<u8>>()) {
            if let Ok(value) = HeaderValue::from_bytes(&value) {
                let headers = HeaderMap::from_iter([(TRACEPARENT, value)]);
                let sent = TraceContext::join(&headers).header_value();
                prop_assert!(parse(sent.as_bytes()).is_some());
            }
        }
    }
}
