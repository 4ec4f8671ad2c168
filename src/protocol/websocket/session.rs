//! One connection: both directions, in one task that owns both streams.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, Sleep, sleep_until, timeout};

use super::Contract;
use super::budget::Reserved;
use super::down::{Down, DownFault};
use super::lifecycle::{Lifecycle, close};
use super::random;
use super::side::Side;
use super::tally::{Open, Tally};
use super::up::{Up, UpFault};
use crate::body::{EndedBy, Ledger};
use crate::frame::websocket::{Close, CloseCode, Control, Event};
use crate::telemetry::{Direction, Extension, WebSocketRecord};

/// Bytes that a connection with the extension has at any time, beside its histories; an upper bound.
pub(super) const SIZE: usize = 2 << 10;

/// Steps before the others of the thread have their turn.
const TURNS: usize = 2;

/// What remains to be done at the end gets no longer than this.
const LINGER: Duration = Duration::from_secs(2);

type Drained = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A running connection.
pub(super) struct Session<C, A> {
    client: Side<C>,
    app: Side<A>,
    down: Down,
    up: Up,
    life: Lifecycle,
    ledger: Box<Ledger>,
    /// What was agreed.
    extension: Option<Box<str>>,
    reserved: Option<Reserved>,
    patience: Patience,
    alarm: Pin<Box<Sleep>>,
    drained: Option<Drained>,
    _open: Open,
}

/// When something last happened, and how long nothing may.
struct Patience {
    idle: Duration,
    /// Zero is endless.
    send: Duration,
    moved: Instant,
    /// Since when the client has not taken what is there for it.
    stalled: Option<Instant>,
}

