//! The display of a run on a terminal: lines that stay, and a status line below them. A thread turns the spinner, and every writer holds the
//! lock of the screen. The cursor is never hidden and no terminal mode is changed, so a killed process leaves nothing to repair.

use std::{
    io::{self, Write},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use surehand_agent::{CancelToken, RunEvent};

use super::{
    approval::{self, ApprovalAnswer},
    keyboard::Keyboard,
    progress::RunProgress,
    status_line,
    style::{Colours, Painter},
    terminal_lines,
};

pub(super) struct RunTerminal {
    shared: Arc<SharedScreen>,
    spinner: Option<JoinHandle<()>>,
}

struct SharedScreen {
    screen: Mutex<Screen>,
    /// Wakes the spinner.
    bell: Condvar,
}

const FRAME: Duration = Duration::from_millis(100);

impl RunTerminal {
    pub(super) fn new(out: Box<dyn Write + Send>, width: Box<dyn Fn() -> usize + Send>) -> Self {
        let shared = Arc::new(SharedScreen { screen: Mutex::new(Screen::new(out, width)), bell: Condvar::new() });
        // If the thread cannot start, there is no spinner.
        let turning = Arc::clone(&shared);
        let spinner = thread::Builder::new().name("spinner".to_owned()).spawn(move || turning.turn()).ok();
        Self { shared, spinner }
    }

    /// Shows what happened.
    pub(super) fn show(&mut self, event: &RunEvent) -> io::Result<()> {
        self.shared.screen().show(event, Instant::now())?;
        if matches!(event, RunEvent::Turn { .. }) {
            self.shared.bell.notify_all();
        }
        Ok(())
    }

    /// Asks whether a command may run. Holds the screen until the answer.
    pub(super) fn ask(&mut self, command: &str, cancel: &CancelToken) -> io::Result<ApprovalAnswer> {
        let Some(keyboard) = Keyboard::find() else { return Ok(ApprovalAnswer::Nobody) };
        let mut screen = self.shared.screen();
        let began = Instant::now();
        screen.erase()?;
        keyboard.forget();
        let painter = screen.painter();
        let answer = approval::ask(command, painter, &mut screen.out, &mut || keyboard.line(cancel))?;
        // The time of the question does not count.
        screen.turn_began += began.elapsed();
        Ok(answer)
    }
}

impl Drop for RunTerminal {
    fn drop(&mut self) {
        let mut screen = self.shared.screen();
        screen.is_over = true;
        // An error means that the terminal is gone.
        let _ = screen.leave();
        drop(screen);
        self.shared.bell.notify_all();
        if let Some(spinner) = self.spinner.take() {
            let _ = spinner.join();
        }
    }
}

impl SharedScreen {
    /// Locks the screen, also after a panic, so that the terminal is left clean.
    fn screen(&self) -> MutexGuard<'_, Screen> {
        self.screen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn turn(&self) {
        let mut screen = self.screen();
        while !screen.is_over {
            let waited = if screen.progress.status.is_some() {
                self.bell.wait_timeout(screen, FRAME).map(|(screen, _)| screen).map_err(|_| ())
            } else {
                self.bell.wait(screen).map_err(|_| ())
            };
            let Ok(held) = waited else { return };
            screen = held;
            if !screen.is_over && screen.tick(Instant::now()).is_err() {
                return;
            }
        }
    }
}

/// What is on the terminal. Time is passed in.
struct Screen {
    out: Box<dyn Write + Send>,
    width: Box<dyn Fn() -> usize + Send>,
    progress: RunProgress,
    has_status: bool,
    frame: usize,
    turn_began: Instant,
    /// When the model last sent text.
    spoke: Option<Instant>,
    is_over: bool,
}

/// Erases the row.
const ERASE: &str = "\r\x1b[2K";

/// The status is hidden while text streams, because it would flicker.
const SILENCE: Duration = Duration::from_millis(300);

impl Screen {
    fn new(out: Box<dyn Write + Send>, width: Box<dyn Fn() -> usize + Send>) -> Self {
        Self {
            out,
            width,
            progress: RunProgress::default(),
            has_status: false,
            frame: 0,
            turn_began: Instant::now(),
            spoke: None,
            is_over: false,
        }
    }

    fn painter(&self) -> Painter {
        Painter { width: (self.width)(), colours: Colours::On }
    }

    fn show(&mut self, event: &RunEvent, now: Instant) -> io::Result<()> {
        let painter = self.painter();
        let lines = terminal_lines::format_event(event, &mut self.progress, painter);
        self.progress.note(event);
        self.spoke = matches!(event, RunEvent::Text { .. }).then_some(now);
        if matches!(event, RunEvent::Turn { .. }) {
            self.turn_began = now;
        }
        self.write(&lines, now)
    }

    fn tick(&mut self, now: Instant) -> io::Result<()> {
        self.frame = self.frame.wrapping_add(1);
        if self.has_status || self.status(now).is_some() { self.write("", now) } else { Ok(()) }
    }

    /// Replaces the status by lines and a new status, in one write.
    fn write(&mut self, lines: &str, now: Instant) -> io::Result<()> {
        let status = self.status(now);
        let erase = if self.has_status { ERASE } else { "" };
        self.has_status = status.is_some();
        let text = format!("{erase}{lines}{}", status.unwrap_or_default());
        if text.is_empty() {
            return Ok(());
        }
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }

    fn status(&self, now: Instant) -> Option<String> {
        let is_silent = self.spoke.is_none_or(|spoke| now.saturating_duration_since(spoke) >= SILENCE);
        let status = self.progress.status.as_ref().filter(|_| is_silent && !self.progress.stream.is_mid_line())?;
        Some(status_line::render(status, self.frame, now.saturating_duration_since(self.turn_began), self.painter()))
    }

    fn erase(&mut self) -> io::Result<()> {
        let end_of_line = self.progress.stream.pause();
        let erase = if std::mem::take(&mut self.has_status) { ERASE } else { "" };
        self.out.write_all(format!("{erase}{end_of_line}").as_bytes())?;
        self.out.flush()
    }

    /// Leaves the cursor at the start of an empty row.
    fn leave(&mut self) -> io::Result<()> {
        self.progress.status = None;
        self.erase()
    }
}

#[cfg(test)]
mod tests {
    use surehand_agent::event::RunPhase;

    use super::*;
    use crate::display::tests::Buffer;

    struct TestScreen {
        buffer: Buffer,
        screen: Screen,
        now: Instant,
    }

    impl TestScreen {
        fn new() -> Self {
            let buffer = Buffer::default();
            let screen = Screen::new(Box::new(buffer.clone()), Box::new(|| 40));
            Self { buffer, screen, now: Instant::now() }
        }

        #[track_caller]
        fn check(&mut self, event: RunEvent, expected: &str) {
            self.screen.show(&event, self.now).unwrap();
            assert_eq!(self.buffer.take(), expected);
        }

        #[track_caller]
        fn check_tick(&mut self, after: Duration, expected: &str) {
            self.now += after;
            self.screen.tick(self.now).unwrap();
            assert_eq!(self.buffer.take(), expected);
        }
    }

    fn turn() -> RunEvent {
        RunEvent::Turn { turn: 1, phase: RunPhase::Planning, task: None, open: 0, completed: 0, prompt_tokens: 100 }
    }

    fn text(text: &str) -> RunEvent {
        RunEvent::Text { text: text.to_owned() }
    }

    fn status(frame: &str, seconds: u32) -> String {
        format!("\x1b[36m{frame}\x1b[0m \x1b[2mturn 1 · planning, thinking · {seconds} s\x1b[0m")
    }

    #[test]
    fn lines_are_written_where_the_status_was() {
        let mut tried = TestScreen::new();
        tried.check_tick(FRAME, "");
        tried.check(turn(), &format!("\x1b[1m▸ planning\x1b[0m\n{}", status("⠙", 0)));
        tried.check_tick(FRAME, &format!("{ERASE}{}", status("⠹", 0)));
        tried.check_tick(Duration::from_secs(2), &format!("{ERASE}{}", status("⠸", 2)));
        tried.check(
            RunEvent::Folded { messages: 2 },
            &format!("{ERASE}  \x1b[2m2 messages folded into a snapshot\x1b[0m\n{}", status("⠸", 2)),
        );
    }

    #[test]
    fn text_streams_without_a_status_in_it() {
        let mut tried = TestScreen::new();
        tried.check(turn(), &format!("\x1b[1m▸ planning\x1b[0m\n{}", status("⠋", 0)));
        tried.check(text("Hel"), &format!("{ERASE}Hel"));
        tried.check_tick(Duration::from_secs(1), "");
        tried.check(text("lo.\n"), "lo.\n");
        tried.check_tick(FRAME, "");
        tried.check_tick(SILENCE, &status("⠸", 1));
        tried.check(text("More"), &format!("{ERASE}More"));
        tried.check(RunEvent::Said { text: "Hello.\nMore".to_owned() }, &format!("\n{}", status("⠸", 1)));
    }

    #[test]
    fn it_is_left_at_the_beginning_of_an_empty_row() {
        for (events, expected) in [(vec![turn()], ERASE), (vec![turn(), text("Hel")], "\n"), (vec![], "")] {
            let mut tried = TestScreen::new();
            for event in &events {
                tried.screen.show(event, tried.now).unwrap();
            }
            tried.buffer.take();
            tried.screen.leave().unwrap();
            assert_eq!(tried.buffer.take(), expected);
            tried.check_tick(FRAME, "");
        }
    }

    #[test]
    fn a_panic_leaves_it_tidy_too() {
        let buffer = Buffer::default();
        let out = buffer.clone();
        let run = thread::spawn(move || {
            let mut terminal = RunTerminal::new(Box::new(out), Box::new(|| 40));
            terminal.show(&turn()).unwrap();
            let _held = terminal.shared.screen();
            panic!("on purpose");
        });
        run.join().unwrap_err();
        assert!(buffer.take().ends_with(ERASE));
    }
}
