//! What is waited for: a job on its way through the pool.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::oneshot;

use super::pool::Shared;
use super::queue::Ticket;

/// What a job brought back.
#[derive(Debug)]
pub struct Done<T> {
    /// What it returned.
    pub value: T,
    /// Time in the queue.
    pub waited: Duration,
    /// CPU time of the job.
    pub cpu: Duration,
}

/// Why a job brings nothing back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Lost {
    /// The queue is full; the job was not taken.
    #[error("the compression pool is full")]
    Full,
    /// The job panicked.
    #[error("a job of the compression pool panicked")]
    Panicked,
    /// The pool stopped before the job had its turn.
    #[error("the compression pool has stopped")]
    Stopped,
}

/// A job under way. Dropping it withdraws the job.
#[derive(Debug)]
#[must_use = "dropping an errand withdraws its job"]
pub struct Errand<T> {
    state: State<T>,
}

#[derive(Debug)]
enum State<T> {
    Refused(Lost),
    Away {
        receiver: oneshot::Receiver<Done<T>>,
        shared: Arc<Shared>,
        ticket: Ticket,
    },
    Over,
}

impl<T> Errand<T> {
    pub(super) fn away(
        receiver: oneshot::Receiver<Done<T>>,
        shared: Arc<Shared>,
        ticket: Ticket,
    ) -> Self {
        Self {
            state: State::Away {
                receiver,
                shared,
                ticket,
            },
        }
    }

    pub(super) fn refused(lost: Lost) -> Self {
        Self {
            state: State::Refused(lost),
        }
    }
}

impl<T> Future for Errand<T> {
    type Output = Result<Done<T>, Lost>;

    /// # Panics
    /// When polled again after it was ready.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let outcome = match &mut self.state {
            State::Refused(lost) => Err(*lost),
            State::Away {
                receiver, shared, ..
            } => {
                let received = std::task::ready!(Pin::new(receiver).poll(cx));
                // Nothing was sent: the job unwound, or never ran.
                received.map_err(|_| {
                    if shared.stopping() {
                        Lost::Stopped
                    } else {
                        Lost::Panicked
                    }
                })
            }
            State::Over => panic!("an errand was polled after it was done"),
        };
        self.state = State::Over;
        Poll::Ready(outcome)
    }
}

impl<T> Drop for Errand<T> {
    fn drop(&mut self) {
        if let State::Away { shared, ticket, .. } = &self.state {
            shared.withdraw(*ticket);
        }
    }
}
