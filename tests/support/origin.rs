//! An app that plays a script: any bytes, any pause, any end.
//!
//! Each connection has a thread. For each request the script is called with a [`Call`]; what it
//! returns as an error ends the connection, as does anything that it leaves unread.

use std::collections::HashMap;
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::stream::{Ender, Stream};
use super::wire::{BodyReader, Head, Reader};
use super::{Fields, PATIENCE, Pair, Signal, folder};

/// A request as it came.
#[derive(Debug, Clone)]
pub struct Seen {
    pub head: Head,
    /// Without its framing.
    pub body: Vec<u8>,
    pub trailers: Vec<(String, String)>,
    /// Everything of it that was read, as it came.
    pub raw: Vec<u8>,
    /// Whether the body came to its end.
    pub whole: bool,
    /// Which connection it came on, from 0.
    pub connection: usize,
}

type Script = dyn Fn(&mut Call<'_>) -> io::Result<()> + Send + Sync;

/// The scripted app. It ends, with all its connections, when it is dropped.
pub struct Origin {
    server: String,
    addr: Option<SocketAddr>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    seen: Mutex<Vec<Seen>>,
    accepted: AtomicUsize,
    open: AtomicUsize,
    enders: Mutex<HashMap<usize, Ender>>,
    stopped: AtomicBool,
}

impl Origin {
    /// Plays this script on a port of its own.
    pub fn start<F>(script: F) -> Self
    where
        F: Fn(&mut Call<'_>) -> io::Result<()> + Send + Sync + 'static,
    {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let addr = listener.local_addr().unwrap();
        let accept = move || listener.accept().map(|(tcp, _)| Stream::Tcp(tcp));
        Self::run(format!("http://{addr}"), Some(addr), accept, script)
    }

    /// The same behind TLS.
    pub fn tls<F>(pair: &Pair, script: F) -> Self
    where
        F: Fn(&mut Call<'_>) -> io::Result<()> + Send + Sync + 'static,
    {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let addr = listener.local_addr().unwrap();
        let config = pair.server(&["http/1.1"]);
        let accept = move || {
            let (tcp, _) = listener.accept()?;
            Ok(Stream::server(tcp, Arc::clone(&config)))
        };
        Self::run(format!("https://{addr}"), Some(addr), accept, script)
    }

    /// The same on a unix socket.
    pub fn unix<F>(script: F) -> Self
    where
        F: Fn(&mut Call<'_>) -> io::Result<()> + Send + Sync + 'static,
    {
        let path = short_path();
        let listener = UnixListener::bind(&path).expect("a unix socket");
        let accept = move || listener.accept().map(|(unix, _)| Stream::Unix(unix));
        Self::run(format!("unix:{}", path.display()), None, accept, script)
    }

    /// Answers every request with the same bytes, whatever they are.
    pub fn respond(raw: impl Into<Vec<u8>>) -> Self {
        let raw = raw.into();
        Self::start(move |call| {
            call.body()?;
            call.send(&raw)
        })
    }

    /// Answers every request with this status, these fields and this body, its length announced.
    pub fn answer(status: u16, fields: Fields<'_>, body: impl Into<Vec<u8>>) -> Self {
        let raw = answer(status, fields, &body.into());
        let head = raw
            .windows(4)
            .position(|at| at == b"\r\n\r\n")
            .expect("a head")
            + 4;
        Self::start(move |call| {
            call.body()?;
            call.send(if call.method() == "HEAD" {
                &raw[..head]
            } else {
                &raw
            })
        })
    }

    /// Answers every request with this body of application/json.
    pub fn json(body: impl Into<Vec<u8>>) -> Self {
        Self::answer(200, &[("Content-Type", "application/json")], body)
    }

    fn run<A, F>(server: String, addr: Option<SocketAddr>, accept: A, script: F) -> Self
    where
        A: Fn() -> io::Result<Stream> + Send + 'static,
        F: Fn(&mut Call<'_>) -> io::Result<()> + Send + Sync + 'static,
    {
        let shared = Arc::new(Shared::default());
        let script: Arc<Script> = Arc::new(script);
        let listening = Arc::clone(&shared);
        std::thread::spawn(move || {
            while let Ok(stream) = accept() {
                if listening.stopped.load(Ordering::SeqCst) {
                    break;
                }
                let connection = listening.accepted.fetch_add(1, Ordering::SeqCst);
                let (shared, script) = (Arc::clone(&listening), Arc::clone(&script));
                std::thread::spawn(move || serve(stream, connection, &shared, &*script));
            }
        });
        Self {
            server,
            addr,
            shared,
        }
    }

    pub fn addr(&self) -> SocketAddr {
        self.addr.expect("this app listens on a unix socket")
    }

    /// As the configuration's `servers` names it.
    pub fn server(&self) -> String {
        self.server.clone()
    }

    /// All requests whose heads came, in that order.
    pub fn requests(&self) -> Vec<Seen> {
        self.shared.seen.lock().unwrap().clone()
    }

    /// The latest request.
    #[track_caller]
    pub fn last(&self) -> Seen {
        self.shared
            .seen
            .lock()
            .unwrap()
            .last()
            .expect("a request")
            .clone()
    }

    /// How many connections were accepted.
    pub fn accepted(&self) -> usize {
        self.shared.accepted.load(Ordering::SeqCst)
    }

    /// How many connections are open.
    pub fn open(&self) -> usize {
        self.shared.open.load(Ordering::SeqCst)
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        for ender in self.shared.enders.lock().unwrap().values() {
            ender.end();
        }
        // Wakes the accepting thread, so that it sees that it is over.
        let _ = match self.addr {
            Some(addr) => std::net::TcpStream::connect(addr).map(drop),
            None => {
                let path = self.server.trim_start_matches("unix:");
                std::os::unix::net::UnixStream::connect(path).map(drop)
            }
        };
    }
}

struct Open<'a>(&'a AtomicUsize);

impl<'a> Open<'a> {
    fn new(open: &'a AtomicUsize) -> Self {
        open.fetch_add(1, Ordering::SeqCst);
        Self(open)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Socket paths have room for about a hundred bytes, target folders can be longer.
fn short_path() -> PathBuf {
    let path = folder("socket").join("app");
    if path.as_os_str().len() < 100 {
        return path;
    }
    let name = path
        .parent()
        .and_then(|folder| folder.file_name())
        .expect("a folder");
    std::env::temp_dir().join(name)
}

fn serve(stream: Stream, connection: usize, shared: &Shared, script: &Script) {
    let _open = Open::new(&shared.open);
    let ender = stream.ender().expect("a second handle");
    shared.enders.lock().unwrap().insert(connection, ender);
    let mut reader = Reader::new(stream);
    // How it ended is for the client to see. After a reset there is nothing left to close.
    let _ = converse(&mut reader, connection, shared, script);
    let _ = reader.source.close();
    shared.enders.lock().unwrap().remove(&connection);
}

fn converse(
    reader: &mut Reader<Stream>,
    connection: usize,
    shared: &Shared,
    script: &Script,
) -> io::Result<()> {
    if let Stream::Tcp(tcp) = &reader.source {
        tcp.set_nodelay(true)?;
    }
    while let Some(head) = reader.head()? {
        let body = BodyReader::new(head.framing()?);
        let raw = std::mem::take(&mut reader.tape);
        let whole = body.is_done();
        let (seen, trailers) = (head.clone(), Vec::new());
        let seen = Seen {
            head: seen,
            body: Vec::new(),
            trailers,
            raw,
            whole,
            connection,
        };
        let index = {
            let mut all = shared.seen.lock().unwrap();
            all.push(seen);
            all.len() - 1
        };
        let mut call = Call {
            head,
            reader: &mut *reader,
            body,
            shared,
            index,
            over: false,
        };
        script(&mut call)?;
        if call.over || !call.body.is_done() {
            break;
        }
    }
    Ok(())
}

/// One request, and the means to answer it.
pub struct Call<'a> {
    pub head: Head,
    reader: &'a mut Reader<Stream>,
    body: BodyReader,
    shared: &'a Shared,
    index: usize,
    over: bool,
}

impl Call<'_> {
    pub fn method(&self) -> &str {
        self.head.line.split(' ').next().unwrap_or_default()
    }

    /// The target: path and query.
    pub fn target(&self) -> &str {
        self.head.line.split(' ').nth(1).unwrap_or_default()
    }

    pub fn path(&self) -> &str {
        self.target().split('?').next().unwrap_or_default()
    }

    /// Which connection this is, from 0.
    pub fn connection(&self) -> usize {
        self.shared.seen.lock().unwrap()[self.index].connection
    }

    /// The next bytes of the request's body.
    pub fn piece(&mut self) -> io::Result<Option<Vec<u8>>> {
        let piece = self.body.piece(self.reader);
        let mut seen = self.shared.seen.lock().unwrap();
        let seen = &mut seen[self.index];
        seen.raw.append(&mut self.reader.tape);
        seen.whole = self.body.is_done();
        seen.trailers.clone_from(&self.body.trailers);
        if let Ok(Some(piece)) = &piece {
            seen.body.extend_from_slice(piece);
        }
        piece
    }

    /// All of the request's body.
    pub fn body(&mut self) -> io::Result<Vec<u8>> {
        while self.piece()?.is_some() {}
        Ok(self.shared.seen.lock().unwrap()[self.index].body.clone())
    }

    /// Sends bytes as they are.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.reader.source.write_all(bytes.as_ref())?;
        self.reader.source.flush()
    }

    /// A complete answer, its length announced; to HEAD without its body.
    pub fn answer(&mut self, status: u16, fields: Fields<'_>, body: &[u8]) -> io::Result<()> {
        let mut raw = answer(status, fields, body);
        if self.method() == "HEAD" {
            raw.truncate(raw.len() - body.len());
        }
        self.send(raw)
    }

    /// A head as it is: nothing is added but the status line's version.
    pub fn raw_head(&mut self, status: u16, fields: Fields<'_>) -> io::Result<()> {
        self.send(head(status, fields))
    }

    /// The head of an answer in chunks.
    pub fn chunked(&mut self, status: u16, fields: Fields<'_>) -> io::Result<()> {
        let chunked = [("Transfer-Encoding", "chunked")];
        self.raw_head(status, &[fields, &chunked].concat())
    }

    pub fn chunk(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        let bytes = bytes.as_ref();
        self.send([format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat())
    }

    /// The last chunk.
    pub fn end(&mut self) -> io::Result<()> {
        self.end_with(&[])
    }

    /// The last chunk and trailers.
    pub fn end_with(&mut self, trailers: Fields<'_>) -> io::Result<()> {
        self.send(format!("0\r\n{}\r\n", lines(trailers)))
    }

    pub fn pause(&self, pause: Duration) {
        std::thread::sleep(pause);
    }

    /// Waits for the test.
    pub fn wait(&self, signal: &Signal) {
        signal.wait();
    }

    /// Ends the connection with RST.
    pub fn reset(&mut self) -> io::Result<()> {
        self.over = true;
        self.reader.source.reset()
    }

    /// Ends the connection in order.
    pub fn close(&mut self) -> io::Result<()> {
        self.over = true;
        self.reader.source.close()
    }

    /// Waits until the other side ends the connection.
    pub fn gone(&mut self) -> io::Result<()> {
        self.over = true;
        self.reader.source.read_timeout(Some(PATIENCE))?;
        loop {
            match self.reader.fill() {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(error),
                Err(_) => return Ok(()),
            }
        }
    }

    /// The connection itself, for what follows an upgrade.
    pub fn stream(&mut self) -> &mut Stream {
        self.over = true;
        &mut self.reader.source
    }

    /// Raw bytes as they come, for what follows an upgrade; none at the end.
    pub fn raw(&mut self) -> io::Result<Option<Vec<u8>>> {
        self.over = true;
        if self.reader.pending().is_empty() && !self.reader.fill()? {
            return Ok(None);
        }
        Ok(Some(self.reader.take(self.reader.pending().len())))
    }

    /// Raw bytes up to and including a pattern, for what follows an upgrade.
    pub fn read_until(&mut self, pattern: impl AsRef<[u8]>) -> io::Result<Vec<u8>> {
        self.over = true;
        self.reader.until(pattern.as_ref())
    }
}

fn answer(status: u16, fields: Fields<'_>, body: &[u8]) -> Vec<u8> {
    let length = body.len().to_string();
    let length = [("Content-Length", length.as_str())];
    let described = !matches!(status, 204 | 304);
    let fields = [fields, if described { &length } else { &[] }].concat();
    [head(status, &fields).as_bytes(), body].concat()
}

fn head(status: u16, fields: Fields<'_>) -> String {
    format!("HTTP/1.1 {status} Scripted\r\n{}\r\n", lines(fields))
}

fn lines(fields: Fields<'_>) -> String {
    fields
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect()
}
