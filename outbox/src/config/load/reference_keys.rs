//! Compatibility: keys of similar libraries, and what to write here instead.

use crate::registry::nearest::kebab;

/// The correction for an unknown key of this section, if it is a key of a similar library.
pub(super) fn instead(section: &[String], key: &str) -> Option<&'static str> {
    let section: Vec<&str> = section.iter().map(String::as_str).collect();
    // A named policy has the same keys as `retry` itself.
    let section = match *section {
        [] => "",
        ["retry"] | ["retry", "policies", _] => "retry",
        _ => return None,
    };
    Some(match (section, &*kebab(key)) {
        ("retry", "backoff") => "write `policy: fixed` or `policy: exponential`",
        ("retry", "strategy") => {
            "write `policy: exponential`, with `jitter: full` for the jittered one"
        }
        ("retry", "initial-delay") => {
            "write it in the section `exponential` or `linear`, or as `delay` in `fixed`"
        }
        ("retry", "max-delay") => "write it in the section `exponential` or `linear`",
        ("retry", "increment") => "write it in the section `linear`",
        ("retry", "delay") => "write it in the section `fixed`",
        ("retry", "multiplier") => "write it in the section `exponential`",
        ("retry", "backoff-multiplier") => "write it as `multiplier` in the section `exponential`",
        ("retry", "base-policy") => "write it in the section `jittered`",
        ("retry", "max-attempts") => {
            "write `max-retries`, which does not count the first attempt (one less)"
        }
        ("retry", "handler") => {
            "write `#[retryable(policy = \"..\")]` at the handler, and the policy in `retry.policies`"
        }
        ("", "prisma") => "give the pool to `Outbox::builder` in code",
        ("", "entities" | "workflows") => "handlers are found through `#[outbox_handler]`",
        ("", "payload-validator") => "write `#[outbox_event(validate = ..)]` at the event",
        ("", "max-retries") => "write it in the section `retry`",
        _ => return None,
    })
}
