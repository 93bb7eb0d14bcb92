//! What a fetch brought goes into lanes.
//!
//! In this order: due deliveries, parked lanes, pending records. A lane that is in memory knows
//! better than the fetch, which saw the database a moment ago.

use std::{collections::VecDeque, mem, sync::Arc};

use hashbrown::{HashMap, hash_map::EntryRef};
use smallvec::SmallVec;

use crate::runtime::lane::{Held, Hot, Item, Key, Lanes, Stand, Work, lane::HandlerIx};
use crate::{
    record::Attempt,
    store::{FetchedDelivery, FetchedRecord, LaneName},
};

/// How a fetched record goes on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) handler: HandlerIx,
    /// Whether the fetch saw something blocking in this lane.
    pub(crate) blocked: bool,
}

impl Lanes {
    /// A record that is pending, or scheduled and due. Whether it was new.
    pub(crate) fn record(&mut self, fetched: FetchedRecord, route: &[Route]) -> bool {
        let FetchedRecord { part, record } = fetched;
        let held = self.held(part);
        if self.records.contains_key(&record.id) {
            return false;
        }
        self.records.insert(record.id, held);
        if route.is_empty() {
            self.unwritten.batch.unhandled.push(record.id);
            self.unwritten.records.push(record.id);
            return true;
        }
        let record = Arc::new(record);
        let key = key_of(&mut self.keys, held, &record.key);
        let mut parked = false;
        for &Route { handler, blocked } in route {
            let places = self.handlers.get(usize::from(handler));
            let paused = places.is_some_and(|places| places.paused);
            let lane = key.lane_or(handler, || match blocked || paused {
                true => Stand::Blocked,
                false => Stand::Open,
            });
            // One of several that completes the record in its own transaction needs a row of its
            // own first, or what it did could not be told from what the others have not.
            let settings = self.settings.handlers.get(usize::from(handler));
            let transactional = settings.is_some_and(|settings| settings.transactional);
            let first_a_row = paused || transactional && route.len() > 1;
            if lane.stand == Stand::Open && !first_a_row {
                lane.queue.push_back(Item {
                    record: Arc::clone(&record),
                    attempt: Attempt::first(),
                    stored: false,
                    read: false,
                });
            } else {
                lane.parked();
                self.unwritten
                    .lanes
                    .push((record.key.as_str().into(), handler));
                self.unwritten.deliveries.push((record.id, handler));
                parked = true;
            }
        }
        key.hot.push_back(Hot {
            record: Arc::clone(&record),
            unfinished: route.iter().map(|route| route.handler).collect(),
            begun: false,
        });
        if parked {
            key.split(&self.settings, &mut self.unwritten, &mut self.deliveries);
        }
        for &Route { handler, .. } in route {
            self.advance(&record.key, handler);
        }
        true
    }

    /// A delivery whose retry is due, or that was replayed. Whether it was new.
    pub(crate) fn due_delivery(&mut self, handler: HandlerIx, due: FetchedDelivery) -> bool {
        let FetchedRecord { part, record } = due.fetched;
        let held = self.held(part);
        if self.deliveries.contains_key(&(record.id, handler)) {
            return false;
        }
        self.deliveries.insert((record.id, handler), held);
        let (record, attempt) = (Arc::new(record), due.attempt);
        if !due.blocking {
            let alone = Work {
                record,
                part,
                handler,
                attempt,
                from_row: true,
                is_detached: true,
            };
            self.start_alone(alone);
            return true;
        }
        let key = key_of(&mut self.keys, held, &record.key);
        let known = key.lane(handler).is_some();
        let lane = key.lane_or(handler, || Stand::Blocked);
        lane.lingers = true;
        let item = Item {
            record: Arc::clone(&record),
            attempt,
            stored: true,
            read: true,
        };
        if lane.stand == Stand::Blocked {
            lane.queue.insert(lane.turn, item);
            // What was parked by us may not be in `followed` yet.
            lane.stand = match due.followed || known {
                true => Stand::Behind,
                false => Stand::Open,
            };
        } else {
            lane.queue.push_back(item);
        }
        self.advance(&record.key, handler);
        true
    }

    /// The first parked deliveries of a lane that was to be read, in its order.
    pub(crate) fn parked_lane(
        &mut self,
        name: &LaneName,
        handler: HandlerIx,
        rows: Vec<FetchedDelivery>,
    ) {
        if self.is_closed(name.part) {
            return;
        }
        let held = self.held(name.part);
        let lane = self.keys.get_mut(&*name.key);
        let Some(lane) = lane.and_then(|key| key.lane(handler)) else {
            return;
        };
        let Stand::Checking { again } = lane.stand else {
            return;
        };
        let places = self.handlers.get(usize::from(handler));
        if places.is_none_or(|places| places.paused) {
            // All of it is found again when the handler goes on.
            lane.stand = Stand::Blocked;
            self.advance(&name.key, handler);
            return;
        }
        let mut more = again;
        let mut first_cannot_run = false;
        for (place, row) in rows.into_iter().enumerate() {
            // Of the last one only: what follows the others is in here too.
            more = again || row.followed;
            let record = row.fetched.record;
            if self.deliveries.contains_key(&(record.id, handler)) {
                // Not forgotten yet, or due and in the queue already: to be read again.
                more = true;
                break;
            }
            if !row.waiting {
                // What stands behind it is read when it has ended.
                first_cannot_run = place == 0;
                more = true;
                break;
            }
            self.deliveries.insert((record.id, handler), held);
            lane.queue.push_back(Item {
                record: Arc::new(record),
                attempt: row.attempt,
                stored: true,
                read: true,
            });
        }
        lane.stand = match (first_cannot_run, more) {
            (true, _) => Stand::Blocked,
            (false, true) => Stand::Behind,
            (false, false) => Stand::Open,
        };
        self.advance(&name.key, handler);
    }

    /// A lane in which, as the fetch saw it, the first parked delivery could run.
    pub(crate) fn runnable_lane(&mut self, name: &LaneName, handler: HandlerIx) {
        let places = self.handlers.get(usize::from(handler));
        if places.is_none_or(|places| places.paused) || self.is_closed(name.part) {
            return;
        }
        let held = self.held(name.part);
        let key = key_of(&mut self.keys, held, &name.key);
        let lane = key.lane_or(handler, || Stand::Blocked);
        if lane.stand == Stand::Blocked {
            lane.stand = Stand::Behind;
            self.advance(&name.key, handler);
        }
    }

    fn held(&self, part: u16) -> Held {
        Held {
            part,
            era: self.era,
        }
    }

    /// All that a fetch brought is in. What it could have been wrong about may be forgotten.
    pub(crate) fn fetch_ended(&mut self) {
        self.fetching = false;
        let fading = mem::take(&mut self.fading);
        for gone in &fading {
            self.forget(gone);
        }
    }
}

fn key_of<'a>(keys: &'a mut HashMap<Box<str>, Key>, held: Held, key: &str) -> &'a mut Key {
    match keys.entry_ref(key) {
        EntryRef::Occupied(entry) => entry.into_mut(),
        EntryRef::Vacant(entry) => {
            let new = Key {
                held,
                hot: VecDeque::new(),
                lanes: SmallVec::new(),
            };
            entry.insert_with_key(key.into(), new)
        }
    }
}
