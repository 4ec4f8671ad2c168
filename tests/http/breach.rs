//! What an attacker may learn from the length of a compressed secret: padding, and plain answers to
//! other sites.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

use crate::support::{Fields, Origin, Proxy, Reply, Setup, big, curl, folder, python};

const JSON: (&str, &str) = ("Content-Type", "application/json");
const PAD: usize = 300;

/// The page whole, and in chunks without a length at `/stream`.
fn page() -> Origin {
    Origin::start(|call| {
        if call.path() == "/whole" {
            return call.answer(200, &[JSON], &big());
        }
        call.chunked(200, &[JSON])?;
        call.chunk(&big()[..1000])?;
        // So long a pause that the answer is a stream.
        call.pause(std::time::Duration::from_millis(40));
        call.chunk(&big()[1000..])?;
        call.end()
    })
}

fn padded(app: &Origin) -> Proxy {
    Proxy::with(app, "compress: { breach: { pad: 300B } }")
}

#[test]
fn padding_varies_the_length_and_nothing_else() {
    let app = page();
    let (proxy, bare) = (padded(&app), Proxy::before(&app));
    for coding in ["gzip", "br", "zstd"] {
        let asked = [("Accept-Encoding", coding)];
        let least = bare.get("/whole", &asked).body.len();
        let mut conn = proxy.conn();
        let replies: Vec<_> = (0..50).map(|_| conn.get("/whole", &asked)).collect();
        let lengths: BTreeSet<_> = replies.iter().map(|reply| reply.body.len()).collect();
        // Of 300 lengths 50 draws hit 46 different ones; fewer than 25 is no chance.
        assert!(lengths.len() >= 25, "{coding}: {lengths:?}");
        for reply in replies {
            assert_eq!(reply.coding(), coding);
            assert!(reply.decoded() == big(), "{coding}");
            // A format has a few bytes of its own around the filler.
            let more = reply.body.len() - least;
            assert!((1..=PAD + 12).contains(&more), "{coding}: {more} more");
        }
    }
}

#[test]
fn padding_varies_the_length_of_streams() {
    let app = page();
    let proxy = padded(&app);
    for coding in ["gzip", "br", "zstd"] {
        let asked = [("Accept-Encoding", coding)];
        let replies: Vec<_> = (0..6).map(|_| proxy.get("/stream", &asked)).collect();
        let lengths: BTreeSet<_> = replies.iter().map(|reply| reply.body.len()).collect();
        assert!(lengths.len() >= 3, "{coding}: {lengths:?}");
        for reply in replies {
            assert_eq!(reply.header("content-length"), None);
            assert!(reply.decoded() == big(), "{coding}");
        }
    }
}

#[test]
fn plain_answers_are_not_padded() {
    let app = page();
    let reply = padded(&app).get("/whole", &[]);
    assert!(reply.coding() == "identity" && reply.body == big());
}

/// Decodes files with the interpreter's own zlib, brotli and zstandard: `python FILE CODING SIZE...`.
const DECODE: &str = r"
import sys, zlib, brotli, zstandard
def zstd(data):
    plain = b''
    while data:
        one = zstandard.ZstdDecompressor(max_window_size=1 << 23).decompressobj()
        plain += one.decompress(data)
        assert one.eof
        data = one.unused_data
    return plain
def gzip(data):
    one = zlib.decompressobj(31)
    plain = one.decompress(data)
    assert one.eof and not one.unused_data
    return plain
decoders = {'gzip': gzip, 'br': brotli.decompress, 'zstd': zstd}
expected = open(sys.argv[1], 'rb').read()
for name in sys.argv[2:]:
    plain = decoders[name.rsplit('.', 1)[1]](open(name, 'rb').read())
    assert plain == expected, (name, len(plain))
print('all equal')
";

#[test]
fn python_decodes_what_was_padded() {
    let app = page();
    let proxy = padded(&app);
    let home = folder("padded");
    let plain = home.join("plain");
    std::fs::write(&plain, big()).unwrap();
    let mut files: Vec<PathBuf> = vec![plain];
    for coding in ["gzip", "br", "zstd"] {
        for (number, target) in ["/whole", "/whole", "/whole", "/stream"].iter().enumerate() {
            let body = proxy.get(target, &[("Accept-Encoding", coding)]).body;
            let file = home.join(format!("{number}.{coding}"));
            std::fs::write(&file, body).unwrap();
            files.push(file);
        }
    }
    let script = home.join("decode.py");
    std::fs::write(&script, DECODE).unwrap();
    let ran = Command::new(python::python())
        .arg(script)
        .args(files)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(
        String::from_utf8_lossy(&ran.stdout),
        "all equal\n",
        "{errors}"
    );
}

#[test]
fn curl_decodes_what_was_padded() {
    let app = page();
    let proxy = padded(&app);
    let features = String::from_utf8(curl(&["--version"]).body).unwrap();
    for (coding, feature) in [("gzip", "libz"), ("br", "brotli"), ("zstd", "zstd")] {
        if !features.contains(feature) {
            continue;
        }
        for target in ["/whole", "/stream"] {
            let asked = format!("Accept-Encoding: {coding}");
            let got = curl(&["--compressed", "-H", &asked, &proxy.url(target)]);
            assert_eq!((got.status, got.errors.as_str()), (0, ""), "{coding}");
            assert!(got.body == big(), "{coding} {target}");
        }
    }
}

#[test]
fn other_sites_get_plain_bytes_where_the_route_says_so() {
    let app = Origin::json(big());
    let routes = "- name: guarded\n  match: { path: /guarded }\n  upstream: app\n  \
                  compress: { breach: { cross_site: plain } }";
    let proxy = Setup::before(&app).routes_before(routes).start();
    let ask = |path: &str, fields: Fields<'_>| -> Reply {
        let host: Fields<'_> = &[("Host", "shop.test"), ("Accept-Encoding", "gzip")];
        proxy.get(path, &[host, fields].concat()).expect(200)
    };
    let evil = ("Referer", "https://evil.test/");
    for (fields, coding) in [
        (&[evil] as Fields<'_>, "identity"),
        (&[("Origin", "https://evil.test")], "identity"),
        (&[("Origin", "null")], "identity"),
        (&[("Sec-Fetch-Site", "cross-site")], "identity"),
        (&[("Sec-Fetch-Site", "same-origin"), evil], "gzip"),
        (&[("Referer", "https://shop.test/cart")], "gzip"),
        (&[("Referer", "https://shop.test.evil.test/")], "identity"),
        (&[], "gzip"),
    ] {
        let reply = ask("/guarded", fields);
        assert_eq!(reply.coding(), coding, "{fields:?}");
        assert!(reply.decoded() == big());
        assert_eq!(ask("/open", fields).coding(), "gzip", "{fields:?}");
    }
    let counted = [("route", "guarded"), ("reason", "cross_site")];
    proxy.until("thinwire_responses_total", &counted, |sum| sum == 5.0);
}
