//! Requests to routes that keep copies (RFC 9111): answered from here, or by one fetch for all who
//! wait for the same.
//!
//! 1. A copy that the request selects and may use is served: see `serve`; where there is none, the
//!    second tier is asked for one: see `shared`.
//! 2. Else the first to come asks the app, and others wait for what it gets: see `fetch`.
//! 3. A copy that is stale is validated, or sent while somebody asks about it.
//! 4. HEAD and ranges that no copy answers are the app's to answer, and kept by nobody.
//!
//! It must never send one user what was made for another: what may be shared is `cache`'s to say,
//! and what it was not told of, such as fields that an application may read in the place of its
//! URL, does not come here: see [`admits`].

mod copies;
mod densify;
mod fetch;
mod serve;
mod shared;
mod variant;

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use http::header::{AUTHORIZATION, HeaderMap, RANGE};
use http::request::Parts;
use http::{Method, Request, Response};
use hyper::body::Incoming;
use tokio::time::Sleep;

use super::failure::{Failure, Kind};
use super::http::{FromApp, Tools, respond};
use crate::body::{AppBody, Arriving, Body, Lease, Ledger};
use crate::cache::directives::RequestDirectives;
use crate::cache::flight::{FetchKey, Join, Lead, Wait, Waited};
use crate::cache::freshness::{Freshness, Usage};
use crate::cache::key::Url;
use crate::cache::object::Object;
use crate::cache::status::{Handling, Then, Why};
use crate::cache::store::Found;
use crate::codec::Coding;
use crate::head::conditional::Held;
use crate::head::list;
use crate::policy;
use crate::telemetry::CacheResult;
use crate::upstream::{Answer, Call};

pub use copies::{Copies, Purge, Site};
pub use densify::Densifier;
use fetch::{Fetch, Fetched, Outcome};
use serve::Served;
pub use variant::Keeping;

/// Who waits for another's fetch goes on by itself after this.
const PATIENCE: Duration = Duration::from_secs(5);

/// A request that copies may answer: one that [`admits`] lets in.
pub struct Lookup {
    /// Its route.
    pub site: Site,
    /// Its key.
    pub url: Url,
    /// What it said of the answer it wants.
    pub asked: policy::Asked,
    /// The tags that its client holds.
    pub held: Held,
    /// As the app would get it; it has no body.
    pub head: Parts,
    /// How the app would be asked.
    pub call: Call,
    /// When the exchange is overdue.
    pub deadline: Option<Pin<Box<Sleep>>>,
}

type Answered = Result<Response<Body>, (Failure, Box<Ledger>)>;

/// Fields that frameworks read in the place of the URL or the method, or build links from. No cache
/// key holds them, so what answers them is nobody else's.
const UNKEYED: [&str; 9] = [
    "x-original-url",
    "x-rewrite-url",
    "x-original-host",
    "x-host",
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
    "x-forwarded-prefix",
    "x-forwarded-server",
];

/// Whether copies may answer this request, whose host was `host`; `head` is as the app would get it.
#[must_use]
pub fn admits(head: &Parts, host: &str, has_body: bool) -> bool {
    let fields = &head.headers;
    let same_host = |value: &http::HeaderValue| value.as_bytes() == host.as_bytes();
    matches!(head.method, Method::GET | Method::HEAD)
        && !has_body
        && !crate::head::precondition::is_for_the_app(fields)
        && !UNKEYED.iter().any(|name| fields.contains_key(*name))
        && fields.get_all("x-forwarded-host").iter().all(same_host)
        && fields.get_all("x-forwarded-proto").iter().count() <= 1
}

/// What the cache says of a request that [`admits`] did not let in.
#[must_use]
pub fn bypassed(method: &Method) -> Handling {
    let cacheable = matches!(*method, Method::GET | Method::HEAD);
    Handling::Forward {
        why: if cacheable { Why::Bypass } else { Why::Method },
        status: None,
        then: Then::Silent,
        collapsed: false,
    }
}

