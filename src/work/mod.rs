//! Computes: the CPU pool, never on the threads that serve the network.
//!
//! A job is one bounded piece of work (a slice of a stream, a whole body). There are two lanes: the
//! short one is for what somebody waits for at the start of an answer, the bulk one for the rest,
//! which gets every fourth turn while both wait. Within a lane it is first come, first served.
//!
//! Who loses interest drops the [`Errand`]: a job that waits is freed at once, one that runs ends its
//! piece and its result is dropped. A job that panics costs its own errand and nothing else.
//!
//! What waits is bounded. New answers ([`Pool::run`]) are refused once the queue holds more than a
//! bound of estimated work, long after [`Pool::pressure`] told the policy to send them plain.
//! Answers whose head is out ([`Pool::run_more`]) are always let in, for they cannot be taken back;
//! each has one piece away at a time, so they are bounded by the number of answers under way.

mod clock;
mod errand;
mod pool;
mod queue;

pub use clock::CpuClock;
pub use errand::{Done, Errand, Lost};
pub use pool::{Pool, Pressure};
pub use queue::Lane;
