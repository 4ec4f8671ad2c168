//! The scripted app over HTTP/2 by prior knowledge: trailers, resets, early answers, flow control.

use std::future::{Future, poll_fn};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, Request, Response};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

use super::{Fields, runtime};

type Outcome = Result<(), h2::Error>;

/// The app. It ends, with all its connections, when it is dropped.
pub struct H2Origin {
    addr: SocketAddr,
    shared: Arc<Shared>,
    _running: oneshot::Sender<()>,
}

#[derive(Default)]
struct Shared {
    seen: Mutex<Vec<Request<()>>>,
    accepted: AtomicUsize,
    streams: AtomicUsize,
}

impl H2Origin {
    /// Plays this script for every stream; an error that it returns resets the stream.
    pub fn start<S, F>(script: S) -> Self
    where
        S: Fn(H2Call) -> F + Send + Sync + 'static,
        F: Future<Output = Outcome> + Send + 'static,
    {
        let bind = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        let listener = runtime::block_on("a port", bind).expect("a port");
        let addr = listener.local_addr().unwrap();
        let shared = Arc::new(Shared::default());
        let (running, mut stopped) = oneshot::channel();
        let (script, everything) = (Arc::new(script), Arc::clone(&shared));
        runtime::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            loop {
                tokio::select! {
                    accepted = listener.accept() => {
                        let (stream, _) = accepted.expect("a connection");
                        everything.accepted.fetch_add(1, Ordering::SeqCst);
                        let (shared, script) = (Arc::clone(&everything), Arc::clone(&script));
                        connections.spawn(converse(stream, shared, script));
                    }
                    // Dropping the set ends the connections.
                    _ = &mut stopped => break,
                }
            }
        });
        Self {
            addr,
            shared,
            _running: running,
        }
    }

    /// Answers every request with these fields and this body, then these trailers.
    pub fn answer(fields: Fields<'_>, body: impl Into<Bytes>, trailers: Fields<'_>) -> Self {
        let (fields, trailers, body) = (header_map(fields), header_map(trailers), body.into());
        Self::start(move |mut call| {
            let (fields, trailers, body) = (fields.clone(), trailers.clone(), body.clone());
            async move {
                call.body().await?;
                let bare = trailers.is_empty();
                let mut response = Response::new(());
                *response.headers_mut() = fields;
                call.begin(response, bare && body.is_empty())?;
                if !body.is_empty() {
                    call.data(body, bare).await?;
                }
                if bare {
                    Ok(())
                } else {
                    call.trailers(trailers)
                }
            }
        })
    }

    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// As the configuration's `servers` names it.
    pub fn server(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// The heads of all requests.
    pub fn requests(&self) -> Vec<Request<()>> {
        self.shared.seen.lock().unwrap().clone()
    }

    pub fn accepted(&self) -> usize {
        self.shared.accepted.load(Ordering::SeqCst)
    }

    /// How many streams a script plays on at this time.
    pub fn streams(&self) -> usize {
        self.shared.streams.load(Ordering::SeqCst)
    }
}

async fn converse<S, F>(stream: TcpStream, shared: Arc<Shared>, script: Arc<S>)
where
    S: Fn(H2Call) -> F + Send + Sync + 'static,
    F: Future<Output = Outcome> + Send + 'static,
{
    stream.set_nodelay(true).unwrap();
    let builder = &mut h2::server::Builder::new();
    let windows = builder
        .initial_window_size(1 << 20)
        .initial_connection_window_size(1 << 20);
    let Ok(mut connection) = windows.handshake::<_, Bytes>(stream).await else {
        return;
    };
    let mut scripts = tokio::task::JoinSet::new();
    while let Some(Ok((request, respond))) = connection.accept().await {
        let (parts, body) = request.into_parts();
        let request = Request::from_parts(parts, ());
        shared.seen.lock().unwrap().push(request.clone());
        shared.streams.fetch_add(1, Ordering::SeqCst);
        let playing = script(H2Call {
            request,
            body,
            respond,
            stream: None,
        });
        let shared = Arc::clone(&shared);
        scripts.spawn(async move {
            // A script's error is how the other side ended the stream; it sees that itself.
            let _ = playing.await;
            shared.streams.fetch_sub(1, Ordering::SeqCst);
        });
    }
}

