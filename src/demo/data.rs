//! The bytes that the application serves: made once, when first asked for, the same in every run.

use std::fmt::Write as _;
use std::sync::OnceLock;

use bytes::Bytes;

/// Records that `/users` gives at most: about 11 MB.
pub(super) const MOST_USERS: usize = 100_000;

/// Records that are kept complete, ready to be sent: about 1.1 MB.
const USUAL_USERS: usize = 10_000;

/// `/report` is the shortest array of leading records that has so many bytes.
const REPORT: usize = 117 * 1024;

const RANDOM: usize = 1 << 20;

const FIRST: [&str; 16] = [
    "ada", "alan", "barbara", "brian", "carol", "dennis", "edsger", "frances", "grace", "hedy",
    "ida", "james", "joan", "ken", "linus", "margaret",
];
const LAST: [&str; 13] = [
    "lovelace",
    "turing",
    "liskov",
    "kernighan",
    "shaw",
    "ritchie",
    "dijkstra",
    "allen",
    "hopper",
    "lamarr",
    "rhodes",
    "gosling",
    "clarke",
];

/// A JSON array of the first `count` user records, `MOST_USERS` at most.
pub(super) fn users(count: usize) -> Bytes {
    static USUAL: OnceLock<Bytes> = OnceLock::new();
    static ALL: OnceLock<Records> = OnceLock::new();
    if count == USUAL_USERS {
        let usual = || Records::new(USUAL_USERS).array(USUAL_USERS);
        return USUAL.get_or_init(usual).clone();
    }
    ALL.get_or_init(|| Records::new(MOST_USERS)).array(count)
}

/// A JSON array of 117 KiB and a bit.
pub(super) fn report() -> Bytes {
    static REPORT_BODY: OnceLock<Bytes> = OnceLock::new();
    REPORT_BODY
        .get_or_init(|| {
            let records = Records::new(USUAL_USERS);
            let count = records.ends.partition_point(|&end| end + 1 < REPORT) + 1;
            records.array(count)
        })
        .clone()
}

/// 1 MiB that no codec makes smaller.
pub(super) fn random() -> Bytes {
    static BODY: OnceLock<Bytes> = OnceLock::new();
    BODY.get_or_init(|| {
        let mut dice = Dice::new(11);
        let words = std::iter::repeat_with(move || dice.next().to_le_bytes());
        words.take(RANDOM / 8).flatten().collect()
    })
    .clone()
}

/// An open array, and where each record in it ends.
struct Records {
    text: String,
    ends: Vec<usize>,
}

impl Records {
    fn new(count: usize) -> Self {
        let mut dice = Dice::new(7);
        let mut text = String::from("[");
        let mut ends = Vec::with_capacity(count);
        for id in 0..count {
            if id > 0 {
                text.push(',');
            }
            record(&mut text, &mut dice, id);
            ends.push(text.len());
        }
        Self { text, ends }
    }

    fn array(&self, count: usize) -> Bytes {
        let end = count.min(self.ends.len());
        let end = end.checked_sub(1).map_or(1, |last| self.ends[last]);
        let mut array = Vec::with_capacity(end + 1);
        array.extend_from_slice(&self.text.as_bytes()[..end]);
        array.push(b']');
        array.into()
    }
}

fn record(text: &mut String, dice: &mut Dice, id: usize) {
    let first = dice.pick(&FIRST);
    let last = dice.pick(&LAST);
    let reference = dice.next() >> 16;
    let active = !dice.next().is_multiple_of(5);
    let name = [capital(first), capital(last)].join(" ");
    // Writing to a String cannot fail.
    let _ = write!(
        text,
        r#"{{"id":{id},"name":"{name}","email":"{first}.{last}{id}@example.com","ref":"{reference:012x}","active":{active}}}"#
    );
}

fn capital(word: &str) -> String {
    let (initial, rest) = word.split_at(1);
    initial.to_ascii_uppercase() + rest
}

/// xorshift64*: the same numbers everywhere, good enough to look random to a codec.
pub(super) struct Dice(u64);

impl Dice {
    /// A seed of at least 1.
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    pub(super) const fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    pub(super) fn pick<'a>(&mut self, words: &[&'a str]) -> &'a str {
        // The high bits are the best ones of this generator.
        let index = (self.next() >> 32) % words.len() as u64;
        words[index as usize]
    }
}
