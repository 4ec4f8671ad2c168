use super::*;
use crate::config::settings::QueryKey;
use http::HeaderValue;

/// 2023-11-14 22:13:20 GMT, the moment at which all answers here come.
const NOW: Duration = Duration::from_secs(1_700_000_000);

fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + NOW
}

fn after(seconds: u64) -> SystemTime {
    now() + Duration::from_secs(seconds)
}

fn policy() -> Cache {
    Cache {
        enabled: true,
        default_ttl: Duration::ZERO,
        max_object: 1 << 20,
        query: QueryKey::All,
        stale_while_revalidate: Duration::ZERO,
        stale_if_error: Duration::ZERO,
        reuse: true,
        densify: true,
    }
}

/// A head, `name: value | name: value`; `cc` is Cache-Control, `@-60` the date a minute before now.
fn head(fields: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for field in fields
        .split(" | ")
        .filter(|field| !matches!(*field, "" | "-"))
    {
        let (name, value) = field.split_once(": ").expect("a field");
        let name = name.replace("cc", "cache-control");
        let value = match value.strip_prefix('@') {
            Some(seconds) => {
                let seconds: i64 = seconds.parse().expect("seconds");
                let at = NOW.as_secs().checked_add_signed(seconds);
                let at = Duration::from_secs(at.expect("a time"));
                httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + at)
            }
            None => value.to_owned(),
        };
        let value = HeaderValue::from_str(&value).expect("a field value");
        headers.append(
            HeaderName::from_bytes(name.as_bytes()).expect("a name"),
            value,
        );
    }
    headers
}

fn judged_by(
    policy: &Cache,
    asked: &str,
    status: u16,
    said: &str,
) -> Result<Freshness, Unstorable> {
    let (method, asked) = asked.split_once(" | ").unwrap_or((asked, ""));
    let exchange = Exchange {
        method: &method.parse().expect("a method"),
        request: &head(asked),
        status: StatusCode::from_u16(status).expect("a status"),
        response: &head(said),
        asked: now(),
        answered: now(),
    };
    judge(exchange, policy)
}

fn get(said: &str) -> Freshness {
    judged_by(&policy(), "GET", 200, said).expect("storable")
}

fn usage(freshness: &Freshness, asked: &str, seconds: u64) -> Usage {
    let asked = if asked == "-" { "" } else { asked };
    let asked = RequestDirectives::read(&head(&format!("cc: {asked}")));
    freshness.usage(&asked, false, after(seconds))
}

/// The lines of a table, in columns.
fn rows<const N: usize>(table: &str) -> impl Iterator<Item = [&str; N]> {
    let lines = table.lines().filter(|line| !line.is_empty());
    lines.map(|line| {
        let cells: Vec<_> = line.split(';').map(str::trim).collect();
        cells.try_into().expect("as many columns")
    })
}

