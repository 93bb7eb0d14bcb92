//! A policy of `RetryAware` that depends on a field of its type: each value of the field gives its own number
//! of invocations.

use std::time::Duration;

use outbox::{
    Handler, HandlerError, Metadata, OutboxEvent, Retry, RetryAware, outbox_handler, testing::Kit,
};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, OutboxEvent)]
#[outbox_event(name = "patience")]
struct Tested {}

/// Has a handler of a trait, and one that is a method.
struct Patient {
    retries: u32,
    delay: Duration,
}

impl RetryAware for Patient {
    type Policy = Retry;

    fn retry_policy(&self) -> Retry {
        let policy = Retry::builder().max_retries(self.retries).fixed(self.delay);
        policy.build().unwrap()
    }
}

#[outbox_handler(id = "field impl")]
impl Handler<Tested> for Patient {
    async fn handle(&self, _event: Tested, _meta: &Metadata) -> Result<(), HandlerError> {
        Err("always".into())
    }
}

#[outbox_handler]
impl Patient {
    #[outbox_handler(id = "field method")]
    async fn test(&self, _event: Tested) -> Result<(), HandlerError> {
        Err("always".into())
    }
}

#[tokio::test]
async fn each_value_of_the_field_gives_its_own_number_of_invocations_and_delays() {
    for (retries, delay) in [(0, 1), (2, 10), (5, 60)] {
        let delay = Duration::from_secs(delay);
        let kit = Kit::new(|builder| {
            builder
                .handler::<Patient>()
                .handler_for::<Patient, Tested>()
                .state(Patient { retries, delay })
                // Weaker places, with another number.
                .retry_policy(Retry::builder().max_retries(9))
        });
        let kit = kit.await.unwrap();
        kit.publish(&Tested {}).await.unwrap();
        let steps = kit.run_for(Duration::from_secs(3600)).await.unwrap();
        for handler in ["field impl", "field method"] {
            let report = kit.outbox().handlers();
            let words = &report.get(handler).unwrap().policy;
            assert!(words.contains(&format!("max {retries} retries")), "{words}");
            let of_handler = steps.iter().filter(|step| step.handler == handler);
            let times: Vec<_> = of_handler.map(|step| step.at).collect();
            assert_eq!(times.len(), retries as usize + 1, "{handler}, {retries}");
            for pair in times.windows(2) {
                let elapsed = pair[1].duration_since(pair[0]).unsigned_abs();
                assert_eq!(elapsed, delay, "{handler}, {retries}");
            }
        }
    }
}
