//! Cuts a head into lines, each looked at once however the head arrives.

use super::refusal::Refusal;

/// How far an incomplete head was read; offsets count from its first byte.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Lines {
    /// Where the next line begins.
    begin: usize,
    /// No LF between `begin` and here.
    seen: usize,
}

impl Lines {
    /// The next line, without its CRLF; `None` if it has not ended yet.
    ///
    /// A line that ends beyond `limit` is [`Refusal::HeadTooLarge`], whatever is in it.
    pub(super) fn next<'a>(
        &mut self,
        head: &'a [u8],
        limit: usize,
    ) -> Result<Option<&'a [u8]>, Refusal> {
        let Some(offset) = memchr::memchr(b'\n', &head[self.seen..]) else {
            self.seen = head.len();
            return if head.len() > limit {
                Err(Refusal::HeadTooLarge)
            } else {
                Ok(None)
            };
        };
        let lf = self.seen + offset;
        if lf >= limit {
            return Err(Refusal::HeadTooLarge);
        }
        let [line @ .., b'\r'] = &head[self.begin..lf] else {
            return Err(Refusal::BareLf);
        };
        self.begin = lf + 1;
        self.seen = lf + 1;
        Ok(Some(line))
    }

    /// Bytes of the lines cut so far.
    pub(super) const fn taken(self) -> usize {
        self.begin
    }

    /// Nothing was looked at yet.
    pub(super) const fn is_fresh(self) -> bool {
        self.seen == 0
    }
}