/// Answers a request from the copies, or asks the app.
///
/// # Errors
/// The app gave no answer, and no copy stands in for it.
pub async fn answer(tools: &Tools, lookup: Lookup, ledger: Box<Ledger>) -> Answered {
    let said = RequestDirectives::read(&lookup.head.headers);
    let visit = Visit {
        tools,
        authorized: lookup.head.headers.contains_key(AUTHORIZATION),
        lookup,
        said,
        ledger,
        tier_asked: false,
        tier_left: tools.copies.patience(),
    };
    visit.run().await
}

/// One request on its way.
struct Visit<'a> {
    tools: &'a Tools,
    lookup: Lookup,
    said: RequestDirectives,
    authorized: bool,
    ledger: Box<Ledger>,
    /// The second tier was asked for this.
    tier_asked: bool,
    /// How long this request may still wait for it.
    tier_left: Duration,
}

/// What the store has for a request.
enum Look {
    /// A copy, to be sent.
    Use(Arc<Object>, CacheResult),
    /// The app has to be asked; perhaps about a copy.
    Ask(Option<Arc<Object>>, Why),
    /// There is a copy, but not for this client.
    Other,
}

impl Visit<'_> {
    async fn run(mut self) -> Answered {
        let mut collapsed = None;
        loop {
            let (object, why) = match self.look() {
                Look::Use(object, result) => return Ok(self.hit(object, result, collapsed).await),
                Look::Other => return self.pass(None, Why::VaryMiss).await,
                Look::Ask(object, why) => (object, why),
            };
            if why != Why::Request && collapsed.is_none() {
                match self.bring(object.as_ref()).await {
                    Ok(true) => continue,
                    Ok(false) => {}
                    Err(failure) => return Err((failure, self.ledger)),
                }
            }
            if self.said.only_if_cached {
                let failure = Failure::proxy(Kind::GatewayTimeout("no copy that may be used"));
                return Err((failure, self.ledger));
            }
            let head = &self.lookup.head;
            if head.method == Method::HEAD || head.headers.contains_key(RANGE) {
                return self.pass(object, why).await;
            }
            if self.said.no_store || collapsed.is_some() {
                return self.fetch(object, why, None).await;
            }
            let joined = self.tools.copies.fetches.join(&self.key(), Instant::now());
            let waited = match joined {
                Join::Lead(lead) => Waited::Lead(lead),
                Join::Alone => Waited::Alone,
                Join::Wait(wait) => match self.wait(wait).await {
                    Ok(waited) => waited,
                    Err(failure) => return Err((failure, self.ledger)),
                },
            };
            match waited {
                Waited::Lead(lead) => return self.fetch(object, why, Some(lead)).await,
                Waited::Alone => return self.fetch(object, why, None).await,
                Waited::Landed => collapsed = Some(why),
            }
        }
    }

    fn look(&self) -> Look {
        let Lookup {
            url, site, head, ..
        } = &self.lookup;
        let object = match self.tools.copies.store.find(url, &site.name, &head.headers) {
            Found::UriMiss => return Look::Ask(None, Why::UriMiss),
            Found::VaryMiss => return Look::Ask(None, Why::VaryMiss),
            Found::Object(object) => object,
        };
        if !self.takes(&object) {
            return Look::Other;
        }
        let now = SystemTime::now();
        match object.freshness().usage(&self.said, self.authorized, now) {
            Usage::Fresh => Look::Use(object, CacheResult::Hit),
            Usage::Stale => Look::Use(object, CacheResult::Stale),
            Usage::StaleWhileRevalidate => {
                self.refresh(&object);
                Look::Use(object, CacheResult::Stale)
            }
            Usage::Validate => {
                let why = if is_fresh(object.freshness(), now) {
                    Why::Request
                } else {
                    Why::Stale
                };
                Look::Ask(Some(object), why)
            }
        }
    }

    /// What the app coded goes to who accepts it.
    fn takes(&self, object: &Object) -> bool {
        object.content_encoding().is_none()
            || list::tokens(object.head(), http::header::CONTENT_ENCODING).all(|token| {
                let coding = std::str::from_utf8(token).ok().and_then(Coding::from_token);
                let plain = [&b"identity"[..], b"none"];
                plain.iter().any(|name| token.eq_ignore_ascii_case(name))
                    || coding.is_some_and(|coding| self.lookup.asked.accepts.takes(coding))
            })
    }

    fn key(&self) -> FetchKey {
        let Lookup {
            url, site, head, ..
        } = &self.lookup;
        let store = &self.tools.copies.store;
        FetchKey {
            url: url.clone(),
            route: Arc::clone(&site.name),
            selector: store.expected(url, &site.name, &head.headers),
            authorized: self.authorized,
        }
    }

    /// Waits for another's fetch, for as long as the exchange may take.
    async fn wait(&mut self, wait: Wait<FetchKey>) -> Result<Waited<FetchKey>, Failure> {
        within(&mut self.lookup.deadline, wait.ended(PATIENCE)).await
    }

    async fn hit(
        mut self,
        object: Arc<Object>,
        result: CacheResult,
        collapsed: Option<Why>,
    ) -> Response<Body> {
        let now = SystemTime::now();
        let handling = match collapsed {
            None => Handling::Hit {
                ttl: object.freshness().ttl(now),
            },
            Some(why) => Handling::Forward {
                why,
                status: None,
                then: Then::Silent,
                collapsed: true,
            },
        };
        self.ledger.cache = Some(result);
        let served = Served::of(object, now);
        self.serve(served, handling).await
    }

    fn plan(&self) -> Fetch {
        let Lookup {
            site,
            url,
            head,
            call,
            ..
        } = &self.lookup;
        Fetch::new(Arc::clone(&self.tools.copies), site, url, head, *call)
    }

    /// Asks about a stale copy while it is sent, unless somebody does already.
    fn refresh(&self, object: &Arc<Object>) {
        let joined = self.tools.copies.fetches.join(&self.key(), Instant::now());
        if let Join::Lead(lead) = joined {
            let (fetch, object) = (self.plan(), Arc::clone(object));
            // Whoever fails is not missed: the next request tries again.
            tokio::spawn(fetch.refresh(object, lead));
        }
    }

    async fn fetch(
        mut self,
        object: Option<Arc<Object>>,
        why: Why,
        lead: Option<Lead<FetchKey>>,
    ) -> Answered {
        let mut fetch = self.plan();
        fetch.extensions = std::mem::take(&mut self.lookup.head.extensions);
        fetch.said = self.said;
        fetch.authorized = self.authorized;
        let running = Box::pin(fetch.run(object, lead));
        let fetched = match within(&mut self.lookup.deadline, running).await {
            Ok(Ok(fetched)) => fetched,
            Ok(Err(failure)) | Err(failure) => {
                self.ledger.cache = Some(CacheResult::Miss);
                return Err((failure, self.ledger));
            }
        };
        let Fetched { server, outcome } = fetched;
        if let Some((server, took)) = server {
            self.ledger.server = Some(server);
            self.ledger.server_took = Some(took);
        }
        self.conclude(outcome, why).await
    }

    /// Makes the client's answer of what a fetch brought.
    async fn conclude(mut self, outcome: Outcome, why: Why) -> Answered {
        let forward = |status, then| Handling::Forward {
            why,
            status,
            then,
            collapsed: false,
        };
        match outcome {
            Outcome::Validated { served, status } => {
                self.ledger.cache = Some(CacheResult::Revalidated);
                Ok(self
                    .serve(served, forward(Some(status), Then::Silent))
                    .await)
            }
            Outcome::Fallback { object, status } => {
                self.ledger.cache = Some(CacheResult::Stale);
                let served = Served::of(object, SystemTime::now());
                Ok(self.serve(served, forward(status, Then::Silent)).await)
            }
            Outcome::Filling(filling) => {
                self.ledger.cache = Some(CacheResult::Miss);
                let then = Then::Stored { ttl: filling.ttl };
                self.filling(filling, forward(None, then)).await
            }
            Outcome::Unkept { from, unfit } => {
                self.ledger.cache = Some(CacheResult::Miss);
                self.relay(from, forward(None, Then::Unstorable(unfit)))
                    .await
            }
        }
    }

    /// The app's own answer, kept by nobody.
    async fn relay(self, mut from: FromApp, handling: Handling) -> Answered {
        let Lookup {
            site,
            asked,
            deadline,
            ..
        } = self.lookup;
        handling.append(&mut from.head.headers);
        from.deadline = deadline;
        respond(self.tools, &site.policy, &asked, from, self.ledger).await
    }

    /// Asks the app as the client asked, and keeps nothing.
    async fn pass(mut self, object: Option<Arc<Object>>, why: Why) -> Answered {
        self.ledger.cache = Some(CacheResult::Bypass);
        let head = std::mem::replace(&mut self.lookup.head, Request::new(()).into_parts().0);
        let method = head.method.clone();
        let request = Request::from_parts(head, Body::Empty);
        let asking = Instant::now();
        let sending = Box::pin(self.lookup.site.upstream.send(request, self.lookup.call));
        let sent = match within(&mut self.lookup.deadline, sending).await {
            Ok(sent) => sent.map_err(Failure::from),
            Err(failure) => Err(failure),
        };
        let answer = match sent.and_then(fetch::no_upgrade) {
            Ok(answer) => answer,
            Err(failure) => return Err((failure, self.ledger)),
        };
        let Answer {
            mut response,
            server,
            lease,
        } = answer;
        self.ledger.server = Some(server);
        self.ledger.server_took = Some(asking.elapsed());
        fetch::receive(&mut response);
        if response.status() == http::StatusCode::NOT_MODIFIED {
            self.lookup.held.toward_client(response.headers_mut());
        }
        if let (Some(object), Method::HEAD) = (object, method) {
            self.plan().freshen(&object, &response, asking.elapsed());
        }
        let handling = Handling::Forward {
            why,
            status: None,
            then: Then::Silent,
            collapsed: false,
        };
        self.relay(from_app(response, lease), handling).await
    }
}

