//! What things weigh in memory, rather too much than too little.
//!
//! `cache.memory` is a promise about the allocator. So allocations are counted in the size classes
//! that allocators round up to, and each entry with what the tables that know it cost.

use http::HeaderMap;

/// Tables, queue entries and allocation headers for one object or variant.
pub(super) const ENTRY: usize = 640;

/// One allocation of so many bytes: classes are eighths of powers of two.
pub(super) fn allocation(bytes: usize) -> usize {
    let step = (bytes.next_power_of_two() / 8).max(16);
    bytes.div_ceil(step) * step + 48
}

/// A kept head: the table, and the text in its one allocation.
pub(super) fn head(headers: &HeaderMap) -> usize {
    // http's bucket is 104 bytes, a further value of one name 72; an index is 4 bytes.
    let table = headers.capacity() * (104 + 8) + (headers.len() - headers.keys_len()) * 144;
    let text: usize = headers.values().map(http::HeaderValue::len).sum();
    let names: usize = headers.keys().map(|name| name.as_str().len() + 56).sum();
    allocation(table) + allocation(text) + names
}
