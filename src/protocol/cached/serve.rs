//! A copy as the answer to one request: 304, a part, or the whole in a coding.
//!
//! Bodies are shared with the store; nothing is copied for a request but the head.

use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use http::header::{
    AGE, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE,
    HeaderMap, HeaderValue, SET_COOKIE,
};
use http::{Method, Response, StatusCode};

use super::fetch::Filling;
use super::{Answered, Visit, variant};
use crate::body::{AppBody, Body, Guarded, Plain, Source};
use crate::cache::object::Object;
use crate::cache::status::Handling;
use crate::codec::Coding;
use crate::head::range::{self, Wanted};
use crate::head::{precondition, transform};
use crate::policy::{self, Plan, Question, Reason};
use crate::protocol::http::{FromApp, respond};

/// A copy, and the head that it gets this time.
pub(super) struct Served {
    head: HeaderMap,
    object: Arc<Object>,
}

impl Served {
    /// As it is kept, with its age (RFC 9111 section 5.1).
    pub(super) fn of(object: Arc<Object>, now: SystemTime) -> Self {
        let mut head = object.head().clone();
        let age = object.freshness().age(now).as_secs();
        head.insert(AGE, HeaderValue::from(age));
        Self { head, object }
    }

    /// As its fetch brought it: that client gets what is kept by nobody, Set-Cookie above all.
    fn fresh(head: HeaderMap, object: Arc<Object>) -> Self {
        Self { head, object }
    }

    /// The same under other fields.
    pub(super) fn replace(&mut self, head: &HeaderMap) {
        let age = self.head.get(AGE).cloned();
        self.head.clone_from(head);
        if let Some(age) = age {
            self.head.insert(AGE, age);
        }
    }

    /// Cookies of a 304 are for who caused it.
    pub(super) fn set_cookies<'a>(&mut self, cookies: impl IntoIterator<Item = &'a HeaderValue>) {
        for cookie in cookies {
            self.head.append(SET_COOKIE, cookie.clone());
        }
    }
}

/// The form that a body leaves in.
struct Form {
    source: Source,
    coding: Option<Coding>,
    length: Option<u64>,
    reason: Reason,
}

