//! The closed sets of words that are metric labels.

/// What an encoder worked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Bodies of HTTP answers.
    Http,
    /// gRPC messages.
    Grpc,
    /// WebSocket messages.
    WebSocket,
    /// Copies in the cache that are recompressed while it is quiet.
    Cache,
}

impl Kind {
    /// How many there are.
    pub(super) const COUNT: usize = 4;

    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Grpc => "grpc",
            Self::WebSocket => "websocket",
            Self::Cache => "cache",
        }
    }
}

/// What the cache did for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CacheResult {
    /// Answered from the store.
    Hit,
    /// Fetched.
    Miss,
    /// Answered from the store past its time.
    Stale,
    /// The app said that the copy is still good.
    Revalidated,
    /// The request or the route wants no copy.
    Bypass,
    /// Fetched, but the same bytes had been compressed before.
    Reuse,
}

impl CacheResult {
    /// How many there are.
    pub(super) const COUNT: usize = 6;

    /// The word in metrics and in the access log.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Hit => "hit",
            Self::Miss => "miss",
            Self::Stale => "stale",
            Self::Revalidated => "revalidated",
            Self::Bypass => "bypass",
            Self::Reuse => "reuse",
        }
    }
}

/// Where a message goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the app.
    ToClient,
    /// From the client.
    ToApp,
}

impl Direction {
    /// How many there are.
    pub(super) const COUNT: usize = 2;

    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::ToClient => "to_client",
            Self::ToApp => "to_app",
        }
    }
}

/// How a message went on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// A WebSocket message, compressed.
    Deflated,
    /// As the application wrote it.
    Plain,
    /// A gRPC message, compressed.
    Compressed,
    /// A gRPC message that came in another coding.
    Recoded,
}

impl Form {
    /// How many there are.
    pub(super) const COUNT: usize = 4;

    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Deflated => "deflated",
            Self::Plain => "plain",
            Self::Compressed => "compressed",
            Self::Recoded => "recoded",
        }
    }
}

/// What a WebSocket connection agreed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Extension {
    /// permessage-deflate.
    Deflate,
    /// Nothing.
    None,
}

impl Extension {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Deflate => "deflate",
            Self::None => "none",
        }
    }
}
