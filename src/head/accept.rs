//! What the client takes: Accept-Encoding (RFC 9110 section 12.5.3), parsed once a request.
//!
//! Nothing here is an error. A member that is not `coding [;q=value]` by the grammar is not used,
//! of two members for one coding the first counts, and a client that takes nothing of ours gets
//! the plain answer, never a 406.

use http::header::{ACCEPT_ENCODING, HeaderMap, HeaderValue};

use super::list;
use crate::codec::Coding;

/// Asks the app for a plain answer, whatever the client said.
pub fn ask_plain(headers: &mut HeaderMap) {
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
}

/// The client's weight of each coding, in thousandths.
///
/// The default is a request without the field: plain, byte-exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Accepts {
    gzip: Weight,
    deflate: Weight,
    brotli: Weight,
    zstd: Weight,
    identity: Weight,
    any: Weight,
}

/// 0..=1000, or absent: the client did not name it.
type Weight = Option<u16>;

impl Accepts {
    /// Reads all Accept-Encoding lines as one list.
    #[must_use]
    pub fn parse(headers: &HeaderMap) -> Self {
        let mut accepts = Self::default();
        for member in list::tokens(headers, ACCEPT_ENCODING) {
            accepts.note(member);
        }
        accepts
    }

    /// A client that takes this coding and refuses plain: who could be answered with it at all.
    #[must_use]
    pub fn only(coding: Coding) -> Self {
        let mut accepts = Self {
            identity: Some(0),
            ..Self::default()
        };
        *accepts.named(coding) = Some(1000);
        accepts
    }

    /// The coding that the client likes best; among those it likes equally the first of `order`.
    ///
    /// `None` where it takes none of them, or named plain with a higher weight than theirs.
    #[must_use]
    pub fn choose(&self, order: &[Coding]) -> Option<Coding> {
        let mut best = None;
        let mut best_weight = 0;
        for &coding in order {
            let weight = self.weight(coding);
            if weight > best_weight {
                (best, best_weight) = (Some(coding), weight);
            }
        }
        // `*` speaks for identity too, as for every coding that is not named.
        let plain = self.identity.or(self.any).unwrap_or(0);
        best.filter(|_| best_weight >= plain)
    }

    /// Whether the client can be sent this coding.
    #[must_use]
    pub fn takes(&self, coding: Coding) -> bool {
        self.weight(coding) > 0
    }

    /// Whether the client said that plain is not acceptable: `identity;q=0`, or `*;q=0` without a
    /// word on identity.
    #[must_use]
    pub fn refuses_identity(&self) -> bool {
        self.identity.or(self.any) == Some(0)
    }

    /// 0 for what is neither named nor covered by `*`.
    fn weight(&self, coding: Coding) -> u16 {
        let named = match coding {
            Coding::Gzip => self.gzip,
            Coding::Deflate => self.deflate,
            Coding::Brotli => self.brotli,
            Coding::Zstd => self.zstd,
        };
        named.or(self.any).unwrap_or(0)
    }

    fn named(&mut self, coding: Coding) -> &mut Weight {
        match coding {
            Coding::Gzip => &mut self.gzip,
            Coding::Deflate => &mut self.deflate,
            Coding::Brotli => &mut self.brotli,
            Coding::Zstd => &mut self.zstd,
        }
    }

    fn note(&mut self, member: &[u8]) {
        let semicolon = memchr::memchr(b';', member);
        let (name, parameter) = member.split_at(semicolon.unwrap_or(member.len()));
        let name = name.trim_ascii_end();
        let slot = match name {
            b"*" => &mut self.any,
            _ if name.eq_ignore_ascii_case(b"identity") => &mut self.identity,
            _ => match str::from_utf8(name).ok().and_then(Coding::from_token) {
                Some(coding) => self.named(coding),
                None => return,
            },
        };
        if slot.is_none() {
            *slot = match semicolon {
                None => Some(1000),
                Some(_) => weight_parameter(&parameter[1..]),
            };
        }
    }
}

