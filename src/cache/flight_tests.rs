use super::*;

const LONG: Duration = Duration::from_secs(600);

fn lead(flights: &Flights<u32>, key: u32) -> Lead<u32> {
    match flights.join(&key, Instant::now()) {
        Join::Lead(lead) => lead,
        other => panic!("not the leader: {other:?}"),
    }
}

fn wait(flights: &Flights<u32>, key: u32) -> Wait<u32> {
    match flights.join(&key, Instant::now()) {
        Join::Wait(wait) => wait,
        other => panic!("does not wait: {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn all_who_come_meanwhile_wait_for_one() {
    let flights = Flights::default();
    let leader = lead(&flights, 1);
    let waiting: Vec<_> = (0..499).map(|_| wait(&flights, 1)).collect();
    let other = lead(&flights, 2);
    assert_eq!(flights.aloft(), 2);
    leader.landed();
    for wait in waiting {
        assert!(matches!(wait.ended(LONG).await, Waited::Landed));
    }
    other.landed();
    assert_eq!(flights.aloft(), 0);
    lead(&flights, 1).landed();
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_leaves_hands_on_to_one_who_waits() {
    let flights = Flights::default();
    let leader = lead(&flights, 1);
    let (first, second, third) = (wait(&flights, 1), wait(&flights, 1), wait(&flights, 1));
    drop(first);
    drop(leader);
    let Waited::Lead(second) = second.ended(LONG).await else {
        panic!("nobody leads");
    };
    let fourth = wait(&flights, 1);
    second.landed();
    assert!(matches!(third.ended(LONG).await, Waited::Landed));
    assert!(matches!(fourth.ended(LONG).await, Waited::Landed));
}

#[tokio::test(start_paused = true)]
async fn a_duty_that_arrives_at_one_who_has_just_left_goes_on() {
    let flights = Flights::default();
    let leader = lead(&flights, 1);
    let (first, second) = (wait(&flights, 1), wait(&flights, 1));
    drop(leader);
    // The duty lies in its channel when it leaves.
    drop(first);
    assert!(matches!(second.ended(LONG).await, Waited::Lead(_)));
    assert_eq!(flights.aloft(), 0, "and ends with the last");
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_panics_hands_on_too() {
    let flights = Flights::default();
    let leader = lead(&flights, 1);
    let waiting = wait(&flights, 1);
    let task = tokio::spawn(async move {
        let _leader = leader;
        panic!("as a story needs it");
    });
    assert!(task.await.is_err());
    assert!(matches!(waiting.ended(LONG).await, Waited::Lead(_)));
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_shared_lets_all_go_and_is_remembered_for_a_while() {
    let flights = Flights::default();
    let now = Instant::now();
    let leader = lead(&flights, 1);
    let waiting: Vec<_> = (0..10).map(|_| wait(&flights, 1)).collect();
    leader.alone_for(now, Duration::from_secs(5));
    for wait in waiting {
        assert!(matches!(wait.ended(LONG).await, Waited::Alone));
    }
    let join = |key: u32, seconds| flights.join(&key, now + Duration::from_secs(seconds));
    assert!(matches!(join(1, 0), Join::Alone));
    assert!(matches!(join(1, 4), Join::Alone));
    assert!(matches!(join(2, 4), Join::Lead(_)), "another key");
    assert!(matches!(join(1, 5), Join::Lead(_)));
}

#[tokio::test(start_paused = true)]
async fn a_failure_lets_all_go_and_is_not_remembered() {
    let flights = Flights::default();
    let leader = lead(&flights, 1);
    let waiting = wait(&flights, 1);
    leader.alone();
    assert!(matches!(waiting.ended(LONG).await, Waited::Alone));
    lead(&flights, 1).landed();
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_longer_than_it_wants_to() {
    let flights = Flights::default();
    let leader = lead(&flights, 1);
    let waiting = wait(&flights, 1);
    assert!(matches!(
        waiting.ended(Duration::from_secs(1)).await,
        Waited::Alone
    ));
    // And it does not become the leader later.
    drop(leader);
    assert_eq!(flights.aloft(), 0);
}

#[test]
fn what_is_remembered_is_bounded() {
    let flights = Flights::default();
    let now = Instant::now();
    for key in 0..10_000 {
        lead(&flights, key).alone_for(now, LONG);
    }
    let remembered = flights.0.lock().alone.len();
    assert_eq!(remembered, Flights::<u32>::MOST_ALONE);
    // What has run out makes place.
    let later = now + LONG;
    lead(&flights, 20_000).alone_for(later, LONG);
    assert_eq!(flights.0.lock().alone.len(), 1);
}

#[test]
fn who_gives_up_leaves_no_trace_while_a_leader_is_stuck() {
    let flights = Flights::default();
    let _leader = lead(&flights, 1);
    for _ in 0..100_000 {
        drop(wait(&flights, 1));
    }
    let places = flights.0.lock().aloft[&1].capacity();
    assert!(places < 100, "{places}");
}

#[test]
fn threads_that_come_and_go_leave_nothing_aloft() {
    let flights = Flights::default();
    std::thread::scope(|scope| {
        for thread in 0..4_u32 {
            let flights = flights.clone();
            scope.spawn(move || {
                for round in 0..20_000 {
                    match flights.join(&(round % 3), Instant::now()) {
                        Join::Lead(lead) if (round + thread) % 2 == 0 => lead.landed(),
                        Join::Lead(lead) => drop(lead),
                        Join::Wait(wait) => drop(wait),
                        Join::Alone => {}
                    }
                }
            });
        }
    });
    assert_eq!(flights.aloft(), 0);
}
