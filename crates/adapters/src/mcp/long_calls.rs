//! Runs long calls on threads of their own. Meanwhile the server can cancel them, report their progress, and answer
//! other sessions.

use std::{io, panic, time::Duration};

use surehand_engine::CallProgress;
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tokio_util::sync::CancellationToken;

/// The interval between progress reports.
pub(super) const EVERY: Duration = Duration::from_millis(500);

/// Stops a call when its future is dropped, for whatever reason.
struct StopOnDrop(CallProgress);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Runs `work` on its own thread and waits for it. Stops it on cancellation, and reports the number of processed files
/// at the interval `every`.
pub(super) async fn attend<T: Send + 'static, Report: Future<Output = ()>>(
    progress: CallProgress,
    cancelled: CancellationToken,
    every: Duration,
    report: impl Fn(u64) -> Report,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    let StopOnDrop(progress) = &StopOnDrop(progress);
    let mut running = tokio::task::spawn_blocking(work);
    let mut ticks = interval_at(Instant::now() + every, every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut reported = 0;
    loop {
        tokio::select! {
            done = &mut running => return match done {
                Ok(done) => Ok(done),
                Err(error) if error.is_panic() => panic::resume_unwind(error.into_panic()),
                Err(error) => Err(io::Error::other(error)),
            },
            () = cancelled.cancelled(), if !progress.is_stopped() => progress.stop(),
            _ = ticks.tick() => {
                // A client may treat the same number twice as an error.
                if progress.files() > reported {
                    reported = progress.files();
                    report(reported).await;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex, mpsc};

    use serde_json::json;
    use surehand_engine::{Config, Session, Workspace};

    use super::*;

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
    }

    #[test]
    fn work_that_is_cancelled_is_stopped() {
        let (progress, cancelled) = (CallProgress::default(), CancellationToken::new());
        let theirs = (progress.clone(), cancelled.clone());
        let work = move || {
            theirs.1.cancel();
            while !theirs.0.is_stopped() {
                std::thread::yield_now();
            }
            "stopped"
        };
        let done = block_on(attend(progress, cancelled, EVERY, |_| std::future::ready(()), work));
        assert_eq!(done.unwrap(), "stopped");
    }

    #[test]
    fn work_that_is_left_alone_is_stopped() {
        let progress = CallProgress::default();
        let attended = attend(progress.clone(), CancellationToken::new(), EVERY, |_| std::future::ready(()), || ());
        block_on(async {
            let mut attended = Box::pin(attended);
            // Polled once, so that the work has begun.
            let _ = poll_once(attended.as_mut()).await;
        });
        assert!(progress.is_stopped());
    }

    async fn poll_once<T>(mut future: std::pin::Pin<&mut impl Future<Output = T>>) -> Option<T> {
        std::future::poll_fn(|context| match future.as_mut().poll(context) {
            std::task::Poll::Ready(done) => std::task::Poll::Ready(Some(done)),
            std::task::Poll::Pending => std::task::Poll::Ready(None),
        })
        .await
    }

    #[test]
    fn long_work_reports_each_step_of_progress_once() {
        let dir = surehand_testkit::repository();
        let mut session = Session::new(Workspace::open(dir.path(), Config::default()).unwrap());
        for name in ["a", "b"] {
            session.call("write_file", &json!({ "path": name, "content": "x\n" }));
        }
        let progress = CallProgress::default();
        let (theirs, reported) = (progress.clone(), Arc::new(Mutex::new(Vec::new())));
        let (heard, hears) = mpsc::channel();
        let work = move || {
            let _ = session.run_tool(&theirs, "list_files", &json!({}));
            // The work ends only after the report.
            hears.recv().unwrap();
        };
        let report = |files| {
            reported.lock().unwrap().push(files);
            heard.send(()).unwrap();
            std::future::ready(())
        };
        block_on(attend(progress, CancellationToken::new(), Duration::from_millis(1), report, work)).unwrap();
        assert_eq!(*reported.lock().unwrap(), [2]);
    }
}
