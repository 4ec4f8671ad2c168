//! One runtime for what h2 and TLS tests do in tasks; the tests themselves block.

use std::future::Future;
use std::sync::OnceLock;

use tokio::runtime::{Builder, Handle};

use super::PATIENCE;

fn handle() -> &'static Handle {
    static HANDLE: OnceLock<Handle> = OnceLock::new();
    HANDLE.get_or_init(|| {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime for the tests");
        let handle = runtime.handle().clone();
        // This thread drives sockets and timers for all.
        std::thread::spawn(move || runtime.block_on(std::future::pending::<()>()));
        handle
    })
}

/// Starts a task that nobody waits for.
pub fn spawn(task: impl Future<Output = ()> + Send + 'static) {
    handle().spawn(task);
}

/// Waits for this future; `what` completes "waited in vain for".
pub fn block_on<T>(what: &str, future: impl Future<Output = T>) -> T {
    let bounded = async { tokio::time::timeout(PATIENCE, future).await };
    match handle().block_on(bounded) {
        Ok(value) => value,
        Err(_) => panic!("waited in vain for {what}"),
    }
}
