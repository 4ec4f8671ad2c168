//! The time on a line: RFC 3339, UTC, milliseconds.

use std::time::{SystemTime, UNIX_EPOCH};

const SECONDS_PER_DAY: u64 = 86_400;

/// A formatted time that formats only what changed since it was last asked.
#[derive(Debug)]
pub(super) struct Stamp {
    /// Seconds since 1970 of what `text` says; `u64::MAX`: nothing yet.
    second: u64,
    text: [u8; 24],
}

impl Default for Stamp {
    fn default() -> Self {
        Self {
            second: u64::MAX,
            text: *b"0000-00-00T00:00:00.000Z",
        }
    }
}

impl Stamp {
    /// `now` as text, 24 characters. A clock before 1970 reads 1970.
    pub(super) fn at(&mut self, now: SystemTime) -> &str {
        let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        if since.as_secs() != self.second {
            self.second = since.as_secs();
            self.write_second();
        }
        self.digits(20..23, u64::from(since.subsec_millis()));
        std::str::from_utf8(&self.text).unwrap_or_default()
    }

    fn write_second(&mut self) {
        let (year, month, day) = civil(self.second / SECONDS_PER_DAY);
        let of_day = self.second % SECONDS_PER_DAY;
        self.digits(0..4, year);
        self.digits(5..7, month);
        self.digits(8..10, day);
        self.digits(11..13, of_day / 3600);
        self.digits(14..16, of_day / 60 % 60);
        self.digits(17..19, of_day % 60);
    }

    fn digits(&mut self, place: std::ops::Range<usize>, mut value: u64) {
        for digit in self.text[place].iter_mut().rev() {
            *digit = b'0' + (value % 10) as u8;
            value /= 10;
        }
    }
}

/// Year, month and day of so many days after 1970-01-01, proleptic Gregorian.
const fn civil(days: u64) -> (u64, u64, u64) {
    // Counted in eras of 400 years that begin on 0000-03-01: the leap day is a year's last.
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 {
        from_march + 3
    } else {
        from_march - 9
    };
    let year = era * 400 + year + if month <= 2 { 1 } else { 0 };
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    fn at(millis: u64) -> String {
        Stamp::default()
            .at(UNIX_EPOCH + Duration::from_millis(millis))
            .to_owned()
    }

    #[test]
    fn known_times() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"),
            (1_709_164_800_001, "2024-02-29T00:00:00.001Z"),
            (1_798_761_599_050, "2026-12-31T23:59:59.050Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(at(millis), text);
        }
    }

    #[test]
    fn a_stamp_in_use_follows_the_clock_both_ways() {
        let mut stamp = Stamp::default();
        for (millis, text) in [
            (1_500, "1970-01-01T00:00:01.500Z"),
            (1_501, "1970-01-01T00:00:01.501Z"),
            (61_001, "1970-01-01T00:01:01.001Z"),
            (1_499, "1970-01-01T00:00:01.499Z"),
        ] {
            assert_eq!(stamp.at(UNIX_EPOCH + Duration::from_millis(millis)), text);
        }
        assert_eq!(
            stamp.at(UNIX_EPOCH - Duration::from_secs(9)),
            "1970-01-01T00:00:00.000Z"
        );
    }

    proptest! {
        #[test]
        fn the_second_is_what_an_independent_formatter_says(second in 0u64..=253_402_300_799) {
            let time = UNIX_EPOCH + Duration::from_secs(second);
            let text = Stamp::default().at(time).to_owned();
            // "Thu, 01 Jan 1970 00:00:00 GMT"
            let http = httpdate::fmt_http_date(time);
            prop_assert_eq!(&text[0..4], &http[12..16]);
            prop_assert_eq!(&text[8..10], &http[5..7]);
            prop_assert_eq!(&text[11..19], &http[17..25]);
            let month = 3 * (text[5..7].parse::<usize>()? - 1);
            prop_assert_eq!(&"JanFebMarAprMayJunJulAugSepOctNovDec"[month..month + 3], &http[8..11]);
        }
    }
}
