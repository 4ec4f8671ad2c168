//! The same message to many connections, compressed once.
//!
//! Without history the compressed form of a message depends on nothing but its bytes. It is looked
//! up by the whole payload, never by a part of it; it is kept for moments only, and little of it.
//! That a message was sent to somebody else a moment ago can be told from the time that it takes:
//! with what two clients send alike an application gives that away anyway.

use std::collections::HashMap;
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::time::Instant;

/// Messages that are remembered.
const MOST: usize = 64;

/// Bytes of payload that are remembered, together; compressed forms are smaller.
const MOST_BYTES: usize = 2 << 20;

/// Larger messages are not.
pub(super) const LARGEST: usize = 64 << 10;

/// For so long: a fan-out takes milliseconds.
const LIFE: Duration = Duration::from_secs(2);

/// What was compressed a moment ago.
#[derive(Debug, Default)]
pub(super) struct Fanout(Mutex<Recent>);

#[derive(Debug, Default)]
struct Recent {
    forms: HashMap<Key, Form>,
    /// The oldest first.
    order: VecDeque<(Instant, Key)>,
    bytes: usize,
}

/// All that a compressed form depends on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) level: u8,
    pub(super) bits: u8,
    pub(super) plain: Bytes,
}

/// `None`: it does not shrink.
type Form = Arc<OnceLock<Option<Bytes>>>;

impl Fanout {
    /// The compressed form; whoever asks first makes it, and who asks meanwhile waits no longer
    /// than it would have taken them. True: it was made by this call.
    pub(super) fn form(
        &self,
        key: &Key,
        make: impl FnOnce() -> Option<Bytes>,
    ) -> (Option<Bytes>, bool) {
        let mut made = false;
        let form = self.0.lock().entry(key);
        let form = form.get_or_init(|| {
            made = true;
            make()
        });
        (form.clone(), made)
    }
}

impl Recent {
    fn entry(&mut self, key: &Key) -> Form {
        let now = Instant::now();
        while let Some((since, _)) = self.order.front()
            && (now - *since > LIFE || self.order.len() >= MOST || self.bytes >= MOST_BYTES)
        {
            if let Some((_, oldest)) = self.order.pop_front() {
                self.bytes -= oldest.plain.len();
                self.forms.remove(&oldest);
            }
        }
        if let Some(form) = self.forms.get(key) {
            return Arc::clone(form);
        }
        // What is kept must not be a part of something larger.
        let key = Key {
            plain: Bytes::copy_from_slice(&key.plain),
            ..*key
        };
        self.bytes += key.plain.len();
        self.order.push_back((now, key.clone()));
        let form = Form::default();
        self.forms.insert(key, Arc::clone(&form));
        form
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(plain: &'static [u8]) -> Key {
        Key {
            level: 6,
            bits: 12,
            plain: Bytes::from_static(plain),
        }
    }

    fn made(fanout: &Fanout, key: &Key) -> bool {
        let coded = key.plain.slice(..1);
        let (form, made) = fanout.form(key, || Some(coded.clone()));
        assert_eq!(form, Some(coded));
        made
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_is_compressed_once_and_forgotten_soon() {
        let fanout = Fanout::default();
        assert!(made(&fanout, &key(b"tick")));
        assert!(!made(&fanout, &key(b"tick")));
        assert!(made(&fanout, &key(b"tock")), "a prefix is not enough");
        let other = Key {
            bits: 15,
            ..key(b"tick")
        };
        assert!(made(&fanout, &other), "nor another window");
        tokio::time::advance(LIFE + Duration::from_millis(1)).await;
        assert!(made(&fanout, &key(b"tick")));
        assert_eq!(fanout.0.lock().forms.len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn little_is_kept() {
        let fanout = Fanout::default();
        for number in 0..1_000_u32 {
            let plain = Bytes::from(number.to_be_bytes().repeat(LARGEST / 4));
            fanout.form(&Key { plain, ..key(b"") }, || None);
        }
        let recent = fanout.0.lock();
        assert!(recent.forms.len() <= MOST && recent.order.len() == recent.forms.len());
        assert!(recent.bytes <= MOST_BYTES + LARGEST);
    }
}
