//! An HTTP/2 client, over TCP by prior knowledge or over TLS.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;

use ::h2::client::{Builder, ResponseFuture, SendRequest};
use ::h2::{Reason, RecvStream, SendStream};
use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::origin_h2::{header_map, send};
use super::reply::Cause;
use super::wire::{Framing, Head};
use super::{Broken, Ca, Decoder, Fields, Pieces, Reply, runtime};

/// A connection that is kept until it and its streams are dropped.
#[derive(Clone)]
pub struct H2 {
    requests: SendRequest<Bytes>,
    origin: String,
}

impl H2 {
    /// Cleartext by prior knowledge, with windows of 1 MiB.
    pub fn open(addr: SocketAddr) -> Self {
        Self::with(addr, Builder::new().initial_window_size(1 << 20))
    }

    /// The same with settings of the test's own.
    pub fn with(addr: SocketAddr, builder: &Builder) -> Self {
        let opening = async {
            let stream = connect(addr).await;
            handshake(builder, stream).await
        };
        let requests = runtime::block_on("an h2c connection", opening);
        Self {
            requests,
            origin: format!("http://{addr}"),
        }
    }

    /// Over TLS, to a server that `ca` vouches for under this name. ALPN has to come to h2.
    pub fn tls(addr: SocketAddr, name: &str, ca: &Ca) -> Self {
        let connector = TlsConnector::from(Arc::clone(&ca.client(&["h2"])));
        let server = ServerName::try_from(name.to_owned()).expect("a server name");
        let opening = async {
            let stream = connect(addr).await;
            let tls = connector
                .connect(server, stream)
                .await
                .expect("a TLS handshake");
            assert_eq!(tls.get_ref().1.alpn_protocol(), Some(b"h2".as_slice()));
            handshake(Builder::new().initial_window_size(1 << 20), tls).await
        };
        let requests = runtime::block_on("an h2 connection", opening);
        Self {
            requests,
            origin: format!("https://{name}:{}", addr.port()),
        }
    }

    pub fn get(&self, target: &str, fields: Fields<'_>) -> Reply {
        self.ask("GET", target, fields, b"")
    }

    #[track_caller]
    pub fn ask(&self, method: &str, target: &str, fields: Fields<'_>, body: &[u8]) -> Reply {
        let mut stream = self.start(method, target, fields, body.is_empty());
        if !body.is_empty() {
            stream.send(body, true);
        }
        stream.reply()
    }

    /// Begins a request, which is complete without a body if `end`.
    pub fn start(&self, method: &str, target: &str, fields: Fields<'_>, end: bool) -> H2Stream {
        let uri = format!("{}{target}", self.origin);
        let mut request = Request::builder()
            .method(method)
            .uri(uri)
            .body(())
            .expect("a request");
        *request.headers_mut() = header_map(fields);
        self.begin(request, end)
    }

    /// Begins an extended CONNECT (RFC 8441), once the server has said that it knows it.
    pub fn connect(&self, protocol: &str, target: &str, fields: Fields<'_>) -> H2Stream {
        super::eventually("a server that knows extended CONNECT", || {
            let known = self.requests.is_extended_connect_protocol_enabled();
            known.then_some(())
        });
        let uri = format!("{}{target}", self.origin);
        let mut request = Request::builder()
            .method("CONNECT")
            .uri(uri)
            .extension(::h2::ext::Protocol::from(protocol))
            .body(())
            .expect("a request");
        request.headers_mut().extend(header_map(fields));
        self.begin(request, false)
    }

    /// Begins a request as it is given.
    pub fn begin(&self, request: Request<()>, end: bool) -> H2Stream {
        let requests = self.requests.clone();
        let ready = runtime::block_on("room for a stream", requests.ready());
        let sent = ready
            .expect("a connection that works")
            .send_request(request, end);
        let (response, sending) = sent.expect("a request that may be sent");
        H2Stream {
            sending,
            response: Some(response),
            body: None,
            decoder: Decoder::Plain,
        }
    }
}

async fn connect(addr: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(addr).await.expect("a connection");
    stream.set_nodelay(true).unwrap();
    stream
}

async fn handshake<S>(builder: &Builder, stream: S) -> SendRequest<Bytes>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (requests, connection) = builder.handshake(stream).await.expect("an h2 handshake");
    runtime::spawn(async move {
        // Streams see how it ends.
        let _ = connection.await;
    });
    requests
}

/// A request and its answer, piece by piece.
pub struct H2Stream {
    sending: SendStream<Bytes>,
    response: Option<ResponseFuture>,
    body: Option<RecvStream>,
    decoder: Decoder,
}

impl H2Stream {
    /// Sends a piece of the request's body, as the server's window allows.
    pub fn send(&mut self, bytes: &[u8], end: bool) {
        self.try_send(bytes, end)
            .expect("the server takes what is sent");
    }

