//! What the second tier has to do with copies: it is asked before the app is, and before a coder is
//! run, and gets what came of either. A request waits for it no longer than `cache.shared.timeout`,
//! all in all.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use http::HeaderMap;

use super::{Copies, Site, Visit, is_fresh, within};
use crate::cache::flight::{Join, Waited};
use crate::cache::key::Url;
use crate::cache::object::{Object, ObjectId};
use crate::cache::store::Meant;
use crate::codec::Coding;
use crate::protocol::failure::Failure;
use crate::shared::Sought;

impl Copies {
    /// Brings what another instance keeps for this request into the store; false: it keeps nothing
    /// that is newer than the copy that is known here.
    pub(super) async fn bring(
        &self,
        site: &Site,
        (url, request): (&Url, &HeaderMap),
        known: Option<&Object>,
        within: Duration,
    ) -> bool {
        let Some(tier) = &self.shared else {
            return false;
        };
        let moment = self.store.moment();
        let sought = Sought {
            url,
            route: &site.name,
            request,
            most: site.policy.cache.max_object,
        };
        let Some(entry) = tier.find(sought, within).await else {
            return false;
        };
        let found = entry.object.freshness();
        let is_newer = known.is_none_or(|known| found.born > known.freshness().born);
        is_newer && is_fresh(found, SystemTime::now()) && self.store.insert(entry, moment)
    }

    /// Keeps a coded form, and lets others have it.
    pub(super) fn keep_coded(
        &self,
        object: ObjectId,
        coding: Coding,
        pieces: &[Bytes],
        dense: bool,
    ) -> Option<Bytes> {
        let kept = self.store.put_variant(object, coding, pieces, dense)?;
        if let (Some(tier), Some(entry)) = (&self.shared, self.store.entry(object)) {
            tier.keep_coded(entry, coding, kept.clone(), dense);
        }
        Some(kept)
    }

    /// Brings a coded form that another instance made.
    pub(super) async fn bring_coded(
        &self,
        object: ObjectId,
        coding: Coding,
        dense: bool,
        within: Duration,
    ) -> Option<Bytes> {
        let tier = self.shared.as_ref()?;
        let entry = self.store.entry(object)?;
        let coded = tier.coded(&entry, coding, dense, within).await?;
        let store = &self.store;
        store.put_variant(object, coding, &[coded.bytes], coded.dense)
    }

    /// How long a request may wait for the second tier.
    pub(super) fn patience(&self) -> Duration {
        self.shared
            .as_ref()
            .map_or(Duration::ZERO, crate::shared::Tier::timeout)
    }

    /// Forgets what a request made invalid, here and elsewhere.
    pub fn invalidate(&self, urls: Vec<Url>) {
        let meant: Vec<_> = urls.into_iter().map(Meant::Url).collect();
        for meant in &meant {
            self.store.purge(meant);
        }
        if let Some(tier) = &self.shared {
            tier.invalidate(meant);
        }
    }
}

impl Visit<'_> {
    /// Asks the second tier, once for all who want the same; true: the store may have more now.
    pub(super) async fn bring(&mut self, known: Option<&Arc<Object>>) -> Result<bool, Failure> {
        let copies = &self.tools.copies;
        let left = self.tier_left;
        if copies.shared.is_none() || self.tier_asked || self.said.no_store || left.is_zero() {
            return Ok(false);
        }
        let began = Instant::now();
        let joined = copies.brought.join(&self.key(), began);
        let lookup = &mut self.lookup;
        let (site, about) = (&lookup.site, (&lookup.url, &lookup.head.headers));
        let asked = async {
            let lead = match joined {
                Join::Lead(lead) => lead,
                Join::Alone => return Asked::Vain,
                Join::Wait(wait) => match wait.ended(left).await {
                    Waited::Lead(lead) => lead,
                    Waited::Landed => return Asked::ByAnother,
                    Waited::Alone => return Asked::Vain,
                },
            };
            let known = known.map(|object| &**object);
            if copies.bring(site, about, known, left).await {
                lead.landed();
                Asked::Brought
            } else {
                lead.alone();
                Asked::Vain
            }
        };
        let asked = within(&mut lookup.deadline, asked).await?;
        self.tier_left = left.saturating_sub(began.elapsed());
        // What another brought may be selected by other fields than this request has.
        self.tier_asked = !matches!(asked, Asked::ByAnother);
        Ok(!matches!(asked, Asked::Vain))
    }
}

/// How asking the second tier ended.
enum Asked {
    Brought,
    ByAnother,
    Vain,
}
