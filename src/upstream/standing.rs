//! Whether a server gets requests: what its checks say, and what became of the requests it got.
//!
//! Pure: the time is given. A server that fails so often in a row is left out for a while, twice as
//! long each further time; then one request finds out whether it is back (as nginx does), and what
//! comes back gets its load little by little (as Envoy's slow start does).

use std::time::Duration;

use tokio::time::Instant;

use crate::config::settings::{Eject, Health};

/// The longest that a server is left out at a time.
const LONGEST: Duration = Duration::from_secs(300);

/// While one request finds out whether a server is back, others wait so long for its answer.
const PROBE: Duration = Duration::from_secs(1);

/// A server that is back has its full share after this.
pub(super) const RAMP: Duration = Duration::from_secs(10);

/// The share in percent that it begins with.
const FIRST_SHARE: u32 = 10;

/// What happened to the standing, to be told once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// No more requests for it.
    Out,
    /// It gets requests again.
    Back,
}

/// What a server may be given right now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Offer {
    /// It may be asked.
    pub(super) usable: bool,
    /// Percent of its full load, 1 to 100.
    pub(super) share: u32,
}

/// The standing of one server.
#[derive(Debug, Clone, Default)]
pub(super) struct Standing {
    /// Its checks fail.
    unhealthy: bool,
    /// Checks in a row that say the opposite of `unhealthy`.
    streak: u32,
    /// Requests in a row that failed.
    failures: u32,
    /// Left out until then, and from then on until a request succeeds.
    out: Option<Instant>,
    /// How often it was left out lately, and for how long at last.
    times: u32,
    span: Duration,
    /// When it came back last; absent once that is forgotten.
    back: Option<Instant>,
}

impl Offer {
    pub(super) const FULL: Self = Self {
        usable: true,
        share: 100,
    };
}

impl Standing {
    /// It gets requests; what the gauge says.
    pub(super) fn is_up(&self) -> bool {
        !self.unhealthy && self.out.is_none()
    }

    /// Nothing has to be remembered of it.
    pub(super) fn is_settled(&self) -> bool {
        self.is_up() && self.failures == 0 && self.back.is_none()
    }

    pub(super) fn offer(&self, now: Instant) -> Offer {
        let share = self.back.map_or(100, |back| ramp(now - back));
        Offer {
            usable: !self.unhealthy && self.out.is_none_or(|until| until <= now),
            share,
        }
    }

    /// It was chosen: where its time is over, this request alone finds out whether it is back.
    pub(super) fn chosen(&mut self, now: Instant) {
        if let Some(until) = &mut self.out
            && *until <= now
        {
            *until = now + PROBE;
        }
    }

    /// A request failed. `spare`: another server gets requests; the last one is never left out.
    pub(super) fn failed(&mut self, now: Instant, eject: &Eject, spare: bool) -> Option<Change> {
        self.failures = self.failures.saturating_add(1);
        let known = self.out.is_some();
        if !(known || spare && self.failures >= eject.failures) {
            return None;
        }
        // Requests that were under way when it was left out say nothing new.
        if self.out.is_some_and(|until| until > now + PROBE) {
            return None;
        }
        let doubled = 1_u32.checked_shl(self.times).unwrap_or(u32::MAX);
        self.span = eject.for_.saturating_mul(doubled).min(LONGEST);
        self.times += 1;
        self.failures = 0;
        self.back = None;
        self.out = Some(now + self.span);
        (!known && !self.unhealthy).then_some(Change::Out)
    }

    /// A request was answered.
    pub(super) fn answered(&mut self, now: Instant) -> Option<Change> {
        self.failures = 0;
        if self.out.take().is_some() {
            self.back = Some(now);
            return (!self.unhealthy).then_some(Change::Back);
        }
        let forgotten = self.span.max(RAMP);
        if self.back.is_some_and(|back| now - back >= forgotten) {
            self.back = None;
            self.times = 0;
        }
        None
    }

    /// A check succeeded, or did not.
    pub(super) fn checked(
        &mut self,
        now: Instant,
        healthy: bool,
        health: &Health,
    ) -> Option<Change> {
        if healthy != self.unhealthy {
            self.streak = 0;
            return None;
        }
        self.streak += 1;
        let enough = if healthy {
            health.healthy_after
        } else {
            health.unhealthy_after
        };
        if self.streak < enough {
            return None;
        }
        self.streak = 0;
        self.unhealthy = !healthy;
        if healthy {
            self.back = Some(now);
        }
        let change = if healthy { Change::Back } else { Change::Out };
        self.out.is_none().then_some(change)
    }
}

