//! Runs the handlers: one step, everything that is due, or everything that becomes due in a time.

use std::time::Duration;

use super::{Kit, KitError, Step, manual_dispatcher::ManualRun};
use crate::outbox::{
    Result,
    clock::{Clock as _, later},
};

impl Kit {
    /// Makes one invocation, if one is due now. If the record has further handlers, each of them then
    /// has a row in [`deliveries`](Self::deliveries).
    ///
    /// # Errors
    /// A transaction of the test is open, or the database fails.
    pub async fn step(&self) -> Result<Option<Step>> {
        let mut dispatcher = self.dispatcher.lock().await;
        Box::pin(async {
            let mut run = dispatcher.run().await?;
            let step = run.step().await?;
            run.leave().await?;
            Ok(step)
        })
        .await
    }

    /// Makes every invocation that is due now. Records that handlers publish meanwhile and retries
    /// without a delay are included. Later retries and delayed records are not.
    ///
    /// # Errors
    /// A transaction of the test is open, there is no end ([`KitError::Endless`]), or the database
    /// fails.
    pub async fn run_until_idle(&self) -> Result<Vec<Step>> {
        self.run_for(Duration::ZERO).await
    }

    /// Moves the clock by `time`, and makes every invocation at the time at which it is due.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use outbox::{outbox_handler, retryable, testing::Kit, OutboxEvent};
    /// # #[derive(serde::Serialize, serde::Deserialize, OutboxEvent)]
    /// # #[outbox_event(name = "order.created", key = order_id)]
    /// # struct OrderCreated { order_id: i64 }
    /// #[outbox_handler]
    /// #[retryable(fixed("30d"), max_retries = 11)]
    /// async fn charge_card(event: OrderCreated) -> Result<(), &'static str> {
    ///     Err("no card")
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> outbox::Result<()> {
    /// let kit = Kit::new(|builder| builder.handler::<charge_card>()).await?;
    /// kit.publish(&OrderCreated { order_id: 1 }).await?;
    /// let year = kit.run_for(Duration::from_secs(365 * 24 * 3600)).await?;
    /// assert_eq!(year.len(), 12);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A transaction of the test is open, there is no end ([`KitError::Endless`]), or the database
    /// fails.
    pub async fn run_for(&self, time: Duration) -> Result<Vec<Step>> {
        let mut dispatcher = self.dispatcher.lock().await;
        let end = later(self.clock.now(), time).as_microsecond();
        let mut steps = Vec::new();
        Box::pin(async {
            let mut run = dispatcher.run().await?;
            loop {
                self.run_due(&mut run, &mut steps).await?;
                let next = run.next_due.filter(|next| *next <= end);
                let until = next.unwrap_or(end) - self.clock.now().as_microsecond();
                self.advance(Duration::from_micros(u64::try_from(until).unwrap_or(0)));
                if next.is_none() {
                    return Ok(steps);
                }
            }
        })
        .await
    }

    async fn run_due(&self, run: &mut ManualRun<'_>, all: &mut Vec<Step>) -> Result<()> {
        let before = all.len();
        while let Some(step) = run.step().await? {
            let handler = step.handler.clone();
            all.push(step);
            let steps = all.len() - before;
            if steps >= self.max_invocations {
                return Err(KitError::Endless { steps, handler }.into());
            }
        }
        Ok(())
    }
}
