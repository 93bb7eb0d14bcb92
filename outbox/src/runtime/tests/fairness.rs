//! Slots are granted in the order of waiting.

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::{
    record::{Partition, Record},
    registry::{HandlerIx, PerHandler},
    runtime::lane::{AttemptEnd, Burst, HandlerSettings, LaneSettings, Lanes, Target, Work},
    store::FetchedRecord,
};

const HANDLER: HandlerIx = HandlerIx::for_tests(0);

/// Lanes of one handler, and how often each lane got a slot while another waited for one.
struct Bench {
    lanes: Lanes,
    running: Vec<(Work, std::vec::IntoIter<Work>)>,
    /// Records of each key that have not ended.
    left: BTreeMap<String, usize>,
    /// Keys that wait for a slot, each with how many bursts of other keys started since.
    waiting: BTreeMap<String, BTreeMap<String, usize>>,
}

impl Bench {
    fn new(concurrency: u32, max_burst: usize) -> Self {
        let settings = HandlerSettings {
            id: "a",
            concurrency,
            skips_failed: false,
            is_transactional: false,
        };
        Self {
            lanes: Lanes::new(LaneSettings {
                stop_on_failure: true,
                max_burst,
                handlers: PerHandler::for_tests([settings].into_iter()),
            }),
            running: Vec::new(),
            left: BTreeMap::new(),
            waiting: BTreeMap::new(),
        }
    }

    fn publish(&mut self, id: i64, key: &str) {
        let record = Record::for_tests(id, key, "");
        let target = Target {
            handler: HANDLER,
            is_blocked: false,
        };
        let partition = Partition::new(0);
        self.lanes
            .admit_record(FetchedRecord { partition, record }, &[target]);
        *self.left.entry(key.to_owned()).or_default() += 1;
        self.start();
    }

    /// Starts every burst that has its slot. Lanes with records and without a burst then wait.
    fn start(&mut self) {
        for Burst { first, rest } in self.lanes.take_bursts() {
            let key = first.record.key.clone();
            self.waiting.remove(&key);
            for (other, bursts) in &mut self.waiting {
                let bursts = bursts.entry(key.clone()).or_default();
                *bursts += 1;
                assert!(
                    *bursts <= 1,
                    "{key} got {bursts} slots while {other} waited"
                );
            }
            self.running.push((first, rest.into_iter()));
        }
        for (key, left) in &self.left {
            let is_running = |(work, _): &(Work, _)| work.record.key == *key;
            if *left > 0 && !self.running.iter().any(is_running) {
                self.waiting.entry(key.clone()).or_default();
            }
        }
    }

    /// The first record of a burst ends. `continues`: the worker starts the next one.
    fn end(&mut self, at: usize, continues: bool) {
        if self.running.is_empty() {
            return;
        }
        let at = at % self.running.len();
        let (work, mut rest) = self.running.remove(at);
        *self.left.get_mut(&work.record.key).unwrap() -= 1;
        let next = self.lanes.on_finished(&work, AttemptEnd::Handled);
        match rest.next() {
            None => assert_eq!(next, None),
            Some(work) if continues => self.running.push((work, rest)),
            Some(work) => self.lanes.on_not_started(work),
        }
        self.start();
    }
}

proptest! {
    /// A waiting lane gets a slot after at most one burst of each other lane.
    #[test]
    fn a_lane_waits_for_at_most_one_burst_of_each_other_lane(
        concurrency in 1u32..4,
        max_burst in 1usize..9,
        published in prop::collection::vec(0u8..6, 1..60),
        ends in prop::collection::vec((0usize..4, any::<bool>(), any::<bool>()), 1..200),
    ) {
        let mut bench = Bench::new(concurrency, max_burst);
        let mut published = (1..).zip(published);
        for (at, continues, publishes) in ends {
            if publishes && let Some((id, key)) = published.next() {
                bench.publish(id, &format!("k{key}"));
            }
            bench.end(at, continues);
        }
        for (id, key) in published {
            bench.publish(id, &format!("k{key}"));
        }
        while !bench.running.is_empty() {
            bench.end(0, true);
        }
        prop_assert!(bench.left.values().all(|left| *left == 0), "{:?}", bench.left);
    }
}
