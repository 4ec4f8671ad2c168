//! Asks the app for what will be kept: one request without the client's conditions, with ours where
//! there is a copy to validate (RFC 9111 section 4.3).

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use http::header::{
    CONTENT_LENGTH, ETAG, HeaderMap, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED, SET_COOKIE,
    TRANSFER_ENCODING,
};
use http::request::Parts;
use http::{Extensions, Method, Request, Response, StatusCode, Uri, Version};
use http_body::Body as _;
use hyper::body::Incoming;

use super::serve::Served;
use super::{Copies, Site, from_app, is_fresh, unconditional};
use crate::body::{Arriving, Body, Keeper, Outcome as Filled, Reader, tee};
use crate::cache::directives::RequestDirectives;
use crate::cache::flight::{FetchKey, Lead};
use crate::cache::freshness::{Exchange, Freshness, Unstorable, judge, judge_validated};
use crate::cache::kept;
use crate::cache::key::{Selector, Url};
use crate::cache::object::Object;
use crate::cache::store::{Entry, Moment};
use crate::head::hop;
use crate::head::media::MediaType;
use crate::protocol::failure::{Failure, Kind};
use crate::protocol::http::FromApp;
use crate::shared::{self, Tier};
use crate::upstream::{Answer, Call, Lease};

/// For so long nobody waits for a fetch whose last result could not be shared.
const ALONE: Duration = Duration::from_secs(2);

/// One fetch; it needs no client.
pub(super) struct Fetch {
    copies: Arc<Copies>,
    site: Site,
    url: Url,
    uri: Uri,
    /// Without conditions.
    headers: HeaderMap,
    call: Call,
    /// Of the client's request; its hints go where it came from.
    pub(super) extensions: Extensions,
    /// What the client said about copies.
    pub(super) said: RequestDirectives,
    /// Whether it said who it is.
    pub(super) authorized: bool,
}

/// What a fetch brought, and who answered after how long.
pub(super) struct Fetched {
    pub(super) server: Option<(Arc<str>, Duration)>,
    pub(super) outcome: Outcome,
}

pub(super) enum Outcome {
    /// The copy is still good.
    Validated { served: Served, status: StatusCode },
    /// The app failed, and the copy stands in.
    Fallback {
        object: Arc<Object>,
        status: Option<StatusCode>,
    },
    /// An answer that is kept as it comes.
    Filling(Filling),
    /// An answer that is not kept.
    Unkept { from: FromApp, unfit: Unstorable },
}

/// An answer on its way into the store.
pub(super) struct Filling {
    pub(super) head: http::response::Parts,
    pub(super) reader: Reader,
    /// There once it is stored.
    pub(super) landed: Arc<OnceLock<Arc<Object>>>,
    pub(super) ttl: i64,
}

/// When what was asked.
#[derive(Clone, Copy)]
struct Asked {
    moment: Moment,
    /// By the second tier's clock.
    tier: Option<shared::Asked>,
    at: SystemTime,
    began: Instant,
}

type Lone = Option<Lead<FetchKey>>;

impl Fetch {
    pub(super) fn new(
        copies: Arc<Copies>,
        site: &Site,
        url: &Url,
        head: &Parts,
        call: Call,
    ) -> Self {
        Self {
            copies,
            site: site.clone(),
            url: url.clone(),
            uri: head.uri.clone(),
            headers: unconditional(&head.headers),
            call,
            extensions: Extensions::new(),
            said: RequestDirectives::default(),
            authorized: false,
        }
    }