/// Rule ; what becomes of the answer ; request ; status ; answer.
const STORING: &str = r#"
3 explicit                              ; stored         ; GET                         ; 200; cc: max-age=3600
3 s-maxage                              ; stored         ; GET                         ; 200; cc: s-maxage=1
3 Expires                               ; stored         ; GET                         ; 200; expires: @60
3 heuristic                             ; stored         ; GET                         ; 200; last-modified: @-1000
3 nothing said                          ; stale          ; GET                         ; 200; -
3 a validator is enough                 ; stored         ; GET                         ; 200; etag: "a"
3 HEAD                                  ; method         ; HEAD                        ; 200; cc: max-age=3600
3 POST                                  ; method         ; POST                        ; 200; cc: max-age=3600
3 unknown method                        ; method         ; get                         ; 200; cc: max-age=3600
3 any final status, if it says so       ; stored         ; GET                         ; 599; cc: max-age=3600
3 404                                   ; stored         ; GET                         ; 404; last-modified: @-1000
3 status not by default                 ; not cacheable  ; GET                         ; 201; last-modified: @-1000
3 302 not by default                    ; not cacheable  ; GET                         ; 302; etag: "a"
5.2.2.9 public                          ; stored         ; GET                         ; 599; cc: public | last-modified: @-1000
3.3 partial content                     ; status         ; GET | range: bytes=0-1      ; 206; cc: max-age=3600
4.3.4 a validation is no response       ; status         ; GET                         ; 304; cc: max-age=3600
416 is about a range                    ; status         ; GET                         ; 416; cc: max-age=3600
200 to a range is whole                 ; stored         ; GET | range: bytes=0-1      ; 200; cc: max-age=3600
5.2.1.5 no-store asked                  ; no-store       ; GET | cc: no-store          ; 200; cc: max-age=3600
5.2.2.5 no-store                        ; no-store       ; GET                         ; 200; cc: max-age=9, no-store
5.2.2.5 beside Expires                  ; no-store       ; GET                         ; 200; cc: no-store | expires: @60
5.2.2.7 private                         ; private        ; GET                         ; 200; cc: private, max-age=9
5.2.2.7 private, two lines              ; private        ; GET                         ; 200; cc: max-age=3600 | cc: Private
5.2.2.7 some fields private             ; stored         ; GET                         ; 200; cc: private="x", max-age=9
5.2.2.3 must-understand                 ; must-understand; GET                         ; 599; cc: max-age=9, must-understand
5.2.2.3 understood, no-store ignored    ; stored         ; GET                         ; 200; cc: max-age=9, no-store, must-understand
3.5 Authorization                       ; authorization  ; GET | authorization: Basic x; 200; cc: max-age=3600
3.5 and Expires                         ; authorization  ; GET | authorization: Basic x; 200; expires: @60
3.5 public                              ; stored         ; GET | authorization: Basic x; 200; cc: max-age=9, public
3.5 must-revalidate                     ; stored         ; GET | authorization: Basic x; 200; cc: max-age=9, must-revalidate
3.5 s-maxage                            ; stored         ; GET | authorization: Basic x; 200; cc: s-maxage=9
7.3 Set-Cookie                          ; set-cookie     ; GET                         ; 200; cc: max-age=3600 | set-cookie: id=1
7.3 even if public                      ; set-cookie     ; GET                         ; 200; cc: public, max-age=9 | set-cookie: id=1
5.2.2.4 unless it is left out           ; stored         ; GET                         ; 200; cc: max-age=9, no-cache="Set-Cookie" | set-cookie: id=1
5.2.2.4 no-cache without validator      ; stale          ; GET                         ; 200; cc: no-cache, max-age=9
5.2.2.4 no-cache with one               ; stored         ; GET                         ; 200; cc: no-cache | etag: "a"
5.3 Expires: 0 without validator        ; stale          ; GET                         ; 200; expires: 0
9213 2.2 CDN-Cache-Control permits      ; stored         ; GET                         ; 200; cc: no-store | cdn-cc: max-age=9
9213 2.2 and forbids                    ; no-store       ; GET                         ; 200; cc: max-age=3600 | cdn-cc: no-store
9213 2.2 private there                  ; private        ; GET                         ; 200; cc: max-age=3600 | cdn-cc: private
9213 2.2 public elsewhere does not count; authorization  ; GET | authorization: Basic x; 200; cc: public | cdn-cc: max-age=9
"#;

#[test]
fn section_3_what_may_be_stored() {
    for [rule, expected, asked, status, said] in rows(STORING) {
        let status = status.parse().expect("a status");
        let found = match judged_by(&policy(), asked, status, said) {
            Ok(_) => "stored".to_owned(),
            Err(why) => why.to_string(),
        };
        assert_eq!(found, expected, "{rule}");
    }
}

/// Rule ; seconds ; answer.
const LIFETIMES: &str = r#"
max-age                                   ; 3600 ; cc: max-age=3600
s-maxage first                            ; 1    ; cc: max-age=3600, s-maxage=1
s-maxage first, longer                    ; 3600 ; cc: max-age=1, s-maxage=3600
on two lines                              ; 2    ; cc: max-age=3600 | cc: s-maxage=2
max-age before Expires                    ; 3600 ; cc: max-age=3600 | expires: @-7200
max-age=0 before Expires                  ; 0    ; cc: max-age=0 | expires: @60 | etag: "a"
Expires minus Date                        ; 80   ; expires: @70 | date: @-10
Expires without Date                      ; 70   ; expires: @70
Expires, Date unreadable                  ; 70   ; expires: @70 | date: foo
Expires before Date                       ; 0    ; expires: @300 | date: @400 | etag: "a"
Expires equal to Date                     ; 0    ; expires: @0 | date: @0 | etag: "a"
5.3 invalid Expires                       ; 0    ; expires: 0 | etag: "a" | last-modified: @-9999
5.3 two that differ                       ; 0    ; expires: @60 | expires: @90 | etag: "a"
5.3 two that agree                        ; 60   ; expires: @60 | expires: @60
5.3 RFC 850                               ; 60   ; expires: Tuesday, 14-Nov-23 22:14:20 GMT | date: @0
5.3 asctime                               ; 60   ; expires: Tue Nov 14 22:14:20 2023 | date: @0
max-age unreadable, Expires does not help ; 0    ; cc: max-age=x | expires: @60 | etag: "a"
s-maxage unreadable, max-age does not help; 0    ; cc: s-maxage=x, max-age=9 | etag: "a"
4.2.2 a tenth                             ; 100  ; last-modified: @-1000 | date: @0
4.2.2 at most a day                       ; 86400; last-modified: @-99999999 | date: @0
4.2.2 modified in the future              ; 0    ; last-modified: @1000 | date: @0
4.2.2 not where no-cache is               ; 0    ; last-modified: @-1000 | cc: no-cache
9213 before all                           ; 7    ; cdn-cc: max-age=7 | cc: max-age=3600 | expires: @60
9213 silent, Expires does not count       ; 0    ; cdn-cc: must-revalidate | cc: max-age=3600 | expires: @60 | etag: "a"
"#;

