//! Displays a run on a terminal: lines that stay, and below them a status line, or the line that the user types. One
//! thread turns the spinner, another one listens to the keyboard, and every writer holds the lock of the screen. The
//! cursor is never hidden. The mode of the terminal is changed during the run, and restored at questions and at the
//! end; only a killed process leaves that to the shell.

use std::{
    io::{self, Write},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use surehand_agent::RunEvent;

use super::{
    keyboard::{Keyboard, restore_mode},
    line_editor::LineEditor,
    progress::RunProgress,
    status_line,
    style::{Colours, Painter},
    terminal_lines,
};

pub(super) struct RunTerminal {
    shared: Arc<SharedScreen>,
    /// The threads of the spinner and of the keyboard.
    threads: Vec<JoinHandle<()>>,
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
        // Without the thread, the spinner does not turn.
        let turning = Arc::clone(&shared);
        let spinner = thread::Builder::new().name("spinner".to_owned()).spawn(move || turning.turn()).ok();
        Self { shared, threads: spinner.into_iter().collect() }
    }

    /// Starts to listen to the keyboard, until the end.
    pub(super) fn listening(mut self, keyboard: Keyboard) -> Self {
        self.shared.screen().progress.listens = true;
        let listening = Arc::clone(&self.shared);
        let listen = move || {
            // An error means that the terminal is gone.
            let _ = listening.listen(&keyboard);
        };
        self.threads.extend(thread::Builder::new().name("keyboard".to_owned()).spawn(listen));
        self
    }

    /// The lines that the user has typed since the last call.
    pub(super) fn take_words(&self) -> Vec<String> {
        std::mem::take(&mut self.shared.screen().said)
    }

    pub(super) fn show(&mut self, event: &RunEvent) -> io::Result<()> {
        self.shared.screen().show(event, Instant::now())?;
        if matches!(event, RunEvent::Turn { .. }) {
            self.shared.bell.notify_all();
        }
        Ok(())
    }

    /// Asks the user a question; `None` if there is no keyboard. Holds the screen until the answer, with the terminal
    /// in its own line mode.
    pub(super) fn ask<T>(
        &mut self,
        ask: impl FnOnce(&Keyboard, Painter, &mut dyn Write) -> io::Result<T>,
    ) -> io::Result<Option<T>> {
        let Some(keyboard) = Keyboard::find() else { return Ok(None) };
        let mut screen = self.shared.screen();
        let began = Instant::now();
        screen.erase()?;
        keyboard.give_back_keys();
        keyboard.forget();
        let painter = screen.painter();
        let answer = ask(&keyboard, painter, &mut screen.out)?;
        // The time spent on the question does not count.
        screen.turn_began += began.elapsed();
        Ok(Some(answer))
    }

    /// Notes that the user has just seen the diff of the edit that follows.
    pub(super) fn note_diff_was_seen(&mut self) {
        self.shared.screen().progress.is_diff_seen = true;
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
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        restore_mode();
    }
}

impl SharedScreen {
    /// Locks the screen, even after a panic, so that the terminal is left clean.
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

    /// Reads what the user types. A question holds the screen and reads for itself, so keys are only taken and read
    /// while holding the screen.
    fn listen(&self, keyboard: &Keyboard) -> io::Result<()> {
        loop {
            {
                let mut screen = self.screen();
                if screen.is_over {
                    return Ok(());
                }
                keyboard.take_keys();
                if keyboard.has_input()? {
                    let Some(typed) = keyboard.read_typed()? else { return Ok(()) };
                    screen.typed(&typed, Instant::now())?;
                }
            }
            keyboard.wait_a_moment()?;
        }
    }
}

/// The content of the terminal. The time is passed in.
struct Screen {
    out: Box<dyn Write + Send>,
    width: Box<dyn Fn() -> usize + Send>,
    progress: RunProgress,
    has_status: bool,
    frame: usize,
    turn_began: Instant,
    /// The time at which the model last sent text.
    spoke: Option<Instant>,
    /// The line that the user is typing. Shown instead of the status.
    editor: LineEditor,
    /// The lines that the user has typed, until they are taken.
    said: Vec<String>,
    /// The last part of the output, which has to wait because it is not a whole line and the user is typing below it.
    held: String,
    is_over: bool,
}

