//! Lines on their way out: a bounded buffer, and a thread that writes it.
//!
//! Whoever has a line copies it into the buffer and goes on. When the reader of standard output
//! stands still, the buffer fills, and what comes then is dropped and counted; nobody waits.

use std::io::{self, ErrorKind, Write};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};
use prometheus_client::metrics::counter::Counter;

/// Bytes that may wait; as many again may be on their way into the writer.
const BOUND: usize = 4 * 1024 * 1024;

/// So many bytes are written at once rather than after the pause.
const URGENT: usize = 1024 * 1024;

/// Between two writes: lines that come meanwhile share one.
const PAUSE: Duration = Duration::from_millis(20);

/// Capacity that a buffer keeps once it is empty.
const KEPT: usize = 512 * 1024;

/// Where lines are handed in; dropping it ends the thread when all of them are written.
#[derive(Debug)]
pub(super) struct Queue {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// The thread waits here.
    work: Condvar,
    /// Those who flush wait here.
    progress: Condvar,
    dropped: Counter,
}

#[derive(Debug, Default)]
struct State {
    lines: Vec<u8>,
    /// Bytes ever accepted, and of these written or given up.
    accepted: u64,
    done: u64,
    /// The thread waits without an end.
    idle: bool,
    /// Somebody waits for what is there.
    hurry: bool,
    closed: bool,
}

impl Queue {
    /// Starts the thread that writes to `out`. `dropped` counts lines that nobody will see.
    pub(super) fn start(out: impl Write + Send + 'static, dropped: Counter) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            work: Condvar::new(),
            progress: Condvar::new(),
            dropped,
        });
        let writer = Writer {
            shared: Arc::clone(&shared),
            out,
            torn: false,
        };
        thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || writer.run())?;
        Ok(Self { shared })
    }

    /// Hands in a line, its end included.
    pub(super) fn push(&self, line: &[u8]) {
        let mut state = self.shared.state.lock();
        if state.lines.len() + line.len() > BOUND {
            drop(state);
            self.shared.dropped.inc();
            return;
        }
        state.lines.extend_from_slice(line);
        state.accepted += line.len() as u64;
        let urgent = state.lines.len() >= URGENT && state.lines.len() - line.len() < URGENT;
        if urgent || std::mem::take(&mut state.idle) {
            drop(state);
            self.shared.work.notify_one();
        }
    }

    /// Waits until what was handed in before is written, but not longer than `patience`.
    pub(super) fn flush(&self, patience: Duration) {
        let deadline = Instant::now() + patience;
        let mut state = self.shared.state.lock();
        let wanted = state.accepted;
        while state.done < wanted {
            state.hurry = true;
            self.shared.work.notify_one();
            if self
                .shared
                .progress
                .wait_until(&mut state, deadline)
                .timed_out()
            {
                return;
            }
        }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.shared.state.lock().closed = true;
        self.shared.work.notify_one();
    }
}

struct Writer<W> {
    shared: Arc<Shared>,
    out: W,
    /// A write failed in the middle of a line.
    torn: bool,
}

impl<W: Write> Writer<W> {
    fn run(mut self) {
        let shared = Arc::clone(&self.shared);
        let mut batch = Vec::new();
        let mut state = shared.state.lock();
        loop {
            wait_for_lines(&shared, &mut state);
            if state.lines.is_empty() {
                return;
            }
            std::mem::swap(&mut state.lines, &mut batch);
            MutexGuard::unlocked(&mut state, || self.write(&batch));
            state.done += batch.len() as u64;
            shared.progress.notify_all();
            batch.clear();
            batch.shrink_to(KEPT);
            wait_between(&shared, &mut state);
        }
    }