#[test]
fn section_4_2_1_how_long_it_is_fresh() {
    for [rule, seconds, said] in rows(LIFETIMES) {
        let seconds = seconds.parse().expect("seconds");
        assert_eq!(get(said).lifetime, Duration::from_secs(seconds), "{rule}");
    }
}

#[test]
fn an_operators_word_counts_where_the_app_is_silent() {
    let policy = Cache {
        default_ttl: Duration::from_secs(30),
        ..policy()
    };
    for (rule, status, said, expected) in [
        ("silent", 200, "", Ok(30)),
        ("silent 404", 404, "", Ok(30)),
        ("before a guess", 200, "last-modified: @-1000", Ok(30)),
        ("max-age", 200, "cc: max-age=3600", Ok(3600)),
        ("max-age=0", 200, "cc: max-age=0 | etag: \"a\"", Ok(0)),
        (
            "Expires in the past",
            200,
            "expires: @-9 | etag: \"a\"",
            Ok(0),
        ),
        ("no-cache", 200, "cc: no-cache | etag: \"a\"", Ok(0)),
        ("no-store", 200, "cc: no-store", Err(Unstorable::NoStore)),
        ("500", 500, "", Err(Unstorable::Silent)),
        ("302", 302, "", Err(Unstorable::Silent)),
    ] {
        let found = judged_by(&policy, "GET", status, said);
        assert_eq!(
            found.map(|found| found.lifetime),
            expected.map(Duration::from_secs),
            "{rule}"
        );
    }
}

#[test]
fn section_4_2_3_how_old_it_is() {
    for (rule, said, seconds) in [
        ("new", "cc: max-age=3600 | date: @0", 0),
        ("no Date", "cc: max-age=3600", 0),
        ("Date in the past", "cc: max-age=3600 | date: @-70", 70),
        ("Date in the future", "cc: max-age=3600 | date: @70", 0),
        ("Age", "cc: max-age=3600 | age: 30", 30),
        (
            "the larger of both",
            "cc: max-age=3600 | age: 30 | date: @-10",
            30,
        ),
        (
            "the larger of both",
            "cc: max-age=3600 | age: 10 | date: @-30",
            30,
        ),
        (
            "Age too large",
            "cc: max-age=3600 | age: 99999999999",
            1 << 31,
        ),
    ] {
        assert_eq!(get(said).age(now()), Duration::from_secs(seconds), "{rule}");
        assert_eq!(
            get(said).age(after(5)),
            Duration::from_secs(seconds + 5),
            "{rule}"
        );
    }
    // Section 5.1 as http-cache-tests have it: an Age that is no single number is stale.
    for age in [
        "abc",
        "-7200",
        "7200.0",
        "0.0",
        "7200,0",
        "0, 0",
        "7200;foo=bar",
        "0;x",
        "",
    ] {
        let freshness = get(&format!("cc: max-age=3600 | age: {age}"));
        assert_eq!(usage(&freshness, "", 0), Usage::Validate, "{age}");
    }
    let two_lines = get("cc: max-age=3600 | age: 0 | age: 0");
    assert_eq!(usage(&two_lines, "", 0), Usage::Validate);
}

#[test]
fn the_time_on_the_way_is_part_of_the_age() {
    let exchange = Exchange {
        method: &Method::GET,
        request: &HeaderMap::new(),
        status: StatusCode::OK,
        response: &head("cc: max-age=3600 | age: 10"),
        asked: now(),
        answered: after(4),
    };
    let freshness = judge(exchange, &policy()).expect("storable");
    assert_eq!(freshness.age(after(5)), Duration::from_secs(15));
}

