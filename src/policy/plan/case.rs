//! A question that tests change one thing of.

use std::time::Duration;

use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode, Version};

use super::{Question, Verdict, plan};
use crate::codec::Coding;
use crate::config::settings::{Compress, CrossSite, Flush, Levels, Requests};
use crate::head::accept::Accepts;
use crate::head::media::MediaPattern;
use crate::policy::Asked;

pub(super) fn policy() -> Compress {
    let pattern = |text| MediaPattern::parse(text).expect("a pattern");
    Compress {
        enabled: true,
        encodings: vec![Coding::Zstd, Coding::Brotli, Coding::Gzip],
        levels: Levels {
            gzip: 4,
            deflate: 4,
            br: 5,
            zstd: 1,
        },
        min_size: 512,
        types: [
            "text/*",
            "application/json",
            "application/*+json",
            "image/svg+xml",
            "application/grpc*",
        ]
        .map(pattern)
        .into(),
        except_types: vec![pattern("text/x-secret")],
        whole_bytes: 2 << 20,
        whole_wait: Duration::from_millis(5),
        flush: Flush::Auto,
        honor_no_transform: true,
        requests: Requests::Pass,
        max_inflated: 64 << 20,
        breach_pad: 0,
        breach_cross_site: CrossSite::Plain,
    }
}

/// A case: 100 KiB of JSON to a GET over HTTP/1.1 that takes gzip, but for what it changes.
pub(super) struct Case {
    pub(super) compress: Compress,
    pub(super) method: Method,
    pub(super) version: Version,
    pub(super) request: Vec<(&'static str, &'static str)>,
    pub(super) status: u16,
    pub(super) head: Vec<(&'static str, &'static str)>,
    pub(super) length: Option<u64>,
}

pub(super) fn case() -> Case {
    Case {
        compress: policy(),
        method: Method::GET,
        version: Version::HTTP_11,
        request: vec![("accept-encoding", "gzip")],
        status: 200,
        head: vec![("content-type", "application/json")],
        length: Some(102_400),
    }
}

pub(super) fn headers(fields: &[(&'static str, &'static str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for &(name, value) in fields {
        headers.append(
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        );
    }
    headers
}

impl Case {
    pub(super) fn accept(mut self, value: &'static str) -> Self {
        self.request.retain(|(name, _)| *name != "accept-encoding");
        self.request.push(("accept-encoding", value));
        self
    }

    pub(super) fn request(mut self, name: &'static str, value: &'static str) -> Self {
        self.request.push((name, value));
        self
    }

    pub(super) fn says(mut self, name: &'static str, value: &'static str) -> Self {
        self.head.push((name, value));
        self
    }

    pub(super) fn kind(mut self, content_type: &'static str) -> Self {
        self.head[0].1 = content_type;
        self
    }

    pub(super) fn status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    pub(super) fn length(mut self, length: impl Into<Option<u64>>) -> Self {
        self.length = length.into();
        self
    }

    pub(super) fn method(mut self, method: Method) -> Self {
        self.method = method;
        self
    }

    pub(super) fn version(mut self, version: Version) -> Self {
        self.version = version;
        self
    }

    pub(super) fn route(mut self, change: impl FnOnce(&mut Compress)) -> Self {
        change(&mut self.compress);
        self
    }

    pub(super) fn verdict(&self) -> Verdict {
        self.verdict_for(None)
    }

    pub(super) fn verdict_for(&self, accepts: Option<Accepts>) -> Verdict {
        let request = headers(&self.request);
        let mut asked = Asked::of(
            &self.method,
            self.version,
            "example.com",
            &request,
            &self.compress,
        );
        asked.accepts = accepts.unwrap_or(asked.accepts);
        plan(&Question {
            compress: &self.compress,
            asked: &asked,
            status: StatusCode::from_u16(self.status).expect("a status"),
            head: &headers(&self.head),
            length: self.length,
        })
    }
}
