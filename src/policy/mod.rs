//! Decides, purely: what happens to an answer, and why.
//!
//! Nothing here waits, logs or changes a head: [`plan`] looks at one, [`under`] at the queue.

mod asked;
mod message;
mod messages;
mod plan;
mod pressure;
mod reason;

pub use asked::Asked;
pub use message::{BackOff, Form, Told, should_compress};
pub use messages::{Coded, Head, MessageFault, Terms, Treatment};
pub use plan::{Plan, Question, Verdict, plan};
pub use pressure::under;
pub use reason::Reason;
