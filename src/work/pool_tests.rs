use std::sync::mpsc;

use super::*;

const MS: Duration = Duration::from_millis(1);

fn wait<T>(errand: Errand<T>) -> Result<Done<T>, Lost> {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime")
        .block_on(errand)
}

fn start(threads: usize) -> (Pool, PoolMetrics) {
    let metrics = PoolMetrics::default();
    (
        Pool::start(threads, 0, 20 * MS, metrics.clone()).expect("threads"),
        metrics,
    )
}

/// Holds one thread of the pool until the sender is dropped; returns once it is held.
fn hold(pool: &Pool, cost: Duration) -> (Errand<()>, mpsc::Sender<()>) {
    let (release, released) = mpsc::channel::<()>();
    let (holding, held) = mpsc::channel();
    let errand = pool.run(Lane::Short, cost, move || {
        holding.send(()).expect("the test waits for it");
        let _ = released.recv();
    });
    held.recv().expect("the job runs");
    (errand, release)
}

fn gauges(metrics: &PoolMetrics) -> (i64, i64) {
    (metrics.running.get(), metrics.waiting.get())
}

#[test]
fn a_job_brings_back_what_it_computed_and_what_it_cost() {
    let (pool, metrics) = start(2);
    let done = wait(pool.run(Lane::Bulk, MS, || {
        let clock = CpuClock::start();
        while clock.elapsed() < 2 * MS {}
        std::thread::current().name().map(str::to_owned)
    }))
    .expect("done");
    assert!(
        done.value
            .is_some_and(|name| name.starts_with("thinwire-pool-"))
    );
    assert!(done.cpu >= 2 * MS);
    assert_eq!(gauges(&metrics), (0, 0));
}

#[test]
fn bulk_gets_every_fourth_turn_and_the_short_lane_the_others() {
    let (pool, _) = start(1);
    let (held, release) = hold(&pool, MS);
    let (turns, turned) = mpsc::channel();
    let errands: Vec<_> = (0..8)
        .flat_map(|_| [Lane::Bulk, Lane::Short])
        .map(|lane| {
            let turns = turns.clone();
            pool.run(lane, MS, move || {
                turns.send(lane).expect("the test listens");
            })
        })
        .collect();
    drop(release);
    let order: String = turned
        .iter()
        .take(errands.len())
        .map(|lane| if lane == Lane::Short { 's' } else { 'b' })
        .collect();
    assert_eq!(order, "sssbsssbssbbbbbb");
    drop(held);
}

#[test]
fn a_withdrawn_job_is_freed_at_once_wherever_it_waits() {
    let (pool, metrics) = start(1);
    let (held, release) = hold(&pool, MS);
    let before = pool.pressure();
    let first = pool.run(Lane::Short, MS, || ());
    let input = Arc::new([7_u8; 1000]);
    let content = Arc::downgrade(&input);
    let errand = pool.run(Lane::Short, 50 * MS, move || input.len());
    let last = pool.run(Lane::Short, MS, || ());
    assert_eq!(gauges(&metrics), (1, 3));
    assert!(pool.pressure().expected_wait >= 50 * MS);
    drop(errand);
    assert!(
        content.upgrade().is_none(),
        "its input is gone while the thread is still held"
    );
    assert_eq!(gauges(&metrics), (1, 2));
    assert!(pool.pressure().expected_wait < 50 * MS);
    drop((first, last));
    assert_eq!(pool.pressure(), before);
    drop(release);
    wait(held).expect("the held job ends");
    assert_eq!(gauges(&metrics), (0, 0));
}

#[test]
fn a_running_job_that_nobody_waits_for_ends_and_its_result_is_dropped() {
    struct Told(mpsc::Sender<()>);
    impl Drop for Told {
        fn drop(&mut self) {
            let _ = self.0.send(());
        }
    }
    let (pool, metrics) = start(1);
    let (release, released) = mpsc::channel::<()>();
    let (running, runs) = mpsc::channel();
    let (tell, told) = mpsc::channel();
    let errand = pool.run(Lane::Short, MS, move || {
        running.send(()).expect("the test listens");
        let _ = released.recv();
        Told(tell)
    });
    runs.recv().expect("it runs");
    drop(errand);
    drop(release);
    told.recv().expect("the result was dropped");
    wait(pool.run(Lane::Short, MS, || ())).expect("the thread goes on");
    assert_eq!(gauges(&metrics), (0, 0));
}

#[test]
fn a_panic_costs_one_errand_and_no_thread() {
    let (pool, metrics) = start(1);
    for _ in 0..3 {
        let lost = wait(pool.run(Lane::Short, MS, || {
            panic!("a codec broke, as this test wants")
        }));
        assert_eq!(lost.map(|done: Done<()>| done.value), Err(Lost::Panicked));
        assert_eq!(gauges(&metrics), (0, 0));
        assert_eq!(pool.pressure().expected_wait, Duration::ZERO);
    }
    assert_eq!(
        wait(pool.run(Lane::Short, MS, || 5)).expect("done").value,
        5
    );
}

