//! What happens to the messages of a call, one by one, and why.
//!
//! The coding of a direction is said in its head, before its first message; [`Terms`] are what
//! follows from that for each message:
//!
//! | message | decision | reason |
//! |---|---|---|
//! | compressed, in a coding that the receiver takes | passes as it is | already_coded |
//! | compressed, in another one | inflated, then as if it had come plain | |
//! | plain, and the receiver takes none of the policy's codings | passes | not_accepted |
//! | plain, below `min_size` | passes | min_size |
//! | plain, beyond `max_message` | passes as it comes: nothing is held | max_message |
//! | plain, random bytes, or not smaller when compressed | passes | incompressible |
//! | plain, while the pool is too busy | passes | pressure |

use super::Reason;
use crate::codec::{Coding, DecodeError, Recipe};
use crate::config::settings::{Grpc, Requests};
use crate::frame::grpc::{COMPRESSED, Prefix};
use crate::head::grpc::{Announced, Codings, Dialect, Status};

/// How the messages of one direction are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// Plain messages are compressed by this recipe.
    pub compress: Option<Recipe>,
    /// Compressed messages.
    pub coded: Coded,
    /// Why nothing is compressed where `compress` is absent.
    pub plain: Reason,
    /// Only these flags may be set; others end the call.
    pub flags: u8,
    /// Bytes; smaller messages stay plain.
    pub min_size: u64,
    /// Bytes, inflated.
    pub max_message: u64,
}

/// What becomes of messages that are compressed already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coded {
    /// They pass as they are.
    Pass,
    /// They are inflated.
    Inflate(Coding),
    /// There may be none: the head announced no coding.
    Unannounced,
}

/// What the head of an answer says of its messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Head {
    /// What it says already.
    Keep,
    /// This coding.
    Announce(Coding),
    /// None.
    Silent,
}

/// What happens to one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Treatment {
    /// It goes on as it comes.
    Pass(Reason),
    /// It is held, then compressed.
    Compress(Recipe),
    /// It is held, then inflated, then compressed again if the terms say so.
    Inflate(Coding),
    /// The call ends.
    End(MessageFault),
}

/// What is wrong with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MessageFault {
    /// The stream ended within it.
    #[error("the stream ended within a message")]
    Cut,
    /// Flags that mean nothing.
    #[error("a message has unknown flags")]
    Flags,
    /// It is compressed, but the head said nothing of a coding.
    #[error("a message is compressed, but no encoding was announced")]
    Unannounced,
    /// It is larger than it may be when inflated.
    #[error("a message is larger than {0} bytes")]
    TooLarge(u64),
    /// It does not decompress.
    #[error("a message does not decompress")]
    Corrupt(#[source] DecodeError),
    /// What all calls may hold is held.
    #[error("too many messages are held")]
    Full,
    /// Its base64 is none.
    #[error("the body is no base64")]
    Text,
    /// No worker could take it.
    #[error("a message was lost")]
    Lost,
}

impl MessageFault {
    /// How a call that ends with it went.
    #[must_use]
    pub fn status(self) -> Status {
        match self {
            Self::Cut
            | Self::Flags
            | Self::Unannounced
            | Self::Corrupt(_)
            | Self::Text
            | Self::Lost => Status::Internal,
            Self::TooLarge(_) | Self::Full => Status::ResourceExhausted,
        }
    }

    /// One sentence for the client.
    #[must_use]
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Cut => "the stream ended within a message",
            Self::Flags => "a message has unknown flags",
            Self::Unannounced => "a message is compressed, but no encoding was announced",
            Self::TooLarge(_) => "a message is too large",
            Self::Corrupt(_) => "a message does not decompress",
            Self::Full => "too many messages are held",
            Self::Text => "the body is no base64",
            Self::Lost => "a message was lost",
        }
    }
}

impl Terms {
    /// For an answer to a client that takes these codings, of an app that announced that one.
    #[must_use]
    pub fn to_client(policy: &Grpc, takes: Codings, app: Announced) -> (Self, Head) {
        let (coded, head, recipe) = match app {
            Announced::Unknown => (Coded::Pass, Head::Keep, None),
            Announced::Known(coding) if takes.has(coding) => {
                let ours = policy.encodings.contains(&coding).then_some(coding);
                (Coded::Pass, Head::Keep, ours)
            }
            Announced::Known(coding) => {
                let ours = chosen(policy, takes);
                (Coded::Inflate(coding), head_of(ours), ours)
            }
            Announced::Identity => {
                let ours = chosen(policy, takes);
                (Coded::Unannounced, head_of(ours), ours)
            }
        };
        let compress = recipe
            .filter(|_| policy.compress)
            .map(|coding| Recipe::new(coding, policy.levels.of(coding)));
        let terms = Self {
            compress,
            coded,
            plain: if policy.compress {
                Reason::NotAccepted
            } else {
                Reason::Disabled
            },
            flags: u8::MAX,
            min_size: policy.min_size,
            max_message: policy.max_message,
        };
        (terms, head)
    }

    /// For a request whose head announced that coding. `None`: the coding is unknown.
    #[must_use]
    pub fn to_app(policy: &Grpc, dialect: Dialect, client: Announced) -> Option<Self> {
        let coded = match (policy.requests, client) {
            (Requests::Pass, _) => Coded::Pass,
            (Requests::Decompress, Announced::Known(coding)) => Coded::Inflate(coding),
            (Requests::Decompress, Announced::Identity) => Coded::Unannounced,
            (Requests::Decompress, Announced::Unknown) => return None,
        };
        let strict = dialect == Dialect::Grpc && policy.requests == Requests::Decompress;
        Some(Self {
            compress: None,
            coded,
            plain: Reason::Disabled,
            flags: if strict { COMPRESSED } else { u8::MAX },
            min_size: policy.min_size,
            max_message: policy.max_message,
        })
    }

    /// What happens to the message behind this prefix.
    #[must_use]
    pub fn decide(&self, prefix: Prefix) -> Treatment {
        let length = u64::from(prefix.length);
        if prefix.flags & !self.flags != 0 {
            return Treatment::End(MessageFault::Flags);
        }
        if prefix.is_compressed() {
            return match self.coded {
                Coded::Pass => Treatment::Pass(Reason::AlreadyCoded),
                Coded::Unannounced => Treatment::End(MessageFault::Unannounced),
                Coded::Inflate(_) if length > self.max_message => {
                    Treatment::End(MessageFault::TooLarge(self.max_message))
                }
                Coded::Inflate(coding) => Treatment::Inflate(coding),
            };
        }
        match self.compress {
            None => Treatment::Pass(self.plain),
            Some(_) if length < self.min_size || length == 0 => Treatment::Pass(Reason::MinSize),
            Some(_) if length > self.max_message => Treatment::Pass(Reason::MaxMessage),
            Some(recipe) => Treatment::Compress(recipe),
        }
    }
}

/// The first of the policy's codings that the client takes.
fn chosen(policy: &Grpc, takes: Codings) -> Option<Coding> {
    let mut codings = policy.encodings.iter().copied();
    codings
        .find(|&coding| takes.has(coding))
        .filter(|_| policy.compress)
}

fn head_of(coding: Option<Coding>) -> Head {
    coding.map_or(Head::Silent, Head::Announce)
}

#[cfg(test)]
mod tests;
