//! Remembers things in the background: a tool call hands over its records and goes on. What a crash takes with it is at most
//! the views of the last moments, and a lost view only means that a file is read again.

use std::{
    sync::{
        Arc, Mutex,
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread::JoinHandle,
    time::Duration,
};

use surehand_core::Notice;
use surehand_store::{Record, Store};

/// The thread that writes to the store.
#[derive(Debug)]
pub struct Recorder {
    sender: Option<Sender<Order>>,
    thread: Option<JoinHandle<()>>,
}

enum Order {
    Record(Vec<Record>),
    Flush(Sender<()>),
}

/// How much kept text the store may hold, packed.
const MAX_VERSIONS: u64 = 256 << 20;

impl Recorder {
    /// Starts the thread. `housekeeping` is run in its idle moments; it says whether there is more to do soon.
    pub fn start(
        store: impl Store + 'static,
        notices: Arc<Mutex<Vec<Notice>>>,
        housekeeping: impl Fn() -> bool + Send + 'static,
    ) -> std::io::Result<Self> {
        let (sender, receiver) = mpsc::channel();
        let run = move || run(store, &receiver, &notices, &housekeeping);
        let thread = std::thread::Builder::new().name("surehand-recorder".to_owned()).spawn(run)?;
        Ok(Self { sender: Some(sender), thread: Some(thread) })
    }

    /// Hands over records.
    pub fn record(&self, records: Vec<Record>) {
        if let (Some(sender), false) = (&self.sender, records.is_empty()) {
            // Only fails when the thread is gone, and then there is nobody left to tell.
            drop(sender.send(Order::Record(records)));
        }
    }

    /// Waits until everything handed over so far is written.
    pub fn flush(&self) {
        let (done, wait) = mpsc::channel();
        if let Some(sender) = &self.sender {
            if sender.send(Order::Flush(done)).is_ok() {
                let _ = wait.recv();
            }
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        drop(self.sender.take());
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

fn run(mut store: impl Store, receiver: &Receiver<Order>, notices: &Mutex<Vec<Notice>>, housekeeping: &dyn Fn() -> bool) {
    let mut failed = false;
    let mut busy = true;
    loop {
        let first = match receiver.recv_timeout(if busy { Duration::from_millis(300) } else { Duration::from_secs(30) }) {
            Ok(order) => order,
            Err(RecvTimeoutError::Timeout) => {
                busy = housekeeping();
                continue;
            }
            Err(RecvTimeoutError::Disconnected) => break,
        };
        busy = true;
        let (mut records, mut waiting) = (Vec::new(), Vec::new());
        for order in std::iter::once(first).chain(receiver.try_iter()) {
            match order {
                Order::Record(more) => records.extend(more),
                Order::Flush(done) => waiting.push(done),
            }
        }
        if let Err(error) = store.record(&records) {
            // Said once: the next calls would only say the same.
            if !std::mem::replace(&mut failed, true) {
                let notice = Notice::NotRemembered { why: error.to_string() };
                notices.lock().expect("nobody panics while holding it").push(notice);
            }
        }
        for done in waiting {
            let _ = done.send(());
        }
    }
    drop(store.trim(MAX_VERSIONS));
}