    /// Asks; about `object`, where it can be validated.
    pub(super) async fn run(
        mut self,
        mut object: Option<Arc<Object>>,
        mut lead: Lone,
    ) -> Result<Fetched, Failure> {
        loop {
            let asked = Asked {
                moment: self.copies.store.moment(),
                tier: self.copies.shared.as_ref().and_then(Tier::now),
                at: SystemTime::now(),
                began: Instant::now(),
            };
            let request = self.request(object.as_deref());
            let conditional = request.headers().contains_key(IF_NONE_MATCH)
                || request.headers().contains_key(IF_MODIFIED_SINCE);
            let sent = self.site.upstream.send(request, self.call).await;
            let answer = match sent.map_err(Failure::from).and_then(no_upgrade) {
                Ok(answer) => answer,
                Err(failure) => return self.failed(failure, object.as_ref(), lead),
            };
            let Answer {
                mut response,
                server,
                lease,
            } = answer;
            let server = Some((server, asked.began.elapsed()));
            let may_be_cut = is_ended_by_closing(&response);
            receive(&mut response);
            let status = response.status();
            if let (StatusCode::NOT_MODIFIED, true, Some(known)) = (status, conditional, &object) {
                let Some(served) = self.validated(known, &response, asked, &mut lead) else {
                    // What was validated is not what is kept: it has to be fetched.
                    self.copies.store.forget(known.id());
                    object = None;
                    continue;
                };
                let outcome = Outcome::Validated { served, status };
                return Ok(Fetched { server, outcome });
            }
            if Freshness::is_error(status)
                && let Some(object) = self.stand_in(object.as_ref())
            {
                alone(lead, ALONE);
                let status = Some(status);
                let outcome = Outcome::Fallback { object, status };
                return Ok(Fetched { server, outcome });
            }
            let unfit = may_be_cut.then_some(Unstorable::Framing);
            let outcome = self.received(response, lease, asked, (object, lead, unfit));
            return Ok(Fetched { server, outcome });
        }
    }

    /// Asks about `object` for nobody in particular: others first, then the app.
    pub(super) async fn refresh(self, object: Arc<Object>, lead: Lead<FetchKey>) {
        let about = (&self.url, &self.headers);
        let patience = self.copies.patience();
        if (self.copies)
            .bring(&self.site, about, Some(&object), patience)
            .await
        {
            return lead.landed();
        }
        drop(self.run(Some(object), Some(lead)).await);
    }

    /// A HEAD of `object` was answered (section 4.3.5): it says whether the copy is still good.
    pub(super) fn freshen(
        &self,
        object: &Arc<Object>,
        response: &Response<Incoming>,
        took: Duration,
    ) {
        if response.status() != object.status() {
            return;
        }
        let at = SystemTime::now();
        let renewed = kept::freshened(object.head(), response.headers(), at).ok();
        let renewed = renewed.and_then(|head| {
            let asked = at.checked_sub(took)?;
            let freshness = self.judged(object, &head, response, asked).ok()?;
            object.validated(head, freshness)
        });
        let renewed = renewed.unwrap_or_else(|| object.ended());
        self.copies.store.refresh(Arc::new(renewed));
    }

    fn request(&mut self, object: Option<&Object>) -> Request<Body> {
        let mut request = Request::new(Body::Empty);
        *request.method_mut() = Method::GET;
        *request.uri_mut() = self.uri.clone();
        *request.version_mut() = Version::HTTP_11;
        *request.extensions_mut() = std::mem::take(&mut self.extensions);
        let headers = request.headers_mut();
        headers.clone_from(&self.headers);
        if let Some(object) = object {
            for (name, validator) in [(IF_NONE_MATCH, ETAG), (IF_MODIFIED_SINCE, LAST_MODIFIED)] {
                if let Some(value) = object.head().get(validator) {
                    headers.insert(name, value.clone());
                }
            }
        }
        request
    }

    fn failed(
        &self,
        failure: Failure,
        object: Option<&Arc<Object>>,
        lead: Lone,
    ) -> Result<Fetched, Failure> {
        // Nobody waits for one after the other to fail.
        alone(lead, Duration::ZERO);
        let object = self.stand_in(object).ok_or(failure)?;
        let outcome = Outcome::Fallback {
            object,
            status: None,
        };
        Ok(Fetched {
            server: None,
            outcome,
        })
    }