#[test]
fn a_part_of_a_second_since_date_is_no_age() {
    let exchange = Exchange {
        method: &Method::GET,
        request: &HeaderMap::new(),
        status: StatusCode::OK,
        response: &head("cc: max-age=1 | date: @0"),
        asked: now() + Duration::from_millis(900),
        answered: now() + Duration::from_millis(900),
    };
    let freshness = judge(exchange, &policy()).expect("storable");
    assert_eq!(
        freshness.age(now() + Duration::from_millis(1800)),
        Duration::from_millis(900)
    );
}
/// Rule ; use ; seconds later ; the request's directives ; answer.
const USES: &str = r#"
4.2 fresh                            ; Fresh   ; 99    ; -                      ; cc: max-age=100
4.2 stale at its lifetime            ; Validate; 100   ; -                      ; cc: max-age=100
5.2.1.1 max-age=0                    ; Validate; 1     ; max-age=0              ; cc: max-age=100
5.2.1.1 young enough                 ; Fresh   ; 10    ; max-age=10             ; cc: max-age=100
5.2.1.1 too old                      ; Validate; 11    ; max-age=10             ; cc: max-age=100
5.2.1.2 max-stale                    ; Stale   ; 100000; max-stale              ; cc: max-age=100
5.2.1.2 within                       ; Stale   ; 110   ; max-stale=10           ; cc: max-age=100
5.2.1.2 beyond                       ; Validate; 111   ; max-stale=10           ; cc: max-age=100
5.2.1.2 and fresh                    ; Fresh   ; 1     ; max-stale=10           ; cc: max-age=100
5.2.1.3 min-fresh                    ; Fresh   ; 89    ; min-fresh=10           ; cc: max-age=100
5.2.1.3 not fresh enough             ; Validate; 90    ; min-fresh=10           ; cc: max-age=100
5.2.1.3 wins over max-stale          ; Validate; 95    ; min-fresh=10, max-stale; cc: max-age=100
5.2.1.4 no-cache                     ; Validate; 0     ; no-cache               ; cc: max-age=100
5.2.1.7 only-if-cached               ; Fresh   ; 0     ; only-if-cached         ; cc: max-age=100
5.2.2.4 no-cache                     ; Validate; 0     ; -                      ; cc: no-cache, max-age=100 | etag: "a"
5.2.2.4 and max-stale                ; Validate; 0     ; max-stale              ; cc: no-cache, max-age=100 | etag: "a"
5.2.2.4 qualified                    ; Fresh   ; 0     ; -                      ; cc: no-cache="x", max-age=100 | etag: "a"
5.2.2.2 must-revalidate, fresh       ; Fresh   ; 99    ; -                      ; cc: max-age=100, must-revalidate | etag: "a"
5.2.2.2 and max-stale                ; Validate; 100   ; max-stale              ; cc: max-age=100, must-revalidate | etag: "a"
5.2.2.8 proxy-revalidate             ; Validate; 100   ; max-stale              ; cc: max-age=100, proxy-revalidate | etag: "a"
5.2.2.10 s-maxage                    ; Validate; 100   ; max-stale              ; cc: s-maxage=100 | etag: "a"
5.2.2.1 a max-age that cannot be read; Validate; 0     ; -                      ; cc: max-age=a | etag: "a"
"#;

#[test]
fn sections_4_and_5_2_1_whether_it_may_be_used() {
    for [rule, expected, seconds, asked, said] in rows(USES) {
        let seconds = seconds.parse().expect("seconds");
        let found = usage(&get(said), asked, seconds);
        assert_eq!(format!("{found:?}"), expected, "{rule}");
    }
}

#[test]
fn section_3_5_authorization_gets_only_what_is_everybodys() {
    let asked = RequestDirectives::default();
    for (said, expected) in [
        ("max-age=9", Usage::Validate),
        ("max-age=9, public", Usage::Fresh),
        ("max-age=9, must-revalidate", Usage::Fresh),
        ("s-maxage=9", Usage::Fresh),
    ] {
        let freshness = get(&format!("cc: {said}"));
        assert_eq!(freshness.usage(&asked, true, now()), expected, "{said}");
        assert_eq!(
            freshness.usage(&asked, false, now()),
            Usage::Fresh,
            "{said}"
        );
    }
}