#[test]
fn pressure_rises_with_what_waits_and_falls_again() {
    let (pool, _) = start(2);
    assert_eq!(pool.pressure().expected_wait, Duration::ZERO);
    let (first, release_first) = hold(&pool, 8 * MS);
    assert_eq!(
        pool.pressure().expected_wait,
        Duration::ZERO,
        "one thread is free"
    );
    let (second, release_second) = hold(&pool, 8 * MS);
    assert_eq!(
        pool.pressure().expected_wait,
        4 * MS,
        "half of two times 8 ms, by two threads"
    );
    let waiting: Vec<_> = (0..10)
        .map(|_| pool.run(Lane::Bulk, 10 * MS, || ()))
        .collect();
    assert_eq!(pool.pressure().expected_wait, 54 * MS);
    drop((release_first, release_second));
    for errand in waiting {
        wait(errand).expect("done");
    }
    wait(first).expect("done");
    wait(second).expect("done");
    assert_eq!(pool.pressure().expected_wait, Duration::ZERO);
}

#[test]
fn estimates_are_corrected_by_what_work_takes_here() {
    let load = Load::new(1);
    load.waiting.store(nanos(10 * MS), Relaxed);
    assert_eq!(load.expected_wait(), 10 * MS);
    for _ in 0..500 {
        load.learn(MS, 3 * MS);
    }
    assert!(load.expected_wait() > 29 * MS && load.expected_wait() <= 30 * MS);
    for _ in 0..500 {
        load.learn(MS, MS / 2);
    }
    assert!(load.expected_wait() < 6 * MS);
    for _ in 0..500 {
        load.learn(Duration::ZERO, MS);
    }
    assert_eq!(load.expected_wait(), 160 * MS, "bounded, however wrong");
    for _ in 0..5_000 {
        load.learn(Duration::ZERO, Duration::ZERO);
    }
    assert!(load.expected_wait() >= MS, "nothing learned from nothing");
}

#[test]
fn a_full_queue_refuses_new_answers_and_lets_running_ones_go_on() {
    let (pool, metrics) = start(1);
    let (held, release) = hold(&pool, MS);
    let second = Duration::from_secs(1);
    let much: Vec<_> = (0..2)
        .map(|_| pool.run(Lane::Bulk, second, || ()))
        .collect();
    assert_eq!(gauges(&metrics), (1, 2));
    let refused = pool.run(Lane::Short, MS, || ());
    let more = pool.run_more(Lane::Short, MS, || "goes on");
    assert_eq!(gauges(&metrics), (1, 3));
    assert_eq!(wait(refused).map(|done| done.value), Err(Lost::Full));
    drop(much);
    drop(release);
    assert_eq!(wait(more).expect("done").value, "goes on");
    wait(held).expect("done");
    assert_eq!(
        wait(pool.run(Lane::Short, MS, || 1))
            .expect("room again")
            .value,
        1
    );
}

#[test]
fn a_pool_that_is_dropped_ends_its_threads_and_loses_what_waits() {
    let (pool, metrics) = start(2);
    let (first, release_first) = hold(&pool, MS);
    let (second, release_second) = hold(&pool, MS);
    let errand = pool.run(Lane::Short, MS, || ());
    let shared = Arc::downgrade(&pool.handle.shared);
    let clone = pool.clone();
    drop(pool);
    assert_eq!(gauges(&metrics), (2, 1), "a clone keeps it going");
    drop(clone);
    assert_eq!(wait(errand).map(|done| done.value), Err(Lost::Stopped));
    assert_eq!(gauges(&metrics), (2, 0));
    drop((release_first, release_second));
    wait(first).expect("what ran has ended its piece");
    wait(second).expect("what ran has ended its piece");
    // The threads hold it to their end.
    while shared.upgrade().is_some() {
        std::thread::yield_now();
    }
    assert_eq!(gauges(&metrics), (0, 0));
}

#[test]
fn the_threads_run_at_their_own_priority() {
    let pool = Pool::start(1, 7, 20 * MS, PoolMetrics::default()).expect("threads");
    let nice = || rustix::process::getpriority_process(None).expect("a priority");
    let before = nice();
    // Nothing lowers a priority that is lower already.
    assert_eq!(
        wait(pool.run(Lane::Short, MS, nice)).expect("done").value,
        before.max(7)
    );
    assert_eq!(nice(), before, "this thread keeps its own");
}

#[test]
fn many_threads_of_clients_come_and_go_and_nothing_is_left() {
    let (pool, metrics) = start(3);
    std::thread::scope(|scope| {
        for client in 0..8_usize {
            let pool = pool.clone();
            scope.spawn(move || {
                for round in 0..200 {
                    let lane = if round % 3 == 0 {
                        Lane::Bulk
                    } else {
                        Lane::Short
                    };
                    let errand = pool.run(lane, MS / 100, move || client * 1000 + round);
                    if (client + round) % 2 == 0 {
                        assert_eq!(wait(errand).expect("done").value, client * 1000 + round);
                    }
                }
            });
        }
    });
    // Withdrawn jobs may still run: the last ones go through all threads.
    while gauges(&metrics) != (0, 0) {
        std::thread::yield_now();
    }
    assert_eq!(pool.pressure().expected_wait, Duration::ZERO);
}