    /// RFC 5861 section 4.
    fn stand_in(&self, object: Option<&Arc<Object>>) -> Option<Arc<Object>> {
        let now = SystemTime::now();
        let may = |object: &&Arc<Object>| {
            let freshness = object.freshness();
            freshness.stands_in(&self.said, self.authorized, now)
        };
        object.filter(may).map(Arc::clone)
    }

    /// Section 4.3.4. `None`: the 304 is about something else.
    fn validated(
        &self,
        object: &Arc<Object>,
        response: &Response<Incoming>,
        asked: Asked,
        lead: &mut Lone,
    ) -> Option<Served> {
        let now = SystemTime::now();
        let head = kept::not_modified(object.head(), response.headers(), now).ok()?;
        let judged = self.judged(object, &head, response, asked.at);
        let renewed = judged
            .ok()
            .and_then(|freshness| object.validated(head.clone(), freshness))
            .map(Arc::new);
        let mut served = match renewed {
            Some(renewed) => {
                let shared = self.copies.store.refresh(Arc::clone(&renewed))
                    && is_fresh(renewed.freshness(), now);
                if shared {
                    self.share(self.copies.store.entry(renewed.id()), asked);
                }
                match lead.take() {
                    Some(lead) if shared => lead.landed(),
                    lead => alone(lead, ALONE),
                }
                Served::of(renewed, now)
            }
            None => {
                // Good for this request, and to be kept no longer.
                self.copies.store.forget(object.id());
                alone(lead.take(), ALONE);
                let mut served = Served::of(Arc::clone(object), now);
                served.replace(&head);
                served
            }
        };
        served.set_cookies(response.headers().get_all(SET_COOKIE));
        Some(served)
    }

    /// Lets other instances find what was stored.
    fn share(&self, entry: Option<Entry>, asked: Asked) {
        if let (Some(tier), Some(entry), Some(asked)) = (&self.copies.shared, entry, asked.tier) {
            tier.keep(entry, asked);
        }
    }

    /// How fresh a kept response is, after one without bytes spoke of it.
    fn judged(
        &self,
        object: &Object,
        head: &HeaderMap,
        response: &Response<Incoming>,
        asked: SystemTime,
    ) -> Result<Freshness, Unstorable> {
        let exchange = Exchange {
            status: object.status(),
            ..self.exchange(response, asked)
        };
        judge_validated(exchange, head, &self.site.policy.cache)
    }

    fn exchange<'a>(&'a self, response: &'a Response<Incoming>, asked: SystemTime) -> Exchange<'a> {
        Exchange {
            method: &Method::GET,
            request: &self.headers,
            status: response.status(),
            response: response.headers(),
            asked,
            answered: SystemTime::now(),
        }
    }

    /// An answer with bytes of its own.
    fn received(
        self,
        response: Response<Incoming>,
        lease: Lease,
        asked: Asked,
        (object, lead, unfit): (Option<Arc<Object>>, Lone, Option<Unstorable>),
    ) -> Outcome {
        let judged = match unfit {
            None => self.judge_new(&response, asked.at),
            Some(unfit) => Err(unfit),
        };
        match judged {
            Ok((freshness, selector)) => {
                let entry = Planned {
                    fetch: self,
                    selector,
                    freshness,
                    asked,
                    lead,
                };
                Outcome::Filling(entry.fill(response, lease))
            }
            Err(unfit) => {
                alone(lead, ALONE);
                // What the app says now takes the place of what it said before.
                if let Some(object) = object.filter(|_| !response.status().is_server_error()) {
                    self.copies.store.forget(object.id());
                }
                let from = from_app(response, lease);
                Outcome::Unkept { from, unfit }
            }
        }
    }

