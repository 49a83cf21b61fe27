//! Reads lines from the person at the terminal, also when standard input is redirected.

use std::{
    fs::File,
    io::{self, IsTerminal, Stdin},
    os::fd::{AsFd, BorrowedFd},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::{Errno, read},
    termios::{QueueSelector, tcflush},
};
use surehand_agent::CancelToken;

/// The terminal, in its own line mode.
pub(crate) enum Keyboard {
    Standard(Stdin),
    /// `/dev/tty`.
    Device(File),
}

/// How often cancellation is checked.
const LOOK_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

impl Keyboard {
    pub(crate) fn find() -> Option<Self> {
        let standard = io::stdin();
        if standard.is_terminal() {
            return Some(Self::Standard(standard));
        }
        File::open("/dev/tty").ok().map(Self::Device)
    }

    /// Discards what was typed before the question.
    pub(crate) fn forget(&self) {
        // Without support for this, the old input is read.
        let _ = tcflush(self, QueueSelector::IFlush);
    }

    /// The next line; `None` at the end of the input or on cancellation.
    pub(crate) fn line(&self, cancel: &CancelToken) -> io::Result<Option<String>> {
        let mut typed = Vec::new();
        while !typed.ends_with(b"\n") {
            let mut buffer = [0; 4096];
            if !self.wait(cancel)? {
                return Ok(None);
            }
            match read(self, &mut buffer) {
                Ok(0) => return Ok(None),
                Ok(length) => typed.extend_from_slice(&buffer[..length]),
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Some(String::from_utf8_lossy(&typed).into_owned()))
    }

    /// Waits for input or cancellation. A blocking read would not notice cancellation.
    fn wait(&self, cancel: &CancelToken) -> io::Result<bool> {
        while !cancel.is_cancelled() {
            match poll(&mut [PollFd::new(self, PollFlags::IN)], Some(&LOOK_EVERY)) {
                Ok(0) | Err(Errno::INTR) => {}
                // If this kind of file cannot be polled, the read blocks.
                Ok(_) => return Ok(true),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(false)
    }
}

impl AsFd for Keyboard {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Standard(standard) => standard.as_fd(),
            Self::Device(device) => device.as_fd(),
        }
    }
}
