use super::*;
use http::header::{CONTENT_TYPE, ETAG, SET_COOKIE, VARY};
use proptest::prelude::*;

fn entry() -> Entry {
    let mut request = HeaderMap::new();
    request.insert("x-lang", HeaderValue::from_static("de"));
    let mut response = HeaderMap::new();
    response.insert(VARY, HeaderValue::from_static("X-Lang"));
    response.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    response.insert(ETAG, HeaderValue::from_static("\"a\""));
    response.append("surrogate-key", HeaderValue::from_static("one two"));
    let freshness = Freshness {
        born: SystemTime::UNIX_EPOCH + Duration::from_millis(1_700_000_000_123),
        lifetime: Duration::from_secs(60),
        validate: false,
        strict: true,
        while_revalidate: Duration::from_secs(5),
        if_error: Duration::from_secs(7),
        authorized: true,
    };
    let body = [Bytes::from_static(b"plain bytes")];
    let object = Object::new(StatusCode::OK, &response, freshness.born, &body, freshness)
        .expect("an object");
    Entry {
        url: Url::parse("https://h/p?q", &crate::config::settings::QueryKey::All).expect("a URL"),
        route: "route".into(),
        selector: Selector::read(&response, &request).expect("a selector"),
        object: Arc::new(object),
    }
}

fn record() -> Record {
    let entry = entry();
    Record::Entry { entry, asked: 17 }
}

fn read(bytes: &[u8]) -> Entry {
    match decode(bytes, bytes.len()) {
        Ok(Record::Entry { entry, asked: 17 }) => entry,
        other => panic!("{other:?}"),
    }
}

/// The checksum made right again, as one who may write there could.
fn signed(mut bytes: Vec<u8>) -> Vec<u8> {
    let start = MAGIC.len() + CHECKSUM;
    let checksum = blake3::hash(&bytes[start..]);
    bytes[MAGIC.len()..start].copy_from_slice(checksum.as_bytes());
    bytes
}

#[test]
fn what_is_written_is_what_is_read() {
    let written = entry();
    let read = read(&encode(&record()));
    assert_eq!((&read.url, &read.route), (&written.url, &written.route));
    assert_eq!(read.selector, written.selector);
    let (one, other) = (&read.object, &written.object);
    assert_eq!((one.status(), one.head()), (other.status(), other.head()));
    assert_eq!((one.body(), one.tags()), (other.body(), other.tags()));
    assert_eq!(one.freshness(), other.freshness());
    assert_ne!(one.id(), other.id(), "its variants are its own");
}

#[test]
fn forks_and_coded_forms_are_read_as_written() {
    let names = vec![
        http::header::ACCEPT_LANGUAGE,
        HeaderName::from_static("x-lang"),
    ];
    let written = Fork {
        names,
        generation: 5,
    };
    let bytes = encode(&Record::Fork(written.clone()));
    let read = decode(&bytes, bytes.len());
    assert!(matches!(read, Ok(Record::Fork(fork)) if fork == written));
    for coding in [Coding::Gzip, Coding::Deflate, Coding::Brotli, Coding::Zstd] {
        let written = Coded {
            of: [7; 32],
            coding,
            dense: coding == Coding::Zstd,
            bytes: Bytes::from_static(b"coded"),
        };
        let bytes = encode(&Record::Coded(written.clone()));
        let read = decode(&bytes, bytes.len());
        assert!(matches!(read, Ok(Record::Coded(coded)) if coded == written));
    }
}

#[test]
fn foreign_corrupt_and_large_entries_are_told_apart() {
    let bytes = encode(&record()).to_vec();
    let error = |bytes: &[u8], most| decode(bytes, most).map(|_| ()).expect_err("no entry");
    assert_eq!(error(b"", 100), WireError::Foreign);
    assert_eq!(error(b"thinwir0 and more", 100), WireError::Foreign);
    assert_eq!(error(&bytes, bytes.len() - 1), WireError::TooLarge);
    for at in MAGIC.len()..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1;
        assert_eq!(error(&flipped, bytes.len()), WireError::Corrupt, "{at}");
        assert_eq!(error(&bytes[..at], bytes.len()), WireError::Corrupt, "{at}");
    }
    let longer = signed([&bytes[..], b"x"].concat());
    assert_eq!(error(&longer, usize::MAX), WireError::Malformed);
}

#[test]
fn a_head_from_outside_keeps_only_what_we_would_have_kept() {
    let mut written = entry();
    let mut head = written.object.head().clone();
    head.append(SET_COOKIE, HeaderValue::from_static("id=1"));
    head.append("connection", HeaderValue::from_static("close"));
    let freshness = *written.object.freshness();
    written.object = Arc::new(
        written
            .object
            .validated(head, freshness)
            .expect("an object"),
    );
    let record = Record::Entry {
        entry: written,
        asked: 17,
    };
    let read = read(&encode(&record));
    assert!(!read.object.head().contains_key(SET_COOKIE));
    assert!(!read.object.head().contains_key("connection"));
    assert!(read.object.head().contains_key(ETAG));
}

proptest! {
    #[test]
    fn nothing_under_a_right_checksum_breaks_the_reader(
        at in 0..400_usize, garbage in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let mut bytes = encode(&record()).to_vec();
        let start = (MAGIC.len() + CHECKSUM + at).min(bytes.len());
        let end = (start + garbage.len()).min(bytes.len());
        bytes.splice(start..end, garbage);
        let _ = decode(&signed(bytes), usize::MAX);
    }

    #[test]
    fn neither_do_any_bytes(garbage in prop::collection::vec(any::<u8>(), 0..200)) {
        let bytes = [&MAGIC[..], &[0; CHECKSUM], &garbage].concat();
        let _ = decode(&signed(bytes), usize::MAX);
    }
}
