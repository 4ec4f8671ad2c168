use std::io::Write as _;

use super::super::*;

/// A body in two halves with a flush between them, and where the flush ends.
fn coded(coding: &str, plain: &[u8]) -> (Vec<u8>, usize) {
    let (first, second) = plain.split_at(plain.len() / 2);
    match coding {
        "gzip" => {
            let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            gzip.write_all(first).unwrap();
            gzip.flush().unwrap();
            let flushed = gzip.get_ref().len();
            gzip.write_all(second).unwrap();
            (gzip.finish().unwrap(), flushed)
        }
        "br" => {
            let mut br = brotli::CompressorWriter::new(Vec::new(), 4096, 3, 18);
            br.write_all(first).unwrap();
            br.flush().unwrap();
            let flushed = br.get_ref().len();
            br.write_all(second).unwrap();
            (br.into_inner(), flushed)
        }
        _ => zstd(first, second),
    }
}

fn zstd(first: &[u8], second: &[u8]) -> (Vec<u8>, usize) {
    let mut context = zstd_safe::CCtx::create();
    let mut coded = vec![0_u8; 1 << 20];
    let mut out = zstd_safe::OutBuffer::around(coded.as_mut_slice());
    let mut input = zstd_safe::InBuffer::around(first);
    while context.compress_stream(&mut out, &mut input).unwrap() > 0 && input.pos() < first.len() {}
    while context.flush_stream(&mut out).unwrap() > 0 {}
    let flushed = out.pos();
    let mut input = zstd_safe::InBuffer::around(second);
    while input.pos() < second.len() {
        context.compress_stream(&mut out, &mut input).unwrap();
    }
    while context.end_stream(&mut out).unwrap() > 0 {}
    let length = out.pos();
    coded.truncate(length);
    (coded, flushed)
}

#[test]
fn a_whole_body_is_decoded_by_its_label() {
    for coding in ["gzip", "br", "zstd"] {
        let (body, _) = coded(coding, &big());
        assert!(body.len() < big().len() / 2);
        let app = Origin::answer(200, &[("Content-Encoding", coding)], body);
        let reply = get(app.addr(), "/", &[]);
        assert_eq!(reply.coding(), coding);
        assert!(reply.decoded() == big(), "{coding}");
    }
}

#[test]
fn codings_on_top_of_each_other_are_undone_in_turn() {
    let body = coded("br", &coded("gzip", &big()).0).0;
    let app = Origin::answer(200, &[("Content-Encoding", "gzip, br")], body);
    assert!(get(app.addr(), "/", &[]).decoded() == big());
}

#[test]
fn a_body_that_is_cut_or_followed_by_anything_does_not_pass() {
    for coding in ["gzip", "br", "zstd"] {
        let (body, _) = coded(coding, &big());
        assert!(decode::whole(coding, &body).is_ok(), "{coding}");
        assert!(
            decode::whole(coding, &body[..body.len() - 1]).is_err(),
            "{coding} cut"
        );
        assert!(
            decode::whole(coding, &[&body, b"x".as_slice()].concat()).is_err(),
            "{coding} followed"
        );
        assert!(
            decode::whole(coding, b"plain text").is_err(),
            "{coding} mislabelled"
        );
        assert!(decode::whole(coding, b"").is_err(), "{coding} empty");
    }
    let mut flipped = coded("gzip", &big()).0;
    let checksum = flipped.len() - 8;
    flipped[checksum] ^= 1;
    assert!(decode::whole("gzip", &flipped).is_err());
}

#[test]
fn what_was_flushed_can_be_read_before_the_rest_comes() {
    let plain = big();
    // So far into the first half that nothing but a flush brings it out.
    let mark = String::from_utf8(plain[plain.len() / 2 - 100..plain.len() / 2].to_vec()).unwrap();
    for coding in ["gzip", "br", "zstd"] {
        let go = Signal::new();
        let heard = go.clone();
        let (body, flushed) = coded(coding, &plain);
        let app = Origin::start(move |call| {
            call.chunked(200, &[("Content-Encoding", coding)])?;
            call.chunk(&body[..flushed])?;
            call.wait(&heard);
            call.chunk(&body[flushed..])?;
            call.end()
        });
        let mut conn = Conn::open(app.addr());
        conn.request("GET", "/", &[], b"");
        conn.head();
        let first = conn.plain_until(&mark);
        assert!(first == plain[..plain.len() / 2], "{coding}");
        go.fire();
        let second = conn.plain_until("]");
        assert!(second.ends_with(b"]"), "{coding}");
        assert!(conn.piece().is_none(), "{coding}");
    }
}