/// Erases the current row.
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
            editor: LineEditor::default(),
            said: Vec::new(),
            held: String::new(),
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
        let is_drawn = self.editor.is_empty() && (self.has_status || self.status(now).is_some());
        if is_drawn { self.write("", now) } else { Ok(()) }
    }

    /// Takes and shows what the user has typed.
    fn typed(&mut self, bytes: &[u8], now: Instant) -> io::Result<()> {
        let lines = self.editor.feed(bytes);
        // The model may be in the middle of a line.
        let end_of_line = if self.has_status { "" } else { self.progress.stream.pause() };
        let painter = self.painter();
        let mut shown = end_of_line.to_owned();
        for line in &lines {
            shown.push_str(&terminal_lines::words_of_user(line, painter));
        }
        self.said.extend(lines);
        self.write(&shown, now)
    }

    /// Replaces the lowest row by lines and a new lowest row, in one write.
    fn write(&mut self, lines: &str, now: Instant) -> io::Result<()> {
        let erase = if self.has_status { ERASE } else { "" };
        self.held.push_str(lines);
        let end_of_lines = if self.editor.is_empty() { self.held.len() } else { self.held.rfind('\n').map_or(0, |end| end + 1) };
        let lines: String = self.held.drain(..end_of_lines).collect();
        let row = if self.editor.is_empty() { self.status(now) } else { Some(self.editor.row(self.painter())) };
        self.has_status = row.is_some();
        let text = format!("{erase}{lines}{}", row.unwrap_or_default());
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
        let held = std::mem::take(&mut self.held);
        self.out.write_all(format!("{erase}{held}{end_of_line}").as_bytes())?;
        self.out.flush()
    }

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

    #[track_caller]
    fn check_typed(tried: &mut TestScreen, keys: &str, expected: &str) {
        tried.screen.typed(keys.as_bytes(), tried.now).unwrap();
        assert_eq!(tried.buffer.take(), expected);
    }

    const MARK: &str = "\x1b[1m›\x1b[0m";

    #[test]
    fn what_is_typed_takes_the_place_of_the_status() {
        let mut tried = TestScreen::new();
        tried.check(turn(), &format!("\x1b[1m▸ planning\x1b[0m\n{}", status("⠋", 0)));
        check_typed(&mut tried, "use", &format!("{ERASE}{MARK} use"));
        tried.check_tick(FRAME, "");
        check_typed(&mut tried, "\x7f", &format!("{ERASE}{MARK} us"));
        tried.check(
            RunEvent::Folded { messages: 2 },
            &format!("{ERASE}  \x1b[2m2 messages folded into a snapshot\x1b[0m\n{MARK} us"),
        );
        let echoed = "\x1b[1m› use it\x1b[0m\n  \x1b[2mthe model reads it in its next turn\x1b[0m\n";
        check_typed(&mut tried, "e it\n", &format!("{ERASE}{echoed}{}", status("⠙", 0)));
        assert_eq!(std::mem::take(&mut tried.screen.said), ["use it"]);
    }

    #[test]
    fn the_model_ends_no_line_below_what_is_typed() {
        let mut tried = TestScreen::new();
        tried.check(turn(), &format!("\x1b[1m▸ planning\x1b[0m\n{}", status("⠋", 0)));
        tried.check(text("Hel"), &format!("{ERASE}Hel"));
        check_typed(&mut tried, "x", &format!("\n{MARK} x"));
        tried.check(text("lo, "), &format!("{ERASE}{MARK} x"));
        tried.check(text("world.\nMo"), &format!("{ERASE}lo, world.\n{MARK} x"));
        check_typed(&mut tried, "\x7f", &format!("{ERASE}Mo"));
        tried.check(text("re"), "re");
        check_typed(&mut tried, "y", &format!("\n{MARK} y"));
        tried.check(text("not lost"), &format!("{ERASE}{MARK} y"));
        tried.screen.leave().unwrap();
        assert_eq!(tried.buffer.take(), format!("{ERASE}not lost\n"));
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
