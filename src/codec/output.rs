//! Room at the end of a buffer, for engines that write into slices.

use bytes::BytesMut;

/// Lends `fill` up to `room` zeroed bytes after the end of `output` and keeps those it says it wrote.
/// On an error nothing is kept.
pub(super) fn append<E>(
    output: &mut BytesMut,
    room: usize,
    fill: impl FnOnce(&mut [u8]) -> Result<usize, E>,
) -> Result<usize, E> {
    let before = output.len();
    output.resize(before + room, 0);
    let filled = fill(&mut output[before..]);
    output.truncate(before + filled.as_ref().map_or(0, |&written| written.min(room)));
    filled
}

/// A first guess at what `input` bytes become; engines that need more are asked again.
pub(super) fn guess(input: usize) -> usize {
    (input / 4).clamp(256, 16 * 1024)
}
