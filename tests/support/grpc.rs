//! Messages as gRPC frames them, for scripted apps and clients that see every byte.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::{GzDecoder, ZlibDecoder};
use flate2::write::{GzEncoder, ZlibEncoder};

use super::{Fields, H2, H2Stream, Reply};

pub const GRPC: (&str, &str) = ("content-type", "application/grpc");
pub const TE: (&str, &str) = ("te", "trailers");
pub const OK: (&str, &str) = ("grpc-status", "0");
pub const TAKES_GZIP: (&str, &str) = ("grpc-accept-encoding", "identity,deflate,gzip");

/// A message behind its prefix.
pub fn message(flags: u8, bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).expect("a message's length");
    [&[flags][..], &length.to_be_bytes(), bytes].concat()
}

/// All messages of a body, with their flags; the test fails where it ends within one.
#[track_caller]
pub fn messages(body: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let mut found = Vec::new();
    let mut rest = body;
    while !rest.is_empty() {
        let (flags, length) = (rest[0], u32::from_be_bytes(rest[1..5].try_into().unwrap()));
        let (message, more) = rest[5..].split_at(length as usize);
        found.push((flags, message.to_vec()));
        rest = more;
    }
    found
}

/// The messages plain, those with the compressed flag inflated.
#[track_caller]
pub fn plain(body: &[u8], coding: &str) -> Vec<Vec<u8>> {
    let messages = messages(body).into_iter();
    let plain = messages.map(|(flags, message)| match flags & 1 {
        0 => message,
        _ => inflate(coding, &message),
    });
    plain.collect()
}

/// One member, and nothing behind it.
#[track_caller]
pub fn inflate(coding: &str, bytes: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    match coding {
        "gzip" => {
            let mut decoder = GzDecoder::new(bytes);
            decoder.read_to_end(&mut plain).expect("gzip");
            assert!(
                decoder.into_inner().is_empty(),
                "something behind the member"
            );
        }
        "deflate" => {
            ZlibDecoder::new(bytes)
                .read_to_end(&mut plain)
                .expect("zlib");
        }
        "zstd" => plain = super::decode::whole("zstd", bytes).expect("zstd"),
        other => panic!("compressed, but in {other}"),
    }
    plain
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(6));
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::new(6));
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Records much as protobuf has them: this many bytes, compressible.
pub fn records(bytes: usize) -> Vec<u8> {
    let mut dice = fastrand::Rng::with_seed(41);
    let mut records = Vec::with_capacity(bytes + 64);
    for id in 0_u32.. {
        if records.len() >= bytes {
            break;
        }
        records.extend_from_slice(&[0x0a, 0x28, 0x08]);
        records.extend_from_slice(&id.to_le_bytes());
        records.extend_from_slice(b"\x12\x10user@example.com");
        records.extend_from_slice(&dice.u64(..).to_le_bytes());
    }
    records.truncate(bytes);
    records
}

/// Begins a call.
pub fn begin(client: &H2, path: &str, more: Fields<'_>) -> H2Stream {
    client.start("POST", path, &[&[GRPC, TE], more].concat(), false)
}

/// A call with one request body, to its end.
#[track_caller]
pub fn call(client: &H2, path: &str, more: Fields<'_>, body: &[u8]) -> Reply {
    let mut stream = begin(client, path, more);
    // An early answer may leave no room for it.
    let _ = stream.try_send(body, true);
    stream.reply()
}

/// The status that a reply ends with, in its head or its trailers.
pub fn status(reply: &Reply) -> Option<&str> {
    reply
        .trailer("grpc-status")
        .or_else(|| reply.header("grpc-status"))
}