impl<C, A> Session<C, A>
where
    C: AsyncRead + AsyncWrite + Unpin,
    A: AsyncRead + AsyncWrite + Unpin,
{
    pub(super) fn new(contract: Contract, client: C, app: A, early: &[u8]) -> Self {
        let Contract {
            ledger,
            policy,
            deflate,
            send,
            house,
        } = contract;
        let metrics = &ledger.metrics;
        let extension = if deflate.is_some() {
            Extension::Deflate
        } else {
            Extension::None
        };
        let agreed = deflate.as_ref().map(|deflate| deflate.agreed);
        let to_client = Tally::new(metrics, Direction::ToClient);
        let to_app = Tally::new(metrics, Direction::ToApp);
        let open = Open::new(metrics, extension);
        let now = Instant::now();
        let (answer, reserved) = deflate
            .map(|deflate| (deflate.answer, deflate.reserved))
            .unzip();
        let mut draining = house.draining.subscribe();
        Self {
            client: Side::new(client, early),
            app: Side::new(app, &[]),
            down: Down::new(agreed, &policy, &house, to_client),
            up: Up::new(agreed, &policy, &house, to_app),
            life: Lifecycle::new(),
            extension: answer.map(|answer| String::from_utf8_lossy(answer.as_bytes()).into()),
            ledger,
            reserved,
            patience: Patience {
                idle: policy.idle_timeout,
                send,
                moved: now,
                stalled: None,
            },
            alarm: Box::pin(sleep_until(now + policy.idle_timeout)),
            drained: Some(Box::pin(async move {
                // The sender lives as long as the process.
                let _ = draining.wait_for(|draining| *draining).await;
            })),
            _open: open,
        }
    }

    /// Runs until both sides have ended, and what was to be said to them is.
    pub(super) async fn run(mut self) {
        poll_fn(|cx| self.poll(cx)).await;
        let Self {
            client,
            app,
            down,
            up,
            life,
            mut ledger,
            extension,
            ..
        } = self;
        let (to_client, to_app) = (down.tally.flow, up.tally.flow);
        ledger.plain(usize::try_from(to_client.before).unwrap_or(usize::MAX));
        ledger.sent(usize::try_from(to_client.after).unwrap_or(usize::MAX));
        ledger.websocket = Some(Box::new(WebSocketRecord {
            extension,
            to_client,
            to_app,
        }));
        match life.verdict {
            None => ledger.complete(),
            Some((side, reason)) => ledger.broken(side, reason),
        }
        // The line is written now, and what was held is free.
        drop((ledger, down, up));
        // We are the client's server: our end of it ends first (section 7.1.1).
        let _ = timeout(LINGER, async { tokio::join!(client.end(), app.leave()) }).await;
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.look_for_drain(cx);
        let mut again = true;
        for _ in 0..TURNS {
            again = self.turn(cx);
            if !again {
                break;
            }
            self.patience.moved = Instant::now();
        }
        if self.life.is_over() && self.client.is_flushed() && self.app.is_flushed() {
            return Poll::Ready(());
        }
        if again {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.poll_patience(cx)
    }

    /// One step each way. True: something moved.
    fn turn(&mut self, cx: &mut Context<'_>) -> bool {
        let mut moved = match self.turn_down(cx) {
            Ok(moved) => moved,
            Err(fault) => self.app_failed(&fault),
        };
        self.app.settle();
        moved |= match self.turn_up(cx) {
            Ok(moved) => moved,
            Err(fault) => self.client_failed(&fault),
        };
        self.client.settle();
        self.charge();
        if self.life.leaving && !self.down.is_inside() {
            self.tell_client(Some(&close(
                CloseCode::GOING_AWAY,
                "the server is going away",
            )));
        }
        moved |= self.write_client(cx);
        moved | self.write_app(cx)
    }

    /// From the app to the client.
    fn turn_down(&mut self, cx: &mut Context<'_>) -> Result<bool, DownFault> {
        let mut moved = self.down.poll_away(cx, &mut self.client.output)?;
        moved |= self.take_from_app()?;
        if !self.life.app_ended && self.down.is_hungry() && self.client.has_room() {
            match self.app.poll_read(cx) {
                Poll::Ready(Ok(true)) => {
                    moved = true;
                    self.take_from_app()?;
                }
                Poll::Ready(read) => {
                    self.app_left(read.map(|_| ()));
                    moved = true;
                }
                Poll::Pending => self.down.pause(&mut self.client.output)?,
            }
        }
        Ok(moved | self.down.poll_away(cx, &mut self.client.output)?)
    }

    fn take_from_app(&mut self) -> Result<bool, DownFault> {
        let before = (self.app.input.len(), self.client.output.len());
        while !self.life.app_ended
            && let Some(event) = self
                .down
                .next(&mut self.app.input, &mut self.client.output)?
        {
            let output = &mut self.client.output;
            match event {
                Event::Close(close) => {
                    self.life.app_ended = true;
                    self.life.closed(close.as_ref());
                    self.tell_client(close.as_ref());
                }
                _ if self.life.client_told => {}
                Event::Ping(payload) => Control::Ping(&payload).write(None, output),
                Event::Pong(payload) => Control::Pong(&payload).write(None, output),
                Event::Data(_) => {}
            }
        }
        Ok(before != (self.app.input.len(), self.client.output.len()))
    }

    /// From the client to the app.
    fn turn_up(&mut self, cx: &mut Context<'_>) -> Result<bool, UpFault> {
        let mut moved = self.up.poll_away(cx, &mut self.app.output)?;
        moved |= self.take_from_client()?;
        if !self.life.client_ended && self.up.is_hungry() && self.app.has_room() {
            match self.client.poll_read(cx) {
                Poll::Ready(Ok(true)) => {
                    moved = true;
                    self.take_from_client()?;
                }
                Poll::Ready(read) => {
                    self.client_left(read.map(|_| ()));
                    moved = true;
                }
                Poll::Pending => self.up.pause(&mut self.app.output)?,
            }
        }
        Ok(moved | self.up.poll_away(cx, &mut self.app.output)?)
    }

    fn take_from_client(&mut self) -> Result<bool, UpFault> {
        let before = (self.client.input.len(), self.app.output.len());
        while !self.life.client_ended
            && let Some(event) = self.up.next(&mut self.client.input, &mut self.app.output)?
        {
            let (output, mask) = (&mut self.app.output, Some(random::mask()));
            match event {
                Event::Close(close) => {
                    self.life.client_ended = true;
                    self.life.closed(close.as_ref());
                    self.tell_app(close.as_ref());
                }
                _ if self.life.app_told => {}
                Event::Ping(payload) => Control::Ping(&payload).write(mask, output),
                Event::Pong(payload) => Control::Pong(&payload).write(mask, output),
                Event::Data(_) => {}
            }
        }
        Ok(before != (self.client.input.len(), self.app.output.len()))
    }

    fn write_client(&mut self, cx: &mut Context<'_>) -> bool {
        match self.client.poll_write(cx) {
            Ok(moved) => {
                let waits = !self.client.is_flushed();
                let since = self.patience.stalled.filter(|_| !moved);
                self.patience.stalled = waits.then(|| since.unwrap_or_else(Instant::now));
                moved
            }
            Err(error) => {
                self.client_left(Err(error));
                true
            }
        }
    }

    fn write_app(&mut self, cx: &mut Context<'_>) -> bool {
        self.app.poll_write(cx).unwrap_or_else(|error| {
            self.app_left(Err(error));
            true
        })
    }
}

/// How it ends.
impl<C, A> Session<C, A>
where
    C: AsyncRead + AsyncWrite + Unpin,
    A: AsyncRead + AsyncWrite + Unpin,
{
    fn tell_client(&mut self, close: Option<&Close>) {
        if self.down.is_within_frame() && !self.life.client_told {
            // There is no room for a Close: the end of the stream has to say it.
            (self.life.client_told, self.life.client_ended) = (true, true);
        }
        self.life.tell_client(close, &mut self.client.output);
        self.down.stop();
    }

    fn tell_app(&mut self, close: Option<&Close>) {
        self.life.tell_app(close, &mut self.app.output);
        self.up.stop();
    }

    /// The app's stream has ended, or failed.
    fn app_left(&mut self, how: io::Result<()>) {
        self.app.give_up();
        if std::mem::replace(&mut self.life.app_ended, true) {
            return;
        }
        let how = how.err().map(|error| error.to_string());
        let word = how
            .as_deref()
            .unwrap_or("the application left without a Close");
        self.life.ends_without_close(EndedBy::Upstream, word);
        let farewell = self
            .life
            .echo(close(CloseCode::INTERNAL, "the application left"));
        self.tell_client(farewell.as_ref());
        self.up.stop();
    }

    /// The client's stream has ended, or failed.
    fn client_left(&mut self, how: io::Result<()>) {
        self.client.give_up();
        self.patience.stalled = None;
        self.down.stop();
        if std::mem::replace(&mut self.life.client_ended, true) {
            return;
        }
        let how = how.err().map(|error| error.to_string());
        let word = how.as_deref().unwrap_or("the client left without a Close");
        self.life.ends_without_close(EndedBy::Client, word);
        let farewell = self
            .life
            .echo(close(CloseCode::GOING_AWAY, "the client left"));
        self.tell_app(farewell.as_ref());
        self.life.client_told = true;
    }

    /// The client broke a rule, or we cannot go on. The app hears nothing of such a client but that
    /// it is gone.
    fn client_failed(&mut self, fault: &UpFault) -> bool {
        match fault {
            UpFault::Client(fault) => {
                let word = fault.to_string();
                self.life.blame(EndedBy::Client, &*word);
                self.tell_client(Some(&close(fault.code(), &word)));
                (self.life.client_ended, self.life.app_ended) = (true, true);
                self.life.app_told = true;
                self.app.give_up();
                self.up.stop();
            }
            UpFault::Us(lost) => self.fail(&lost.to_string(), CloseCode::INTERNAL),
        }
        true
    }

    /// The app broke a rule, or we cannot go on.
    fn app_failed(&mut self, fault: &DownFault) -> bool {
        match fault {
            DownFault::App(fault) => {
                let word = fault.to_string();
                self.life.blame(EndedBy::Upstream, &*word);
                self.life.app_ended = true;
                self.tell_app(Some(&close(fault.code(), &word)));
                let word = "the application broke the protocol";
                self.tell_client(Some(&close(CloseCode::INTERNAL, word)));
            }
            DownFault::Us(broken) => self.fail(&broken.to_string(), CloseCode::INTERNAL),
        }
        true
    }

    /// Ends both sides on our own account.
    fn fail(&mut self, word: &str, code: CloseCode) {
        self.life.blame(EndedBy::Proxy, word);
        self.tell_client(Some(&close(code, word)));
        self.tell_app(Some(&close(CloseCode::GOING_AWAY, word)));
    }

    /// Holds what a half-received message needs.
    fn charge(&mut self) {
        let held = self.up.held();
        let fits = self
            .reserved
            .as_mut()
            .is_none_or(|reserved| reserved.set_more(held));
        if !fits {
            let word = "no memory for half-received messages";
            self.fail(word, CloseCode::TRY_AGAIN);
        }
    }

    fn look_for_drain(&mut self, cx: &mut Context<'_>) {
        if let Some(drained) = &mut self.drained
            && drained.as_mut().poll(cx).is_ready()
        {
            self.drained = None;
            self.life.leaving = true;
        }
    }

    /// Nothing moves: ends what has waited for too long.
    fn poll_patience(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let now = Instant::now();
            let silent = self.patience.moved + self.patience.idle;
            let closing = self.life.deadline(self.patience.moved);
            let stalled = self
                .patience
                .stalled
                .filter(|_| !self.patience.send.is_zero());
            let stalled = stalled.map(|since| since + self.patience.send);
            if closing.is_some_and(|closing| closing <= now) {
                self.life.overdue();
                return Poll::Ready(());
            }
            if stalled.is_some_and(|stalled| stalled <= now) {
                self.client_left(Err(io::Error::other("the client takes nothing")));
            } else if closing.is_none() && silent <= now {
                self.fail("silent for too long", CloseCode::GOING_AWAY);
            } else {
                let next = closing.unwrap_or(silent);
                let next = stalled.map_or(next, |stalled| stalled.min(next));
                if self.alarm.is_elapsed() || next < self.alarm.deadline() {
                    self.alarm.as_mut().reset(next);
                }
                ready!(self.alarm.as_mut().poll(cx));
                continue;
            }
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
    }
}