/// Whether it may be used without a word to the app.
fn is_fresh(freshness: &Freshness, now: SystemTime) -> bool {
    freshness.usage(&RequestDirectives::default(), false, now) == Usage::Fresh
}

fn from_app(response: Response<Incoming>, lease: Lease) -> FromApp {
    let (head, incoming) = response.into_parts();
    let incoming = Arriving::new(incoming, head.version);
    FromApp {
        head,
        incoming: AppBody::Arriving(incoming),
        lease: Some(lease),
        deadline: None,
        keeping: None,
    }
}

/// Does something for as long as the exchange may take.
async fn within<T>(
    deadline: &mut Option<Pin<Box<Sleep>>>,
    work: impl Future<Output = T>,
) -> Result<T, Failure> {
    let Some(deadline) = deadline else {
        return Ok(work.await);
    };
    tokio::select! {
        done = work => Ok(done),
        () = deadline.as_mut() => {
            Err(Failure::app(Kind::GatewayTimeout("the exchange took too long")))
        }
    }
}

/// The head of a request without its conditions: what others' answers are fetched with.
fn unconditional(headers: &HeaderMap) -> HeaderMap {
    use http::header::{IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE};
    let mut headers = headers.clone();
    for name in [IF_NONE_MATCH, IF_MODIFIED_SINCE, IF_RANGE, RANGE] {
        headers.remove(name);
    }
    headers
}