    fn judge_new(
        &self,
        response: &Response<Incoming>,
        asked: SystemTime,
    ) -> Result<(Freshness, Selector), Unstorable> {
        let headers = response.headers();
        let freshness = judge(self.exchange(response, asked), &self.site.policy.cache)?;
        let selector = Selector::read(headers, &self.headers).ok_or(Unstorable::Vary)?;
        let length = response.body().size_hint().exact();
        if length.is_some_and(|length| length > self.site.policy.cache.max_object) {
            return Err(Unstorable::Size);
        }
        if MediaType::of(headers).is_some_and(MediaType::is_stream) {
            return Err(Unstorable::Stream);
        }
        if crate::cache::tags::Tags::read(headers).is_none() {
            return Err(Unstorable::Tags);
        }
        Ok((freshness, selector))
    }
}

/// An answer that may be stored once all of it is here.
struct Planned {
    fetch: Fetch,
    selector: Selector,
    freshness: Freshness,
    asked: Asked,
    lead: Lone,
}

impl Planned {
    fn fill(self, response: Response<Incoming>, lease: Lease) -> Filling {
        let (head, incoming) = response.into_parts();
        let landed = Arc::new(OnceLock::new());
        let (budget, most) = (
            self.fetch.copies.filling.clone(),
            self.fetch.site.policy.cache.max_object,
        );
        let answered = SystemTime::now();
        let ttl = self.freshness.ttl(answered);
        let (status, fields) = (head.status, head.headers.clone());
        let place = Arc::clone(&landed);
        let keeper: Keeper = Box::new(move |filled| {
            let object = match filled {
                Filled::Whole(parts) => {
                    Object::new(status, &fields, answered, parts, self.freshness)
                }
                Filled::Unfit => None,
            };
            let object = self.store(object.map(Arc::new))?;
            let body = object.body().clone();
            // Nobody else sets it.
            let _ = place.set(object);
            Some(body)
        });
        let incoming = Arriving::new(incoming, head.version);
        let reader = tee(incoming, lease, most, &budget, keeper);
        Filling {
            head,
            reader,
            landed,
            ttl,
        }
    }

    /// Puts it where others find it, and tells those who wait.
    fn store(self, object: Option<Arc<Object>>) -> Option<Arc<Object>> {
        let store = &self.fetch.copies.store;
        let stored = object.filter(|object| {
            let entry = Entry {
                url: self.fetch.url.clone(),
                route: Arc::clone(&self.fetch.site.name),
                selector: self.selector.clone(),
                object: Arc::clone(object),
            };
            store.insert(entry, self.asked.moment)
        });
        let shared = stored.is_some() && is_fresh(&self.freshness, SystemTime::now());
        if let Some(object) = stored.as_ref().filter(|_| shared) {
            self.fetch.share(store.entry(object.id()), self.asked);
        }
        match self.lead {
            Some(lead) if shared => lead.landed(),
            lead => alone(lead, ALONE),
        }
        stored
    }
}

/// All who wait go on by themselves, and who comes within `time` does not wait.
fn alone(lead: Lone, time: Duration) {
    match lead {
        Some(lead) if time.is_zero() => lead.alone(),
        Some(lead) => lead.alone_for(Instant::now(), time),
        None => {}
    }
}

/// What concerns only the app's connection goes; where it came through is said.
pub(super) fn receive(response: &mut Response<Incoming>) {
    let version = response.version();
    hop::strip_response(response.headers_mut());
    hop::via(response.headers_mut(), version);
}

/// An app that switches protocols unasked is broken.
pub(super) fn no_upgrade(answer: Answer) -> Result<Answer, Failure> {
    if answer.response.status().is_informational() {
        let kind = Kind::BadGateway("the application switched protocols unasked");
        return Err(Failure::app(kind));
    }
    Ok(answer)
}

/// Nothing but the end of the connection says where this ends; to be asked before hop-by-hop fields
/// are gone.
fn is_ended_by_closing(response: &Response<Incoming>) -> bool {
    let headers = response.headers();
    response.version() <= Version::HTTP_11
        && !headers.contains_key(CONTENT_LENGTH)
        && !headers.contains_key(TRANSFER_ENCODING)
        && !response.body().is_end_stream()
}
