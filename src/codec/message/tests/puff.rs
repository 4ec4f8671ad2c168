//! Inflating as RFC 1951 has it, bit by bit: slow, and without a line in common with what it tests.

const LENGTH_BASE: [usize; 29] = [
    3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131,
    163, 195, 227, 258,
];
const LENGTH_EXTRA: [u32; 29] = [
    0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0,
];
const ORDER: [usize; 19] = [
    16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15,
];

struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Bits<'_> {
    fn take(&mut self, count: u32) -> usize {
        (0..count).fold(0, |value, bit| value | self.one() << bit)
    }

    fn one(&mut self) -> usize {
        let byte = *self.bytes.get(self.at / 8).expect("a stream that is whole");
        let bit = usize::from(byte >> (self.at % 8) & 1);
        self.at += 1;
        bit
    }

    fn is_out(&self) -> bool {
        self.at.div_ceil(8) == self.bytes.len()
    }
}

/// Canonical codes by their lengths (section 3.2.2).
struct Codes {
    counts: [usize; 16],
    symbols: Vec<usize>,
}

impl Codes {
    fn new(lengths: &[usize]) -> Self {
        let mut counts = [0; 16];
        for &length in lengths {
            counts[length] += 1;
        }
        counts[0] = 0;
        let of = |length| (0..lengths.len()).filter(move |&symbol| lengths[symbol] == length);
        Self {
            counts,
            symbols: (1..16).flat_map(of).collect(),
        }
    }

    fn take(&self, bits: &mut Bits<'_>) -> usize {
        let (mut code, mut first, mut index) = (0, 0, 0);
        for count in &self.counts[1..] {
            code |= bits.one();
            if code < first + count {
                return self.symbols[index + code - first];
            }
            index += count;
            first = (first + count) << 1;
            code <<= 1;
        }
        panic!("a code that is none");
    }
}

/// Appends to `window` what a message's payload and its tail stand for, and gives the farthest
/// distance in it.
pub(super) fn puff(payload: &[u8], window: &mut Vec<u8>) -> usize {
    let bytes = [payload, &super::TAIL].concat();
    let mut bits = Bits {
        bytes: &bytes,
        at: 0,
    };
    let mut farthest = 0;
    while !bits.is_out() {
        assert_eq!(bits.one(), 0, "a last block is not what we send");
        match bits.take(2) {
            0 => stored(&mut bits, window),
            1 => {
                let lengths: Vec<usize> = (0..288)
                    .map(|symbol| match symbol {
                        144..=255 => 9,
                        256..=279 => 7,
                        _ => 8,
                    })
                    .collect();
                let codes = (Codes::new(&lengths), Codes::new(&[5; 30]));
                farthest = farthest.max(block(&mut bits, &codes, window));
            }
            2 => {
                let codes = dynamic(&mut bits);
                farthest = farthest.max(block(&mut bits, &codes, window));
            }
            _ => panic!("a block of no kind"),
        }
    }
    farthest
}

fn stored(bits: &mut Bits<'_>, window: &mut Vec<u8>) {
    bits.at = bits.at.next_multiple_of(8);
    let (length, check) = (bits.take(16), bits.take(16));
    assert_eq!(length ^ check, 0xffff);
    window.extend((0..length).map(|_| bits.take(8) as u8));
}

/// Section 3.2.7.
fn dynamic(bits: &mut Bits<'_>) -> (Codes, Codes) {
    let literals = bits.take(5) + 257;
    let distances = bits.take(5) + 1;
    let mut lengths = [0; 19];
    for at in 0..bits.take(4) + 4 {
        lengths[ORDER[at]] = bits.take(3);
    }
    let codes = Codes::new(&lengths);
    let mut lengths = Vec::new();
    while lengths.len() < literals + distances {
        let (length, times) = match codes.take(bits) {
            16 => (*lengths.last().expect("one before"), 3 + bits.take(2)),
            17 => (0, 3 + bits.take(3)),
            18 => (0, 11 + bits.take(7)),
            length => (length, 1),
        };
        lengths.extend(std::iter::repeat_n(length, times));
    }
    assert_eq!(lengths.len(), literals + distances);
    let (literals, distances) = lengths.split_at(literals);
    (Codes::new(literals), Codes::new(distances))
}

fn block(bits: &mut Bits<'_>, codes: &(Codes, Codes), window: &mut Vec<u8>) -> usize {
    let mut farthest = 0;
    loop {
        match codes.0.take(bits) {
            literal @ 0..=255 => window.push(literal as u8),
            256 => return farthest,
            symbol => {
                let at = symbol - 257;
                let length = LENGTH_BASE[at] + bits.take(LENGTH_EXTRA[at]);
                let symbol = codes.1.take(bits);
                let distance = match symbol {
                    0..4 => symbol + 1,
                    _ => {
                        let extra = symbol as u32 / 2 - 1;
                        ((2 + symbol % 2) << extra) + 1 + bits.take(extra)
                    }
                };
                farthest = farthest.max(distance);
                let start = window.len().checked_sub(distance).expect("a byte that was");
                for at in start..start + length {
                    window.push(window[at]);
                }
            }
        }
    }
}
