//! The keyboard of whoever sits at the terminal, also when standard input is something else.

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

/// Somebody who can type. What is typed comes in lines, which the terminal itself lets people edit.
pub(crate) enum Keyboard {
    Standard(Stdin),
    /// The terminal that the process was started from.
    Device(File),
}

/// How often the wish to stop is looked at.
const LOOK_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

impl Keyboard {
    /// The keyboard, if there is one.
    pub(crate) fn find() -> Option<Self> {
        let standard = io::stdin();
        if standard.is_terminal() {
            return Some(Self::Standard(standard));
        }
        File::open("/dev/tty").ok().map(Self::Device)
    }

    /// Forgets what was typed so far: it was no answer to a question that nobody had seen.
    pub(crate) fn forget(&self) {
        // A terminal that cannot do this still gives what is typed.
        let _ = tcflush(self, QueueSelector::IFlush);
    }

    /// The next line; nothing if the input ends or somebody wants to stop.
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

    /// Waits until there is something to read; no longer if somebody wants to stop. A read that only waits would not notice.
    fn wait(&self, cancel: &CancelToken) -> io::Result<bool> {
        while !cancel.is_cancelled() {
            match poll(&mut [PollFd::new(self, PollFlags::IN)], Some(&LOOK_EVERY)) {
                Ok(0) | Err(Errno::INTR) => {}
                // Also where this kind of file cannot be waited for: then the read waits.
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
