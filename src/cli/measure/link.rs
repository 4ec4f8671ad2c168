//! How fast a link is, as people write it.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Bits a second; never 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Link(f64);

/// What the command line says of another text.
#[derive(Debug, thiserror::Error)]
#[error("write a speed such as 100mbit, 1.5gbit or 512kbit")]
pub(super) struct NoSpeed;

/// The units, the largest first.
const UNITS: [(&str, f64); 4] = [("gbit", 1e9), ("mbit", 1e6), ("kbit", 1e3), ("bit", 1.0)];

impl Link {
    /// As a number.
    pub(super) fn bits_per_second(self) -> f64 {
        self.0
    }

    /// How long so many bytes are on the way.
    pub(super) fn carries(self, bytes: usize) -> Duration {
        Duration::from_secs_f64(bytes as f64 * 8.0 / self.0)
    }

    /// The speed at which sending `saved` bytes takes as long as `cpu`; slower ones gain. `None`:
    /// nothing is saved.
    pub(super) fn break_even(saved: usize, cpu: Duration) -> Option<Self> {
        let nanos = cpu.as_secs_f64().max(1e-9);
        (saved > 0).then_some(Self(saved as f64 * 8.0 / nanos))
    }
}

impl FromStr for Link {
    type Err = NoSpeed;

    fn from_str(text: &str) -> Result<Self, NoSpeed> {
        let text = text.trim().to_ascii_lowercase();
        let text = text.strip_suffix("/s").unwrap_or(&text);
        let unit = UNITS
            .iter()
            .find_map(|(unit, bits)| Some((text.strip_suffix(unit)?, bits)));
        let (number, bits) = unit.ok_or(NoSpeed)?;
        let number: f64 = number.trim().parse().map_err(|_| NoSpeed)?;
        let speed = number * bits;
        if speed.is_finite() && speed >= 1.0 {
            Ok(Self(speed))
        } else {
            Err(NoSpeed)
        }
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = UNITS.iter().find(|(_, bits)| self.0 >= *bits);
        let (unit, bits) = unit.unwrap_or(&("bit", 1.0));
        let number = self.0 / bits;
        if number < 10.0 && number.fract() > 0.0 {
            write!(f, "{number:.1} {unit}/s")
        } else {
            write!(f, "{number:.0} {unit}/s")
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn speeds_are_read_as_people_write_them() {
        for (text, bits) in [
            ("100mbit", 1e8),
            ("1.5gbit", 1.5e9),
            ("512 kbit/s", 512e3),
            ("9600bit", 9600.0),
            ("10MBit", 1e7),
        ] {
            assert_eq!(text.parse::<Link>().unwrap(), Link(bits), "{text}");
        }
        for text in [
            "", "100", "mbit", "-1mbit", "0mbit", "1tbit", "nanmbit", "infgbit",
        ] {
            assert!(text.parse::<Link>().is_err(), "{text}");
        }
    }

    #[test]
    fn speeds_are_shown_in_the_unit_that_fits() {
        for (bits, text) in [
            (1e8, "100 mbit/s"),
            (2.34e9, "2.3 gbit/s"),
            (1e9, "1 gbit/s"),
            (900.0, "900 bit/s"),
        ] {
            assert_eq!(Link(bits).to_string(), text);
        }
    }

    #[test]
    fn at_the_break_even_coding_and_sending_take_as_long() {
        let cpu = Duration::from_millis(5);
        let link = Link::break_even(1_000_000, cpu).unwrap();
        assert_eq!(link.carries(1_000_000), cpu);
        assert_eq!(Link::break_even(0, cpu), None);
    }
}
