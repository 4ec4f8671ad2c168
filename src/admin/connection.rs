//! The connections of the operator's address.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt as _, Limited};
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use super::answer::{Answer, Desk, PURGE};
use super::history::STEP;
use super::purge;

/// At once; more wait to be accepted.
const CONNECTIONS: u32 = 64;

/// For a head, for a purge, and for a connection without either.
const HEAD: Duration = Duration::from_secs(5);

/// After this a connection ends with the answer that it is at...
const CONNECTION: Duration = Duration::from_secs(60);

/// ... which may take so long.
const LAST_ANSWER: Duration = Duration::from_secs(10);

/// For all answers under way when the server is stopped.
const FAREWELL: Duration = Duration::from_secs(1);

/// After a connection could not be accepted.
const BREATH: Duration = Duration::from_millis(500);

/// Bytes of a head.
const HEAD_SIZE: usize = 16 * 1024;

/// Serves until it is stopped.
pub(super) async fn serve(
    listener: TcpListener,
    desk: Arc<Desk>,
    mut stopped: watch::Receiver<bool>,
) {
    let slots = Arc::new(Semaphore::new(CONNECTIONS as usize));
    let ended = stopped.clone();
    let remember = async {
        let mut tick = interval(STEP);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            desk.sample();
        }
    };
    let accept = async {
        // The semaphore is never closed.
        while let Ok(slot) = Arc::clone(&slots).acquire_owned().await {
            match listener.accept().await {
                Ok((stream, _)) => {
                    let (desk, ended) = (Arc::clone(&desk), ended.clone());
                    tokio::spawn(async move {
                        connection(stream, desk, ended).await;
                        drop(slot);
                    });
                }
                Err(error) => {
                    tracing::warn!("the admin address cannot accept: {error}");
                    sleep(BREATH).await;
                }
            }
        }
    };
    tokio::select! {
        () = accept => {}
        () = remember => {}
        () = until(&mut stopped) => {}
    }
    drop(listener);
    let _ = timeout(FAREWELL, slots.acquire_many(CONNECTIONS)).await;
}

/// Until the server is stopped, or nobody is left who could.
async fn until(stopped: &mut watch::Receiver<bool>) {
    let _ = stopped.wait_for(|stopped| *stopped).await;
}

async fn serve_one(desk: &Desk, request: Request<Incoming>) -> Answer {
    let (head, body) = request.into_parts();
    if head.uri.path() != PURGE {
        return desk.answer(&head);
    }
    if let Some(refused) = desk.refuse_purge(&head) {
        return refused;
    }
    let body = Limited::new(body, purge::LONGEST).collect();
    let body = timeout(HEAD, body).await.ok().and_then(Result::ok);
    desk.purge(&head, body.map(|body| body.to_bytes()).as_deref())
        .await
}

async fn connection(stream: TcpStream, desk: Arc<Desk>, mut stopped: watch::Receiver<bool>) {
    let service = service_fn(move |request: Request<Incoming>| {
        let desk = Arc::clone(&desk);
        async move { Ok::<_, Infallible>(serve_one(&desk, request).await) }
    });
    let mut connection = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD)
            .max_buf_size(HEAD_SIZE)
            .serve_connection(TokioIo::new(stream), service)
    );
    tokio::select! {
        _ = connection.as_mut() => return,
        () = sleep(CONNECTION) => {}
        () = until(&mut stopped) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = timeout(LAST_ANSWER, connection).await;
}