    pub fn try_send(&mut self, bytes: &[u8], end: bool) -> Result<(), ::h2::Error> {
        let bytes = Bytes::copy_from_slice(bytes);
        runtime::block_on("room in the window", send(&mut self.sending, bytes, end))
    }

    /// Ends the request with trailers.
    pub fn end_with(&mut self, trailers: Fields<'_>) {
        let sent = self.sending.send_trailers(header_map(trailers));
        sent.expect("the server takes trailers");
    }

    /// Gives up.
    pub fn reset(mut self, reason: Reason) {
        self.sending.send_reset(reason);
    }

    /// The next 1xx, before the answer is there.
    pub fn informational(&mut self) -> Head {
        let response = self.response.as_mut().expect("the head was not read");
        let next = poll_fn(|cx| response.poll_informational(cx));
        let next = runtime::block_on("a 1xx", next).expect("a 1xx before the answer");
        head(&next.expect("a stream that works"))
    }

    /// The answer's head; its body is then read with [`Pieces::piece`] or [`Self::rest`].
    #[track_caller]
    pub fn head(&mut self) -> Reply {
        self.try_head()
            .unwrap_or_else(|error| panic!("no head: {error}"))
    }

    pub fn try_head(&mut self) -> Result<Reply, ::h2::Error> {
        let mut response = self.response.take().expect("the head was not read");
        let arriving = async {
            let mut before = Vec::new();
            while let Some(one) = poll_fn(|cx| response.poll_informational(cx)).await {
                before.push(head(&one?));
            }
            response.await.map(|response| (before, response))
        };
        let (before, response) = runtime::block_on("a head", arriving)?;
        let (parts, body) = response.into_parts();
        let ended = body.is_end_stream();
        self.body = Some(body);
        let status = parts.status.as_u16();
        let mut reply = Reply::new(status, "HTTP/2", head(&Response::from_parts(parts, ())));
        reply.informational = before;
        reply.framing = if ended {
            Framing::None
        } else {
            Framing::Stream
        };
        self.decoder = Decoder::of(&reply.list("content-encoding"));
        Ok(reply)
    }

    pub fn try_piece(&mut self) -> Result<Option<Vec<u8>>, ::h2::Error> {
        let body = self.body.as_mut().expect("the head comes first");
        let Some(piece) = runtime::block_on("more of a body", body.data()).transpose()? else {
            return Ok(None);
        };
        body.flow_control().release_capacity(piece.len())?;
        Ok(Some(piece.to_vec()))
    }

    /// The body behind a head that was read already, and its trailers.
    #[track_caller]
    pub fn rest(&mut self, reply: Reply) -> Reply {
        self.try_rest(reply)
            .unwrap_or_else(|broken| panic!("{broken}"))
    }

    pub fn try_rest(&mut self, mut reply: Reply) -> Result<Reply, Broken> {
        match self.collect(&mut reply) {
            Ok(()) => Ok(reply),
            Err(error) => Err(Broken {
                so_far: Some(Box::new(reply)),
                cause: Cause::Http2(error),
            }),
        }
    }

    fn collect(&mut self, reply: &mut Reply) -> Result<(), ::h2::Error> {
        while let Some(piece) = self.try_piece()? {
            reply.keep(&piece);
        }
        let body = self.body.as_mut().expect("the head comes first");
        let trailers = runtime::block_on("the end of a stream", body.trailers())?;
        reply.trailers = fields(&trailers.unwrap_or_default());
        Ok(())
    }

    /// The answer, complete.
    #[track_caller]
    pub fn reply(&mut self) -> Reply {
        self.try_reply().unwrap_or_else(|broken| panic!("{broken}"))
    }

    pub fn try_reply(&mut self) -> Result<Reply, Broken> {
        let head = self.try_head();
        let reply = head.map_err(|error| Broken {
            so_far: None,
            cause: Cause::Http2(error),
        })?;
        self.try_rest(reply)
    }
}

impl Pieces for H2Stream {
    fn piece(&mut self) -> Option<Vec<u8>> {
        self.try_piece()
            .unwrap_or_else(|error| panic!("the body breaks off: {error}"))
    }

    fn decoder(&mut self) -> &mut Decoder {
        &mut self.decoder
    }
}

fn head(response: &Response<()>) -> Head {
    let line = format!("HTTP/2 {}", response.status().as_u16());
    Head {
        raw: Vec::new(),
        line,
        fields: fields(response.headers()),
    }
}

fn fields(map: &HeaderMap) -> Vec<(String, String)> {
    let lines = map.iter();
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    lines
        .map(|(name, value)| (name.as_str().to_owned(), text(value)))
        .collect()
}
