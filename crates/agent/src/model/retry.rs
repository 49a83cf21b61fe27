//! Retries: how often, and after which pause. `request_error` decides which errors are transient.

use std::{
    thread,
    time::{Duration, Instant},
};

use super::{StreamEvent, StreamListener, request_error::RequestError};
use crate::cancel::CancelToken;

/// When a request counts as failed, and how often it is retried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// A request fails when the server is silent for this long.
    pub idle: Duration,
    /// The maximum number of attempts.
    pub attempts: u32,
    /// The longest pause before the second attempt. It doubles with each attempt. A random part of it is waited, so
    /// that clients do not all return at once.
    pub first_pause: Duration,
    /// No pause is longer, even if the provider asks for more.
    pub longest_pause: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            idle: Duration::from_secs(120),
            attempts: 6,
            first_pause: Duration::from_secs(2),
            longest_pause: Duration::from_secs(60),
        }
    }
}

impl RetryPolicy {
    /// The pause after an attempt; the first attempt is 1. `chance` is in 0..1; `wait` is the pause that the provider
    /// asked for.
    fn pause(&self, attempt: u32, wait: Option<Duration>, chance: f64) -> Duration {
        let doubled = self.first_pause.saturating_mul(2_u32.saturating_pow(attempt - 1));
        let pause = match wait {
            Some(wait) => wait.saturating_add(self.first_pause.mul_f64(chance)),
            None => doubled.min(self.longest_pause).mul_f64(chance),
        };
        pause.min(self.longest_pause)
    }
}

#[derive(Debug, PartialEq)]
pub(super) struct GivenUp {
    pub attempts: u32,
    pub error: RequestError,
}

/// Repeats an attempt while it fails with transient errors. Each pause is announced before it starts.
pub(super) fn retry_transient<T>(
    policy: &RetryPolicy,
    cancel: &CancelToken,
    hear: StreamListener<'_>,
    mut attempt: impl FnMut(StreamListener<'_>) -> Result<T, RequestError>,
) -> Result<T, GivenUp> {
    let mut attempts = 0;
    loop {
        attempts += 1;
        let error = match attempt(hear) {
            Ok(found) => return Ok(found),
            Err(error) => error,
        };
        let RequestError::Transient { why, wait, .. } = &error else { return Err(GivenUp { attempts, error }) };
        if attempts >= policy.attempts {
            return Err(GivenUp { attempts, error });
        }
        let pause = policy.pause(attempts, *wait, random_fraction());
        hear(StreamEvent::Retry { why, seconds: pause.as_secs_f64() });
        sleep_unless_cancelled(pause, cancel).map_err(|error| GivenUp { attempts, error })?;
    }
}

/// How often waiting code checks for cancellation.
pub(super) const CANCEL_POLL: Duration = Duration::from_millis(20);

fn sleep_unless_cancelled(pause: Duration, cancel: &CancelToken) -> Result<(), RequestError> {
    let start = Instant::now();
    loop {
        if cancel.is_cancelled() {
            return Err(RequestError::Cancelled);
        }
        let left = pause.saturating_sub(start.elapsed());
        if left.is_zero() {
            return Ok(());
        }
        thread::sleep(left.min(CANCEL_POLL));
    }
}

/// A random number in 0..1.
fn random_fraction() -> f64 {
    let mut random = [0; 4];
    // Without randomness the pause has its full length, which does no harm.
    match rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty()) {
        Ok(_) => f64::from(u32::from_ne_bytes(random)) / (f64::from(u32::MAX) + 1.0),
        Err(_) => 1.0,
    }
}

/// Parses a `Retry-After` header: seconds, or an HTTP date.
pub(super) fn retry_after(value: &str, now: jiff::Timestamp) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = jiff::fmt::rfc2822::parse(value).ok()?.timestamp();
    Some(Duration::try_from(date.duration_since(now)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{super::request_error::TransientKind, *};

    #[track_caller]
    fn waits(value: &str, expected: Option<u64>) {
        let now = "2026-11-06T08:49:37Z".parse().unwrap();
        assert_eq!(retry_after(value, now), expected.map(Duration::from_secs));
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        waits("7", Some(7));
        waits(" 0 ", Some(0));
        waits("Fri, 06 Nov 2026 08:50:07 GMT", Some(30));
        waits("Fri, 06 Nov 2026 08:40:00 GMT", Some(0));
        waits("soon", None);
        waits("-3", None);
        waits("1e99", None);
    }

    #[test]
    fn pauses_double_up_to_the_longest() {
        let policy = RetryPolicy::default();
        let pauses: Vec<_> = (1..=7).map(|attempt| policy.pause(attempt, None, 1.0).as_secs()).collect();
        assert_eq!(pauses, [2, 4, 8, 16, 32, 60, 60]);
    }

    #[test]
    fn the_provider_may_ask_for_a_pause_but_not_for_any() {
        let policy = RetryPolicy::default();
        assert_eq!(policy.pause(1, Some(Duration::from_secs(20)), 0.5).as_secs(), 21);
        assert_eq!(policy.pause(1, Some(Duration::from_secs(86_400)), 0.5), policy.longest_pause);
    }

    proptest! {
        #[test]
        fn no_pause_is_too_long(attempt in 1_u32.., wait in prop::option::of(0_u64..), chance in 0.0..1.0) {
            let policy = RetryPolicy::default();
            let pause = policy.pause(attempt, wait.map(Duration::from_secs), chance);
            prop_assert!(pause <= policy.longest_pause);
        }
    }

    fn quick() -> RetryPolicy {
        RetryPolicy { first_pause: Duration::from_micros(1), attempts: 3, ..RetryPolicy::default() }
    }

    #[track_caller]
    fn check(faults: &[RequestError], expected: Result<usize, GivenUp>, announced: usize) {
        let (mut made, mut heard) = (0, 0);
        let answer = retry_transient(&quick(), &CancelToken::default(), &mut |_| heard += 1, |_| {
            made += 1;
            faults.get(made - 1).cloned().map_or(Ok(made), Err)
        });
        assert_eq!(answer, expected);
        assert_eq!(heard, announced);
    }

    #[test]
    fn transient_errors_are_retried_and_announced() {
        let busy = || RequestError::transient(TransientKind::Busy, "busy");
        check(&[], Ok(1), 0);
        check(&[busy()], Ok(2), 1);
        check(&[busy(), busy()], Ok(3), 2);
        check(&[busy(), busy(), busy()], Err(GivenUp { attempts: 3, error: busy() }), 2);
    }

    #[test]
    fn permanent_errors_are_not_retried() {
        let refused = RequestError::Refused { status: 400, why: "no".into() };
        check(std::slice::from_ref(&refused), Err(GivenUp { attempts: 1, error: refused.clone() }), 0);
        check(&[RequestError::Cancelled], Err(GivenUp { attempts: 1, error: RequestError::Cancelled }), 0);
    }

    #[test]
    fn a_pause_ends_when_the_run_is_cancelled() {
        let hour = Duration::from_secs(3600);
        let policy = RetryPolicy { longest_pause: hour, ..quick() };
        let cancel = CancelToken::default();
        let wait = RequestError::Transient { kind: TransientKind::Busy, why: String::new(), wait: Some(hour) };
        let asker = cancel.clone();
        let answer = retry_transient(&policy, &cancel, &mut |_| asker.cancel(), |_| Err::<(), _>(wait.clone()));
        assert_eq!(answer, Err(GivenUp { attempts: 1, error: RequestError::Cancelled }));
    }
}
