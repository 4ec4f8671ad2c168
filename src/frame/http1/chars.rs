//! The byte classes of RFC 9110 section 5.6.2 and RFC 3986.

const TOKEN: u8 = 1;
const PATH: u8 = 2;
const QUERY: u8 = 4;
const HOST: u8 = 8;

/// PATH and QUERY are what `http::Uri` takes too, less `#` and bytes beyond ASCII: a target that
/// passes here must not fail in hyper, which would answer on its own.
const CLASSES: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0x21_usize;
    while byte < 0x7f {
        table[byte] = class(byte as u8);
        byte += 1;
    }
    table
};

const fn class(byte: u8) -> u8 {
    let mut class = 0;
    if byte.is_ascii_alphanumeric()
        || matches!(byte, b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+')
        || matches!(byte, b'-' | b'.' | b'^' | b'_' | b'`' | b'|' | b'~')
    {
        class |= TOKEN;
    }
    if !matches!(byte, b'#' | b'<' | b'>' | b'`' | b'?') {
        class |= PATH;
    }
    if !matches!(byte, b'"' | b'#' | b'<' | b'>') {
        class |= QUERY;
    }
    // Unreserved and sub-delims; no percent-encoding, which some decode in hosts and some do not.
    if byte.is_ascii_alphanumeric()
        || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'!' | b'$' | b'&' | b'\'')
        || matches!(byte, b'(' | b')' | b'*' | b'+' | b',' | b';' | b'=')
    {
        class |= HOST;
    }
    class
}

const fn is(byte: u8, class: u8) -> bool {
    CLASSES[byte as usize] & class != 0
}

pub(super) const fn is_token(byte: u8) -> bool {
    is(byte, TOKEN)
}

pub(super) const fn is_path(byte: u8) -> bool {
    is(byte, PATH)
}

pub(super) const fn is_query(byte: u8) -> bool {
    is(byte, QUERY)
}

pub(super) const fn is_host(byte: u8) -> bool {
    is(byte, HOST)
}

/// A control character that no field value, reason phrase or chunk extension has: all but HTAB.
pub(super) const fn is_control(byte: u8) -> bool {
    (byte < 0x20 && byte != b'\t') || byte == 0x7f
}

/// Without the optional white space around it (SP and HTAB, RFC 9110 section 5.6.3).
pub(super) fn trim(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}

/// A value without control characters, eight bytes at a time.
pub(super) fn is_clean(value: &[u8]) -> bool {
    let (words, rest) = value.as_chunks::<8>();
    let mut suspect = words.iter().fold(0, |suspect, word| {
        suspect | suspicion(u64::from_le_bytes(*word))
    });
    if let Some(last) = value.last_chunk::<8>() {
        suspect |= suspicion(u64::from_le_bytes(*last));
    } else if rest.iter().any(|&byte| is_control(byte)) {
        return false;
    }
    // HTAB is suspect too, and rare.
    suspect == 0 || !value.iter().any(|&byte| is_control(byte))
}

/// Not zero if a byte of the word is below 0x20, or 0x7f.
const fn suspicion(word: u64) -> u64 {
    const ONES: u64 = u64::MAX / 0xff;
    const TOPS: u64 = ONES << 7;
    let below = word.wrapping_sub(ONES * 0x20) & !word;
    let del = word ^ (ONES * 0x7f);
    (below | (del.wrapping_sub(ONES) & !del)) & TOPS
}
