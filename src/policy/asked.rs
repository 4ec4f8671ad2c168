//! What a request says about the answer it wants, read once.

use http::{HeaderMap, Method, Version};

use crate::config::settings::{Compress, CrossSite};
use crate::head::accept::Accepts;
use crate::head::{cache_control, site};

/// The facts of a request that a plan looks at; kept while the app works.
#[derive(Debug, Clone)]
pub struct Asked {
    /// CONNECT is never coded; HEAD gets the head of a GET.
    pub method: Method,
    /// The client's: HTTP/1.0 takes a coding only with a length.
    pub version: Version,
    /// What the client takes.
    pub accepts: Accepts,
    /// It said no-transform, and the route honours that.
    pub no_transform: bool,
    /// Another site caused it, and the route answers those plain.
    pub cross_site: bool,
}

impl Asked {
    /// Reads the client's head, before it is changed for the app; only what the route wants to know.
    ///
    /// `host` is the authority that was asked.
    #[must_use]
    pub fn of(
        method: &Method,
        version: Version,
        host: &str,
        headers: &HeaderMap,
        compress: &Compress,
    ) -> Self {
        let minds_sites = compress.enabled && compress.breach_cross_site == CrossSite::Plain;
        let minds_transforms = compress.enabled && compress.honor_no_transform;
        Self {
            method: method.clone(),
            version,
            accepts: Accepts::parse(headers),
            no_transform: minds_transforms && cache_control::no_transform(headers),
            cross_site: minds_sites && site::is_cross_site(headers, host),
        }
    }

    /// Whether this client may hold coded bytes from this route: for
    /// [`crate::head::conditional::toward_app`].
    #[must_use]
    pub fn takes_coded(&self, compress: &Compress) -> bool {
        compress.enabled
            && compress
                .encodings
                .iter()
                .any(|&coding| self.accepts.takes(coding))
    }
}