    /// Writes the batch; lines that the writer refuses are counted as dropped.
    fn write(&mut self, mut batch: &[u8]) {
        if self.torn {
            // The next line must not be glued to the half of another.
            self.torn = self.out.write_all(b"\n").is_err();
        }
        while !batch.is_empty() {
            match self.out.write(batch) {
                Ok(0) => return self.give_up(batch),
                Ok(written) => {
                    self.torn = batch[written - 1] != b'\n';
                    batch = &batch[written..];
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // Somebody else made the pipe non-blocking: we are the one who may wait for it.
                Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(PAUSE),
                Err(_) => return self.give_up(batch),
            }
        }
    }

    fn give_up(&self, rest: &[u8]) {
        self.shared
            .dropped
            .inc_by(memchr::memchr_iter(b'\n', rest).count() as u64);
    }
}

/// Until there are lines, or there will be none any more.
fn wait_for_lines(shared: &Shared, state: &mut MutexGuard<'_, State>) {
    while state.lines.is_empty() && !state.closed {
        state.idle = true;
        shared.work.wait(state);
    }
    state.idle = false;
}

/// A pause, unless there is much to write or somebody waits for it.
fn wait_between(shared: &Shared, state: &mut MutexGuard<'_, State>) {
    let deadline = Instant::now() + PAUSE;
    while !(state.hurry || state.closed || state.lines.len() >= URGENT) {
        if shared.work.wait_until(state, deadline).timed_out() {
            break;
        }
    }
    state.hurry = false;
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// A reader that takes each batch when the test says so.
    struct Gate {
        permits: Receiver<io::Result<usize>>,
        written: Sender<Vec<u8>>,
    }

    impl Write for Gate {
        fn write(&mut self, batch: &[u8]) -> io::Result<usize> {
            // The test is over: nobody reads any more.
            let most = self
                .permits
                .recv()
                .unwrap_or_else(|_| Err(ErrorKind::BrokenPipe.into()))?;
            let taken = &batch[..batch.len().min(most)];
            let _ = self.written.send(taken.to_vec());
            Ok(taken.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    type Permits = Sender<io::Result<usize>>;

    fn gated() -> (Queue, Permits, Receiver<Vec<u8>>, Counter) {
        let (permit, permits) = channel();
        let (written, batches) = channel();
        let dropped = Counter::default();
        let queue = Queue::start(Gate { permits, written }, dropped.clone()).unwrap();
        (queue, permit, batches, dropped)
    }

    #[test]
    fn a_line_appears_without_anybody_asking() {
        let (queue, permit, batches, dropped) = gated();
        permit.send(Ok(usize::MAX)).unwrap();
        queue.push(b"one\n");
        assert_eq!(batches.recv().unwrap(), b"one\n");
        permit.send(Ok(usize::MAX)).unwrap();
        queue.push(b"two\n");
        assert_eq!(batches.recv().unwrap(), b"two\n");
        assert_eq!(dropped.get(), 0);
    }

    #[test]
    fn a_reader_that_stands_still_costs_lines_but_nobody_waits() {
        let (queue, permit, batches, dropped) = gated();
        let line = vec![b'x'; 1023]
            .into_iter()
            .chain([b'\n'])
            .collect::<Vec<_>>();
        let pushed = 3 * BOUND / line.len();
        for _ in 0..pushed {
            queue.push(&line);
        }
        queue.flush(Duration::from_millis(1));
        let lost = usize::try_from(dropped.get()).unwrap();
        // At most two buffers are held: the one being written and the one that fills.
        assert!(
            lost >= pushed - 2 * BOUND / line.len(),
            "{lost} of {pushed}"
        );
        assert!(queue.shared.state.lock().lines.len() <= BOUND);

        for _ in 0..16 {
            permit.send(Ok(usize::MAX)).unwrap();
        }
        queue.flush(Duration::from_secs(60));
        let written: usize = batches.try_iter().map(|batch| batch.len()).sum();
        assert_eq!(
            written,
            (pushed - lost) * line.len(),
            "what was accepted was written, whole"
        );
    }

    #[test]
    fn a_closed_pipe_counts_its_lines_and_the_log_goes_on() {
        let (queue, permit, batches, dropped) = gated();
        permit.send(Err(ErrorKind::BrokenPipe.into())).unwrap();
        queue.push(b"lost\n");
        queue.flush(Duration::from_secs(60));
        assert_eq!(dropped.get(), 1);
        permit.send(Ok(usize::MAX)).unwrap();
        queue.push(b"kept\n");
        queue.flush(Duration::from_secs(60));
        assert_eq!(batches.try_iter().collect::<Vec<_>>().concat(), b"kept\n");
    }

    #[test]
    fn a_disk_that_fills_in_the_middle_of_a_line_spoils_only_that_line() {
        let (queue, permit, batches, dropped) = gated();
        permit.send(Ok(3)).unwrap();
        permit.send(Err(ErrorKind::StorageFull.into())).unwrap();
        queue.push(b"torn line\n");
        queue.flush(Duration::from_secs(60));
        assert_eq!(dropped.get(), 1);
        permit.send(Ok(usize::MAX)).unwrap();
        permit.send(Ok(usize::MAX)).unwrap();
        queue.push(b"whole line\n");
        queue.flush(Duration::from_secs(60));
        assert_eq!(
            batches.try_iter().collect::<Vec<_>>().concat(),
            b"tor\nwhole line\n"
        );
    }

    #[test]
    fn a_pipe_that_takes_little_or_nothing_at_once_gets_everything() {
        let (queue, permit, batches, dropped) = gated();
        let steps = [
            Ok(2),
            Err(ErrorKind::WouldBlock.into()),
            Err(ErrorKind::Interrupted.into()),
            Ok(usize::MAX),
        ];
        for step in steps {
            permit.send(step).unwrap();
        }
        queue.push(b"a line\n");
        queue.flush(Duration::from_secs(60));
        assert_eq!(batches.try_iter().collect::<Vec<_>>().concat(), b"a line\n");
        assert_eq!(dropped.get(), 0);
    }

    #[test]
    fn lines_of_many_threads_stay_whole_and_in_order() {
        let (queue, permit, batches, _) = gated();
        for _ in 0..4000 {
            permit.send(Ok(usize::MAX)).unwrap();
        }
        thread::scope(|scope| {
            for name in 0..4 {
                let queue = &queue;
                scope.spawn(move || {
                    for turn in 0..500 {
                        queue.push(format!("{name} {turn}\n").as_bytes());
                    }
                });
            }
        });
        drop(queue);
        let text = String::from_utf8(batches.iter().collect::<Vec<_>>().concat()).unwrap();
        for name in 0..4 {
            let of_it = text
                .lines()
                .filter(|line| line.starts_with(&format!("{name} ")));
            let expected = (0..500).map(|turn| format!("{name} {turn}"));
            assert!(of_it.eq(expected), "thread {name}");
        }
    }
}