#[test]
fn rfc_5861_stale_while_revalidate() {
    use Usage::{StaleWhileRevalidate, Validate};
    let generous = Cache {
        stale_while_revalidate: Duration::from_secs(20),
        ..policy()
    };
    for (rule, said, seconds, expected) in [
        (
            "said",
            "max-age=10, stale-while-revalidate=5",
            14,
            StaleWhileRevalidate,
        ),
        (
            "its end",
            "max-age=10, stale-while-revalidate=5",
            15,
            Validate,
        ),
        (
            "said to be none",
            "max-age=10, stale-while-revalidate=0",
            10,
            Validate,
        ),
        (
            "unreadable",
            "max-age=10, stale-while-revalidate=x",
            10,
            Validate,
        ),
        ("the operator's", "max-age=10", 29, StaleWhileRevalidate),
        ("its end", "max-age=10", 30, Validate),
        (
            "beside s-maxage",
            "s-maxage=10, stale-while-revalidate=5",
            14,
            StaleWhileRevalidate,
        ),
        (
            "the operator's, not beside s-maxage",
            "s-maxage=10",
            10,
            Validate,
        ),
        (
            "never with must-revalidate",
            "max-age=10, stale-while-revalidate=5, must-revalidate",
            10,
            Validate,
        ),
        (
            "never with proxy-revalidate",
            "max-age=10, stale-while-revalidate=5, proxy-revalidate",
            10,
            Validate,
        ),
    ] {
        let freshness = judged_by(&generous, "GET", 200, &format!("cc: {said}"));
        assert_eq!(
            usage(&freshness.expect(rule), "", seconds),
            expected,
            "{rule}"
        );
    }
    let freshness = get("cc: max-age=10, stale-while-revalidate=5");
    for asked in ["no-cache", "max-age=60", "min-fresh=1"] {
        assert_eq!(usage(&freshness, asked, 12), Validate, "{asked}");
    }
}

#[test]
fn rfc_5861_stale_if_error() {
    let stands_in = |said: &str, default: u64, seconds: u64| {
        let policy = Cache {
            stale_if_error: Duration::from_secs(default),
            ..policy()
        };
        let said = format!("cc: {said} | etag: \"a\"");
        let freshness = judged_by(&policy, "GET", 200, &said).expect("storable");
        freshness.stands_in(&RequestDirectives::default(), false, after(seconds))
    };
    assert!(stands_in("max-age=10, stale-if-error=5", 0, 14));
    assert!(!stands_in("max-age=10, stale-if-error=5", 0, 15));
    assert!(stands_in("max-age=10", 60, 69));
    assert!(!stands_in("max-age=10", 0, 10));
    for said in [
        "max-age=10, must-revalidate",
        "s-maxage=10",
        "no-cache",
        "max-age=10, proxy-revalidate",
    ] {
        assert!(!stands_in(said, 60, 11), "{said}");
    }
    for status in [500, 502, 503, 504] {
        assert!(Freshness::is_error(
            StatusCode::from_u16(status).expect("a status")
        ));
    }
    assert!(!Freshness::is_error(StatusCode::NOT_FOUND));
}

#[test]
fn what_is_ended_is_asked_about() {
    let freshness = get("cc: max-age=3600").ended();
    assert_eq!(usage(&freshness, "max-stale", 0), Usage::Validate);
    assert_eq!(get("cc: max-age=3600").ttl(after(10)), 3590);
    assert_eq!(get("cc: max-age=3600").ttl(after(3610)), -10);
}

#[test]
fn section_4_3_4_a_validation_makes_it_fresh_again() {
    let kept = head("cc: max-age=60 | etag: \"a\" | date: @-500");
    let judged = |said: &str, asked: &str| {
        let not_modified = head(said);
        let merged = crate::cache::kept::not_modified(&kept, &not_modified, now());
        let exchange = Exchange {
            method: &Method::HEAD,
            request: &head(asked),
            status: StatusCode::OK,
            response: &not_modified,
            asked: now(),
            answered: now(),
        };
        judge_validated(exchange, &merged.expect("the same"), &policy())
    };
    let ttl = |said| judged(said, "").map(|freshness| freshness.ttl(now()));
    assert_eq!(ttl("date: @0"), Ok(60));
    assert_eq!(ttl(""), Ok(60), "no Date: it is of now");
    assert_eq!(ttl("age: 20"), Ok(40), "another cache validated it");
    assert_eq!(ttl("cc: max-age=5"), Ok(5));
    assert_eq!(ttl("cc: no-store"), Err(Unstorable::NoStore));
    let authorized = judged("", "authorization: Basic x");
    assert_eq!(authorized, Err(Unstorable::Authorization));
}