/// One stream, and the means to answer on it.
pub struct H2Call {
    pub request: Request<()>,
    body: RecvStream,
    respond: SendResponse<Bytes>,
    stream: Option<SendStream<Bytes>>,
}

impl H2Call {
    pub fn path(&self) -> &str {
        self.request.uri().path()
    }

    /// The next bytes of the request's body.
    pub async fn piece(&mut self) -> Result<Option<Bytes>, h2::Error> {
        let Some(piece) = self.body.data().await.transpose()? else {
            return Ok(None);
        };
        self.body.flow_control().release_capacity(piece.len())?;
        Ok(Some(piece))
    }

    /// All of the request's body, and its trailers.
    pub async fn body(&mut self) -> Result<(Vec<u8>, HeaderMap), h2::Error> {
        let mut body = Vec::new();
        while let Some(piece) = self.piece().await? {
            body.extend_from_slice(&piece);
        }
        let trailers = self.body.trailers().await?;
        Ok((body, trailers.unwrap_or_default()))
    }

    /// A 1xx before the answer.
    pub fn informational(&mut self, status: u16, fields: Fields<'_>) -> Outcome {
        self.respond.send_informational(response(status, fields))
    }

    /// The head of the answer, which is all of it if `end`.
    pub fn head(&mut self, status: u16, fields: Fields<'_>, end: bool) -> Outcome {
        self.begin(response(status, fields), end)
    }

    fn begin(&mut self, response: Response<()>, end: bool) -> Outcome {
        self.stream = Some(self.respond.send_response(response, end)?);
        Ok(())
    }

    fn stream(&mut self) -> &mut SendStream<Bytes> {
        self.stream
            .as_mut()
            .expect("the head comes before the body")
    }

    /// Sends as the other side's window allows; returns when all of it is under way.
    pub async fn data(&mut self, bytes: impl Into<Bytes>, end: bool) -> Outcome {
        send(self.stream(), bytes.into(), end).await
    }

    pub fn trailers(&mut self, trailers: HeaderMap) -> Outcome {
        self.stream().send_trailers(trailers)
    }

    /// Trailers by name and value.
    pub fn end_with(&mut self, trailers: Fields<'_>) -> Outcome {
        self.trailers(header_map(trailers))
    }

    pub fn reset(&mut self, reason: Reason) {
        match &mut self.stream {
            Some(stream) => stream.send_reset(reason),
            None => self.respond.send_reset(reason),
        }
    }

    /// Waits until the other side resets the stream, and says why.
    pub async fn gone(&mut self) -> Result<Reason, h2::Error> {
        match &mut self.stream {
            Some(stream) => poll_fn(|cx| stream.poll_reset(cx)).await,
            None => poll_fn(|cx| self.respond.poll_reset(cx)).await,
        }
    }
}

/// Sends bytes within the peer's flow control.
pub async fn send(stream: &mut SendStream<Bytes>, mut bytes: Bytes, end: bool) -> Outcome {
    while !bytes.is_empty() {
        stream.reserve_capacity(bytes.len());
        let granted = poll_fn(|cx| stream.poll_capacity(cx)).await;
        let granted = granted.ok_or(Reason::CANCEL)??.min(bytes.len());
        let piece = bytes.split_to(granted);
        let last = end && bytes.is_empty();
        stream.send_data(piece, last)?;
        if last {
            return Ok(());
        }
    }
    if end {
        stream.send_data(Bytes::new(), true)
    } else {
        Ok(())
    }
}

fn response(status: u16, fields: Fields<'_>) -> Response<()> {
    let mut response = Response::new(());
    *response.status_mut() = http::StatusCode::from_u16(status).expect("a status");
    *response.headers_mut() = header_map(fields);
    response
}

/// Fields as the http crate keeps them.
pub fn header_map(fields: Fields<'_>) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in fields {
        let name = http::HeaderName::try_from(*name).expect("a field name");
        map.append(
            name,
            http::HeaderValue::try_from(*value).expect("a field value"),
        );
    }
    map
}