/// `q=` and a qvalue (RFC 9110 section 12.4.2), in thousandths.
fn weight_parameter(parameter: &[u8]) -> Option<u16> {
    let [b'q' | b'Q', b'=', value @ ..] = parameter.trim_ascii() else {
        return None;
    };
    let (whole, decimals) = match value {
        [whole] => (whole, &[][..]),
        [whole, b'.', decimals @ ..] if decimals.len() <= 3 => (whole, decimals),
        _ => return None,
    };
    let mut weight = match whole {
        b'0' => 0,
        b'1' => 1000,
        _ => return None,
    };
    for (digit, scale) in decimals.iter().zip([100, 10, 1]) {
        if !digit.is_ascii_digit() {
            return None;
        }
        weight += u16::from(digit - b'0') * scale;
    }
    (weight <= 1000).then_some(weight)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ORDER: [Coding; 3] = [Coding::Zstd, Coding::Brotli, Coding::Gzip];

    fn accepts(lines: &[&str]) -> Accepts {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(ACCEPT_ENCODING, line.parse().expect("a field value"));
        }
        Accepts::parse(&headers)
    }

    fn chosen(line: &str) -> Option<Coding> {
        accepts(&[line]).choose(&ORDER)
    }

    #[test]
    fn the_clients_weights_win_then_the_servers_order() {
        let table: [(&str, Option<Coding>); 41] = [
            ("gzip;q=0.4, br;q=0.6", Some(Coding::Brotli)),
            ("gzip, deflate, br, zstd", Some(Coding::Zstd)),
            ("gzip, br", Some(Coding::Brotli)),
            ("gzip;q=1.0, br;q=0.999", Some(Coding::Gzip)),
            ("gzip;q=0", None),
            ("gzip;q=0.000", None),
            ("gzip;q=0.001", Some(Coding::Gzip)),
            ("gzip, identity", Some(Coding::Gzip)),
            ("identity, gzip", Some(Coding::Gzip)),
            ("identity;q=1, gzip;q=0.5", None),
            ("identity;q=0.5, gzip;q=1.000", Some(Coding::Gzip)),
            ("identity;q=0.5, gzip;q=0.5", Some(Coding::Gzip)),
            ("identity;q=1, *;q=0", None),
            ("identity", None),
            ("identity;q=0", None),
            ("*;q=0, gzip", Some(Coding::Gzip)),
            ("*", Some(Coding::Zstd)),
            ("*;q=0.5", Some(Coding::Zstd)),
            ("*;q=0", None),
            ("gzip, *;q=0.1", Some(Coding::Gzip)),
            ("zstd;q=0, *", Some(Coding::Brotli)),
            ("zstd;q=0, br;q=0, gzip;q=0.5, *;q=1", None),
            ("my-gzip", None),
            ("gzipped, gzi", None),
            ("GZIP", Some(Coding::Gzip)),
            ("x-gzip", Some(Coding::Gzip)),
            ("X-GZip ; Q=0.5", Some(Coding::Gzip)),
            ("x-gzip;q=0, gzip", None),
            ("dcb, dcz, br", Some(Coding::Brotli)),
            ("deflate", None),
            ("br;q=abc", None),
            ("br;q=abc, gzip;q=0.1", Some(Coding::Gzip)),
            ("br;q=2, gzip;q=1.001, zstd;q=-1", None),
            ("br;q=0.1234, zstd;q=, gzip;q", None),
            ("br;level=4, gzip;", None),
            ("br;q=1;x=y", None),
            ("br;q=1., gzip;q=0.", Some(Coding::Brotli)),
            ("gzip;q=0, gzip", None),
            ("", None),
            (" , ,, ", None),
            (",gzip ,", Some(Coding::Gzip)),
        ];
        for (line, expected) in table {
            assert_eq!(chosen(line), expected, "Accept-Encoding: {line}");
        }
    }

    #[test]
    fn all_lines_are_one_list() {
        let both = accepts(&["gzip;q=0.5", "br"]);
        assert_eq!(both.choose(&ORDER), Some(Coding::Brotli));
        assert!(both.takes(Coding::Gzip) && !both.takes(Coding::Zstd));
    }

    #[test]
    fn without_the_field_nothing_is_coded_and_plain_is_welcome() {
        let none = accepts(&[]);
        assert_eq!(none.choose(&ORDER), None);
        assert!(!none.refuses_identity());
        assert!(!accepts(&[""]).refuses_identity());
    }

    #[test]
    fn plain_is_refused_by_name_or_by_star() {
        for (line, refused) in [
            ("identity;q=0, gzip", true),
            ("*;q=0, gzip", true),
            ("*;q=0, identity;q=0.1", false),
            ("identity;q=0.0, *", true),
            ("gzip", false),
            ("identity;q=x, gzip", false),
        ] {
            assert_eq!(accepts(&[line]).refuses_identity(), refused, "{line}");
        }
    }

    #[test]
    fn only_takes_one_coding_and_not_plain() {
        let only = Accepts::only(Coding::Brotli);
        assert_eq!(only.choose(&ORDER), Some(Coding::Brotli));
        assert!(only.refuses_identity());
        assert!(!only.takes(Coding::Gzip));
    }

    #[test]
    fn the_app_is_asked_for_plain_once() {
        let mut headers = HeaderMap::new();
        headers.append(ACCEPT_ENCODING, HeaderValue::from_static("br"));
        headers.append(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        ask_plain(&mut headers);
        let lines: Vec<_> = headers.get_all(ACCEPT_ENCODING).iter().collect();
        assert_eq!(lines, ["identity"]);
    }

    proptest! {
        #[test]
        fn any_bytes_parse(lines in prop::collection::vec(
            prop::collection::vec(any::<u8>(), 0..60), 0..4,
        )) {
            let mut headers = HeaderMap::new();
            for value in lines.iter().filter_map(|line| HeaderValue::from_bytes(line).ok()) {
                headers.append(ACCEPT_ENCODING, value);
            }
            let accepts = Accepts::parse(&headers);
            if let Some(coding) = accepts.choose(&ORDER) {
                prop_assert!(accepts.takes(coding));
            }
        }

        #[test]
        fn near_valid_lists_parse(line in "((gzip|br|zstd|identity|\\*)( ?; ?q=[01](\\.[0-9]{0,4})?)?,? ?){0,6}") {
            let accepts = accepts(&[&line]);
            let best = ORDER.iter().map(|&coding| accepts.weight(coding)).max();
            if let Some(coding) = accepts.choose(&ORDER) {
                prop_assert_eq!(Some(accepts.weight(coding)), best);
            }
        }
    }
}