/// Linear, from [`FIRST_SHARE`] to all.
fn ramp(since: Duration) -> u32 {
    let percent = since.as_millis() * 100 / RAMP.as_millis();
    u32::try_from(percent)
        .unwrap_or(100)
        .clamp(FIRST_SHARE, 100)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::settings::HealthCheck;

    const EJECT: Eject = Eject {
        failures: 3,
        for_: Duration::from_secs(10),
    };

    const HEALTH: Health = Health {
        check: HealthCheck::Tcp,
        interval: Duration::from_secs(5),
        timeout: Duration::from_secs(1),
        unhealthy_after: 2,
        healthy_after: 2,
    };

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn fail(standing: &mut Standing, now: Instant) -> Option<Change> {
        standing.failed(now, &EJECT, true)
    }

    /// Left out at `now`.
    fn out(now: Instant) -> Standing {
        let mut standing = Standing::default();
        assert_eq!(fail(&mut standing, now), None);
        assert_eq!(fail(&mut standing, now), None);
        assert_eq!(fail(&mut standing, now), Some(Change::Out));
        standing
    }

    #[test]
    fn failures_in_a_row_leave_it_out_and_a_success_between_forgives_them() {
        let now = Instant::now();
        let mut standing = Standing::default();
        assert!(standing.is_settled());
        for _ in 0..4 {
            assert_eq!(fail(&mut standing, now), None);
            assert_eq!(fail(&mut standing, now), None);
            assert!(!standing.is_settled());
            assert_eq!(standing.answered(now), None);
            assert!(standing.is_settled());
        }
        let standing = out(now);
        assert!(!standing.is_up());
        assert!(!standing.offer(now + seconds(9)).usable);
        assert!(standing.offer(now + seconds(10)).usable);
    }

    #[test]
    fn the_last_server_is_never_left_out() {
        let now = Instant::now();
        let mut standing = Standing::default();
        for _ in 0..20 {
            assert_eq!(standing.failed(now, &EJECT, false), None);
        }
        assert!(standing.is_up() && standing.offer(now).usable);
        assert_eq!(fail(&mut standing, now), Some(Change::Out));
    }

    #[test]
    fn one_request_at_a_time_finds_out_whether_it_is_back() {
        let start = Instant::now();
        let mut standing = out(start);
        let now = start + seconds(10);
        standing.chosen(now);
        assert!(!standing.offer(now).usable, "the others wait");
        assert!(
            standing.offer(now + PROBE).usable,
            "its client left: the next"
        );
        assert_eq!(standing.answered(now), Some(Change::Back));
        assert!(standing.is_up() && standing.offer(now).usable);
    }

    #[test]
    fn each_time_is_twice_as_long_up_to_five_minutes_and_a_good_stretch_forgives() {
        let mut now = Instant::now();
        let mut standing = out(now);
        for expected in [20, 40, 80, 160, 300, 300] {
            now += standing.span;
            standing.chosen(now);
            assert_eq!(fail(&mut standing, now), None, "that is known");
            assert_eq!(standing.span, seconds(expected));
        }
        now += standing.span;
        assert_eq!(standing.answered(now), Some(Change::Back));
        now += seconds(300);
        assert_eq!(standing.answered(now), None);
        assert!(standing.is_settled());
        assert_eq!((standing.times, out(now).span), (0, seconds(10)));
    }

    #[test]
    fn requests_that_were_under_way_do_not_prolong_it() {
        let now = Instant::now();
        let mut standing = out(now);
        for _ in 0..10 {
            assert_eq!(fail(&mut standing, now + seconds(1)), None);
        }
        assert!(standing.offer(now + seconds(10)).usable);
    }

    #[test]
    fn what_comes_back_gets_its_load_little_by_little() {
        let now = Instant::now();
        let mut standing = out(now);
        standing.answered(now);
        let shares: Vec<_> = [0, 1, 3, 9, 10, 60]
            .map(|after| standing.offer(now + seconds(after)).share)
            .into();
        assert_eq!(shares, [10, 10, 30, 90, 100, 100]);
        standing.answered(now + RAMP);
        assert!(standing.is_settled());
    }

    #[test]
    fn checks_count_in_a_row_in_both_directions() {
        let now = Instant::now();
        let mut standing = Standing::default();
        let table = [
            (false, None),
            (true, None),
            (false, None),
            (false, Some(Change::Out)),
            (false, None),
            (true, None),
            (false, None),
            (true, None),
            (true, Some(Change::Back)),
            (true, None),
        ];
        for (step, (healthy, expected)) in table.into_iter().enumerate() {
            let change = standing.checked(now, healthy, &HEALTH);
            assert_eq!(change, expected, "step {step}");
        }
        assert_eq!(
            standing.offer(now),
            Offer {
                usable: true,
                share: 10
            }
        );
    }

    #[test]
    fn out_is_told_once_whoever_finds_it_and_back_when_both_agree() {
        let now = Instant::now();
        let mut standing = out(now);
        assert_eq!(standing.checked(now, false, &HEALTH), None);
        assert_eq!(standing.checked(now, false, &HEALTH), None);
        assert_eq!(standing.answered(now), None, "its checks still fail");
        assert!(!standing.is_up());
        standing.checked(now, true, &HEALTH);
        assert_eq!(standing.checked(now, true, &HEALTH), Some(Change::Back));
    }
}