impl Visit<'_> {
    /// Answers with a copy.
    pub(super) async fn serve(self, served: Served, handling: Handling) -> Response<Body> {
        let Served { mut head, object } = served;
        handling.append(&mut head);
        let status = object.status();
        let asked = &self.lookup.head.headers;
        if status.is_success() && precondition::is_not_modified(asked, &head) {
            return self.not_modified(head);
        }
        let length = object.body().len() as u64;
        if status == StatusCode::OK && self.lookup.asked.method == Method::GET {
            match range::wanted(asked, &head, length) {
                Wanted::Whole => {}
                Wanted::Part(part) => return self.part(head, &object, part),
                Wanted::Nothing => return self.nothing(head, length),
            }
        }
        self.negotiated(head, &object).await
    }

    /// The first answer, which is being kept: complete if it is soon, else as it comes.
    pub(super) async fn filling(mut self, filling: Filling, handling: Handling) -> Answered {
        let Filling {
            mut head,
            reader,
            landed,
            ..
        } = filling;
        let asked = &self.lookup.head.headers;
        if head.status.is_success() && precondition::is_not_modified(asked, &head.headers) {
            handling.append(&mut head.headers);
            return Ok(self.not_modified(head.headers));
        }
        let compress = &self.lookup.site.policy.compress;
        reader
            .settled(compress.whole_bytes, compress.whole_wait)
            .await;
        if let Some(object) = landed.get() {
            let served = Served::fresh(head.headers, Arc::clone(object));
            return Ok(self.serve(served, handling).await);
        }
        handling.append(&mut head.headers);
        let keeping = variant::Keeping::new(
            Arc::clone(&self.tools.copies),
            landed,
            &self.lookup.site.policy,
        );
        let from = FromApp {
            head,
            incoming: AppBody::Kept(Box::new(reader)),
            lease: None,
            deadline: self.lookup.deadline.take(),
            keeping,
        };
        let policy = &self.lookup.site.policy;
        respond(self.tools, policy, &self.lookup.asked, from, self.ledger).await
    }

    /// RFC 9110 section 15.4.5, with the tag form that the client holds.
    fn not_modified(mut self, mut head: HeaderMap) -> Response<Body> {
        let vary = self.varies(StatusCode::NOT_MODIFIED, &head);
        for name in [
            CONTENT_TYPE,
            CONTENT_LENGTH,
            CONTENT_ENCODING,
            CONTENT_LANGUAGE,
            CONTENT_RANGE,
        ] {
            head.remove(name);
        }
        self.ledger.reason = Reason::Status.word();
        self.lookup.held.toward_client(&mut head);
        self.finish(StatusCode::NOT_MODIFIED, head, Source::Empty, vary)
    }

    /// A 206: a part of the plain bytes, under the plain tag.
    fn part(
        mut self,
        mut head: HeaderMap,
        object: &Object,
        part: std::ops::Range<u64>,
    ) -> Response<Body> {
        let whole = object.body().len();
        let text = format!("bytes {}-{}/{whole}", part.start, part.end - 1);
        if let Ok(value) = HeaderValue::try_from(text) {
            head.insert(CONTENT_RANGE, value);
        }
        head.insert(CONTENT_LENGTH, HeaderValue::from(part.end - part.start));
        let bounds = [part.start, part.end].map(|at| usize::try_from(at).unwrap_or(whole));
        let bytes = object
            .body()
            .slice(bounds[0].min(whole)..bounds[1].min(whole));
        self.ledger.reason = Reason::Range.word();
        self.finish(StatusCode::PARTIAL_CONTENT, head, plain(bytes), false)
    }

    /// A 416.
    fn nothing(mut self, mut head: HeaderMap, length: u64) -> Response<Body> {
        if let Ok(value) = HeaderValue::try_from(format!("bytes */{length}")) {
            head.insert(CONTENT_RANGE, value);
        }
        head.insert(CONTENT_LENGTH, HeaderValue::from(0));
        head.remove(CONTENT_TYPE);
        self.ledger.reason = Reason::Range.word();
        let status = StatusCode::RANGE_NOT_SATISFIABLE;
        self.finish(status, head, Source::Empty, false)
    }

    /// All of it, in the coding that this client and the policy agree on.
    async fn negotiated(mut self, mut head: HeaderMap, object: &Arc<Object>) -> Response<Body> {
        let policy = Arc::clone(&self.lookup.site.policy);
        let asked = &self.lookup.asked;
        let (status, length) = (object.status(), object.body().len());
        let verdict = policy::plan(&Question {
            compress: &policy.compress,
            asked,
            status,
            head: &head,
            length: Some(length as u64),
        });
        let form = match verdict.plan {
            Plan::Pass(reason) => Form::plain(object, reason),
            Plan::Encode(recipe) if asked.method == Method::HEAD => Form {
                source: Source::Empty,
                coding: Some(recipe.coding),
                length: None,
                reason: Reason::Compressed,
            },
            // Each answer is padded by another length, so none is kept.
            Plan::Encode(_) if policy.compress.breach_pad > 0 => {
                return self.anew(head, object).await;
            }
            Plan::Encode(recipe) => {
                match variant::coded(
                    self.tools,
                    &self.lookup.site,
                    object,
                    recipe,
                    (&mut self.ledger, self.tier_left),
                )
                .await
                {
                    Ok(bytes) => Form::coded(recipe.coding, bytes),
                    Err(_) if asked.accepts.refuses_identity() => {
                        return self.anew(head, object).await;
                    }
                    Err(reason) => Form::plain(object, reason),
                }
            }
        };
        if form.coding.is_some() {
            self.ledger.plain(length);
        }
        self.ledger.reason = form.reason.word();
        self.ledger.coding = form.coding;
        match form.coding {
            Some(coding) => {
                transform::coded(&mut head, coding, form.length);
                self.finish(status, head, form.source, false)
            }
            None => {
                if has_length(status) {
                    head.insert(CONTENT_LENGTH, HeaderValue::from(length));
                }
                self.finish(status, head, form.source, verdict.vary)
            }
        }
    }

    /// Coded for this answer alone.
    async fn anew(mut self, head: HeaderMap, object: &Arc<Object>) -> Response<Body> {
        let (mut parts, ()) = Response::new(()).into_parts();
        parts.status = object.status();
        parts.headers = head;
        let from = FromApp {
            head: parts,
            incoming: AppBody::Whole(object.body().clone()),
            lease: None,
            deadline: self.lookup.deadline.take(),
            keeping: None,
        };
        let policy = &self.lookup.site.policy;
        match respond(self.tools, policy, &self.lookup.asked, from, self.ledger).await {
            Ok(response) => response,
            // Bytes that are here do not break off.
            Err((_, ledger)) => {
                let body = Guarded::new(Source::Empty, ledger, None, None);
                let mut response = Response::new(Body::Guarded(Box::new(body)));
                *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
                response
            }
        }
    }

    /// Whether a 304 has to say that there are variants.
    fn varies(&self, status: StatusCode, head: &HeaderMap) -> bool {
        let verdict = policy::plan(&Question {
            compress: &self.lookup.site.policy.compress,
            asked: &self.lookup.asked,
            status,
            head,
            length: None,
        });
        verdict.vary
    }

    fn finish(
        mut self,
        status: StatusCode,
        mut head: HeaderMap,
        source: Source,
        vary: bool,
    ) -> Response<Body> {
        if vary {
            transform::plain_variant(&mut head);
        } else {
            transform::untouched(&mut head);
        }
        let source = if self.lookup.asked.method == Method::HEAD {
            Source::Empty
        } else {
            source
        };
        self.ledger.status = status;
        let body = Guarded::new(source, self.ledger, None, self.lookup.deadline.take());
        let mut response = Response::new(Body::Guarded(Box::new(body)));
        *response.status_mut() = status;
        *response.headers_mut() = head;
        response
    }
}

impl Form {
    fn plain(object: &Object, reason: Reason) -> Self {
        Self {
            source: plain(object.body().clone()),
            coding: None,
            length: None,
            reason,
        }
    }

    fn coded(coding: Coding, bytes: Bytes) -> Self {
        Self {
            length: Some(bytes.len() as u64),
            source: Source::Ready(bytes),
            coding: Some(coding),
            reason: Reason::Compressed,
        }
    }
}

fn plain(bytes: Bytes) -> Source {
    if bytes.is_empty() {
        return Source::Empty;
    }
    Source::Plain(Plain {
        held: vec![bytes].into_iter(),
        rest: None,
        trailers: None,
    })
}

/// RFC 9110 section 8.6.
fn has_length(status: StatusCode) -> bool {
    !matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
}
