//! A program on a pseudo-terminal that controls it, for tests of interactive use.

use std::{
    fs::File,
    io::{Read, Write},
    path::PathBuf,
    process::{Child, Command},
    sync::{Arc, Condvar, Mutex},
    thread::{self, JoinHandle},
    time::Duration,
};

use rustix::{
    fs::{Mode, OFlags, open},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};

/// A terminal with a program that runs on it.
pub struct Terminal {
    controller: File,
    child: Child,
    screen: Arc<(Mutex<Screen>, Condvar)>,
    reader: JoinHandle<()>,
    /// How much of the output was waited for.
    passed: usize,
}

#[derive(Default)]
struct Screen {
    output: Vec<u8>,
    is_closed: bool,
}

const PATIENCE: Duration = Duration::from_secs(60);

impl Terminal {
    /// Starts a program with its arguments, environment and directory on a terminal of this width.
    pub fn start(command: &Command, columns: u16) -> Self {
        let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a pseudo-terminal");
        grantpt(&controller).and_then(|()| unlockpt(&controller)).expect("a pseudo-terminal");
        let name = ptsname(&controller, Vec::new()).expect("its name").into_string().expect("plain letters");
        let end =
            || open(PathBuf::from(&name), OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty()).expect("its other end");
        tcsetwinsize(&controller, Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).expect("its size");
        let mut on_terminal = Command::new("setsid");
        on_terminal.arg("--ctty").arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => on_terminal.env(name, value),
                None => on_terminal.env_remove(name),
            };
        }
        if let Some(directory) = command.get_current_dir() {
            on_terminal.current_dir(directory);
        }
        let child = on_terminal.env("TERM", "xterm").stdin(end()).stdout(end()).stderr(end()).spawn().expect("setsid is there");
        let controller = File::from(controller);
        let screen = Arc::<(Mutex<Screen>, Condvar)>::default();
        let (mut source, shared) = (controller.try_clone().expect("another handle"), Arc::clone(&screen));
        let reader = thread::spawn(move || read_all(&mut source, &shared));
        Self { controller, child, screen, reader, passed: 0 }
    }

    /// Waits until the output contains this text, after the text of the previous wait. Returns the output up to it.
    #[track_caller]
    pub fn wait_for(&mut self, text: &str) -> String {
        let (screen, bell) = &*self.screen;
        let end = |screen: &Screen| {
            let at = screen.output[self.passed..].windows(text.len()).position(|window| window == text.as_bytes())?;
            Some(self.passed + at + text.len())
        };
        let is_missing = |screen: &mut Screen| end(screen).is_none() && !screen.is_closed;
        let screen = screen.lock().expect("no thread panics while holding the lock");
        let (screen, _) = bell.wait_timeout_while(screen, PATIENCE, is_missing).expect("no thread panics while holding the lock");
        let (begin, end) = (self.passed, end(&screen));
        let passed = String::from_utf8_lossy(&screen.output[begin..end.unwrap_or(screen.output.len())]).into_owned();
        drop(screen);
        self.passed = end.unwrap_or_else(|| panic!("{text:?} does not come; there is: {passed}"));
        passed
    }

    /// Types this, as it is: a line ends with `\r`, and Ctrl-C is `\x03`.
    pub fn type_keys(&mut self, keys: &str) {
        self.controller.write_all(keys.as_bytes()).expect("the terminal is there");
    }

    /// Whether the terminal is in the mode that a shell expects: line by line, with echo.
    pub fn has_its_own_mode(&self) -> bool {
        use rustix::termios::{LocalModes, tcgetattr};
        let modes = tcgetattr(&self.controller).expect("the terminal is there").local_modes;
        modes.contains(LocalModes::ICANON | LocalModes::ECHO)
    }

    /// Waits until the program has ended. Returns whether it has restored the mode of the terminal.
    pub fn wait_for_end(&mut self) -> bool {
        self.child.wait().expect("it is a child");
        self.has_its_own_mode()
    }

    /// Waits for the end of the program. Returns its exit code and all output.
    pub fn finish(mut self) -> (Option<i32>, String) {
        let status = self.child.wait().expect("it is a child");
        self.reader.join().expect("it does not panic");
        let screen = self.screen.0.lock().expect("no thread panics while holding the lock");
        (status.code(), String::from_utf8_lossy(&screen.output).into_owned())
    }
}

/// Reads until no process has the terminal open any more.
fn read_all(source: &mut File, shared: &(Mutex<Screen>, Condvar)) {
    let (screen, bell) = shared;
    let mut buffer = [0; 4096];
    loop {
        let length = source.read(&mut buffer).unwrap_or_default();
        let mut screen = screen.lock().expect("no thread panics while holding the lock");
        screen.output.extend_from_slice(&buffer[..length]);
        screen.is_closed = length == 0;
        let is_closed = screen.is_closed;
        drop(screen);
        bell.notify_all();
        if is_closed {
            return;
        }
    }
}
