//! Calls that may take a while run on a thread of their own, so that the server hears meanwhile that one is no longer wanted, can
//! say how far it has come, and answers other sessions.

use std::{io, panic, time::Duration};

use surehand_engine::CallProgress;
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tokio_util::sync::CancellationToken;

/// How often it is told how far a call has come.
pub(super) const EVERY: Duration = Duration::from_millis(500);

/// Stops a course when nobody waits for it any more, for whatever reason.
struct StopOnDrop(CallProgress);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Waits for a piece of work on a thread of its own. Stops its course when it is cancelled, and tells now and then how many files
/// it has come by.
pub(super) async fn attend<T: Send + 'static, Told: Future<Output = ()>>(
    course: CallProgress,
    cancelled: CancellationToken,
    every: Duration,
    tell: impl Fn(u64) -> Told,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    let StopOnDrop(course) = &StopOnDrop(course);
    let mut running = tokio::task::spawn_blocking(work);
    let mut ticks = interval_at(Instant::now() + every, every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut told = 0;
    loop {
        tokio::select! {
            done = &mut running => return match done {
                Ok(done) => Ok(done),
                Err(error) if error.is_panic() => panic::resume_unwind(error.into_panic()),
                Err(error) => Err(io::Error::other(error)),
            },
            () = cancelled.cancelled(), if !course.is_stopped() => course.stop(),
            _ = ticks.tick() => {
                // A client may take the same number twice for a mistake.
                if course.files() > told {
                    told = course.files();
                    tell(told).await;
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
        let (course, cancelled) = (CallProgress::default(), CancellationToken::new());
        let theirs = (course.clone(), cancelled.clone());
        let work = move || {
            theirs.1.cancel();
            while !theirs.0.is_stopped() {
                std::thread::yield_now();
            }
            "stopped"
        };
        let done = block_on(attend(course, cancelled, EVERY, |_| std::future::ready(()), work));
        assert_eq!(done.unwrap(), "stopped");
    }

    #[test]
    fn work_that_is_left_alone_is_stopped() {
        let course = CallProgress::default();
        let attended = attend(course.clone(), CancellationToken::new(), EVERY, |_| std::future::ready(()), || ());
        block_on(async {
            let mut attended = Box::pin(attended);
            // Once, so that it has begun.
            let _ = poll_once(attended.as_mut()).await;
        });
        assert!(course.is_stopped());
    }

    async fn poll_once<T>(mut future: std::pin::Pin<&mut impl Future<Output = T>>) -> Option<T> {
        std::future::poll_fn(|context| match future.as_mut().poll(context) {
            std::task::Poll::Ready(done) => std::task::Poll::Ready(Some(done)),
            std::task::Poll::Pending => std::task::Poll::Ready(None),
        })
        .await
    }

    #[test]
    fn work_that_takes_a_while_tells_how_far_it_is_once_for_each_step() {
        let dir = surehand_testkit::repository();
        let mut session = Session::new(Workspace::open(dir.path(), Config::default()).unwrap());
        for name in ["a", "b"] {
            session.call("write_file", &json!({ "path": name, "content": "x\n" }));
        }
        let course = CallProgress::default();
        let (theirs, told) = (course.clone(), Arc::new(Mutex::new(Vec::new())));
        let (heard, hears) = mpsc::channel();
        let work = move || {
            let _ = session.run_tool(&theirs, "list_files", &json!({}));
            // Not before it was told.
            hears.recv().unwrap();
        };
        let tell = |files| {
            told.lock().unwrap().push(files);
            heard.send(()).unwrap();
            std::future::ready(())
        };
        block_on(attend(course, CancellationToken::new(), Duration::from_millis(1), tell, work)).unwrap();
        assert_eq!(*told.lock().unwrap(), [2]);
    }
}
