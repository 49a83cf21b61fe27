//! Reads lines that the user types at the terminal, even if standard input is redirected.

use std::{
    fs::File,
    io::{self, IsTerminal},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{Mutex, PoisonError},
    thread,
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::{Errno, read},
    process::getpgrp,
    termios::{LocalModes, OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcgetpgrp, tcsetattr},
};
use surehand_agent::CancelToken;

/// The terminal. In its own line mode, except between `take_keys` and `give_back_keys`.
pub(crate) struct Keyboard(OwnedFd);

/// The interval at which cancellation is checked.
const LOOK_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

const NOW: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// The mode of the terminal before its keys were taken. It is kept here because a signal may end the process anywhere.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// Restores the mode of the terminal before the process ends.
pub(crate) fn restore_mode() {
    if let Some(keyboard) = Keyboard::find() {
        keyboard.give_back_keys();
    }
}

impl Keyboard {
    pub(crate) fn find() -> Option<Self> {
        let standard = io::stdin();
        let terminal = match standard.is_terminal() {
            true => standard.as_fd().try_clone_to_owned(),
            false => File::open("/dev/tty").map(OwnedFd::from),
        };
        terminal.ok().map(Self)
    }

    /// Discards what was typed before the question.
    pub(crate) fn forget(&self) {
        // Where this is not supported, the old input is read.
        let _ = tcflush(self, QueueSelector::IFlush);
    }

    /// The next line; `None` at the end of the input or on cancellation.
    pub(crate) fn line(&self, cancel: &CancelToken) -> io::Result<Option<String>> {
        let mut typed = Vec::new();
        while !typed.ends_with(b"\n") {
            if !self.wait(cancel)? {
                return Ok(None);
            }
            let Some(more) = self.read_typed()? else { return Ok(None) };
            typed.extend(more);
        }
        Ok(Some(String::from_utf8_lossy(&typed).into_owned()))
    }

    /// Makes the terminal pass on each key at once without echoing it, until [`Self::give_back_keys`]. Signals work as
    /// before. Does nothing in a background process, which would be stopped.
    pub(crate) fn take_keys(&self) {
        let Ok(mode) = tcgetattr(self) else { return };
        if !self.is_in_foreground() || !mode.local_modes.contains(LocalModes::ICANON) {
            return;
        }
        let mut keys = mode.clone();
        keys.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
        let mut before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner);
        if tcsetattr(self, OptionalActions::Now, &keys).is_ok() {
            *before = Some(mode);
        }
    }

    /// Restores the mode from before [`Self::take_keys`].
    pub(crate) fn give_back_keys(&self) {
        let mut before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mode) = before.take_if(|_| self.is_in_foreground()) {
            // If the terminal is gone, nothing needs to be restored.
            let _ = tcsetattr(self, OptionalActions::Now, &mode);
        }
    }

    /// A terminal that does not control this process has no background.
    fn is_in_foreground(&self) -> bool {
        match tcgetpgrp(self) {
            Ok(group) => group == getpgrp(),
            Err(error) => error == Errno::NOTTY,
        }
    }

    /// Whether there is typed input that this process may read. Fails if this kind of file cannot be polled, because a
    /// read would block.
    pub(crate) fn has_input(&self) -> io::Result<bool> {
        if !self.is_in_foreground() {
            return Ok(false);
        }
        match self.poll(NOW)? {
            ready if ready.contains(PollFlags::NVAL) => Err(io::ErrorKind::Unsupported.into()),
            ready => Ok(!ready.is_empty()),
        }
    }

    /// Waits for input, at most `LOOK_EVERY`.
    pub(crate) fn wait_a_moment(&self) -> io::Result<()> {
        if self.is_in_foreground() {
            return self.poll(LOOK_EVERY).map(drop);
        }
        thread::sleep(Duration::from_millis(LOOK_EVERY.tv_nsec as u64 / 1_000_000));
        Ok(())
    }

    /// Reads what was typed; `None` at the end of the input. Blocks if there is no input.
    pub(crate) fn read_typed(&self) -> io::Result<Option<Vec<u8>>> {
        let mut buffer = [0; 4096];
        match read(self, &mut buffer) {
            Ok(0) => Ok(None),
            Ok(length) => Ok(Some(buffer[..length].to_vec())),
            Err(Errno::INTR | Errno::AGAIN) => Ok(Some(Vec::new())),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits for input at most this long; empty flags mean that there is none.
    fn poll(&self, time: Timespec) -> io::Result<PollFlags> {
        let mut polled = [PollFd::new(self, PollFlags::IN)];
        match poll(&mut polled, Some(&time)) {
            Ok(_) => Ok(polled[0].revents()),
            Err(Errno::INTR) => Ok(PollFlags::empty()),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits for input or cancellation. A blocking read would not notice cancellation.
    fn wait(&self, cancel: &CancelToken) -> io::Result<bool> {
        while !cancel.is_cancelled() {
            // If this kind of file cannot be polled, the read blocks.
            if !self.poll(LOOK_EVERY)?.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl AsFd for Keyboard {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
