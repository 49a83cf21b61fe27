//! The API key of a provider: read from a variable, a command or a file, in this order, and never shown.

use std::{
    fmt,
    fs::File,
    io::{self, PipeReader, Read},
    process::{Child, Command, ExitStatus},
    thread,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{self as sys, FileType, Mode, OFlags},
    io::Errno,
    process::geteuid,
};

use super::{ModelError, connection::ModelProtocol};

/// An API key. It is never shown; texts that may contain it go through [`ApiKey::redact`].
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

/// A shorter key is not redacted, because that would blot out ordinary words.
const SHORTEST_SECRET: usize = 4;

impl ApiKey {
    /// A key without surrounding white space; `None` if it is blank.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty()).then(|| Self(text.to_owned()))
    }

    /// The key itself, for the request header.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    /// The text without the key, for provider messages that echo it.
    pub fn redact(&self, text: &str) -> String {
        if self.0.len() < SHORTEST_SECRET { text.to_owned() } else { text.replace(&self.0, "…") }
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Key(…)")
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FoundKey {
    pub key: ApiKey,
    /// The variable or setting that it comes from.
    pub source: &'static str,
}

/// Our own variable, which applies to any provider.
pub(super) const OUR_VARIABLE: &str = "SUREHAND_API_KEY";

/// Every variable that may hold a key.
pub const KEY_VARIABLES: [&str; 3] = [OUR_VARIABLE, "OPENAI_API_KEY", "ANTHROPIC_API_KEY"];

/// The usual variable for a provider's key.
pub(super) fn provider_variable(protocol: ModelProtocol) -> &'static str {
    match protocol {
        ModelProtocol::OpenAi | ModelProtocol::Responses => "OPENAI_API_KEY",
        ModelProtocol::Anthropic => "ANTHROPIC_API_KEY",
    }
}

/// The source of a key that is not in the environment: a file, or a command that prints it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyStore {
    /// `model.key_command`: a command line for `sh`.
    pub command: Option<String>,
    /// `model.key_file`: an absolute path, or one that begins with `~/`.
    pub file: Option<String>,
}

const COMMAND_SETTING: &str = "model.key_command";
const FILE_SETTING: &str = "model.key_file";

/// No provider's keys are longer.
const LONGEST_KEY: usize = 4096;

/// A password manager may ask for a passphrase first.
const COMMAND_LIMIT: Duration = Duration::from_secs(60);

/// Finds the key: in our own variable, in the store, or in the provider's variable. A configured store without a
/// key is an error, because falling back to another key would bill another account.
pub(super) fn find_key(
    store: &KeyStore,
    providers: Option<&'static str>,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<FoundKey>, ModelError> {
    let in_variable = |source: &'static str| Some(FoundKey { key: ApiKey::new(&env(source)?)?, source });
    if let Some(found) = in_variable(OUR_VARIABLE) {
        return Ok(Some(found));
    }
    if let Some(command) = &store.command {
        return key_of(&run_key_command(command, COMMAND_LIMIT)?, COMMAND_SETTING).map(Some);
    }
    if let Some(path) = &store.file {
        return key_of(&read_key_file(path, env("HOME").as_deref())?, FILE_SETTING).map(Some);
    }
    Ok(providers.and_then(in_variable))
}

fn setup<T>(why: String) -> Result<T, ModelError> {
    Err(ModelError::Setup(why))
}

fn key_of(bytes: &[u8], source: &'static str) -> Result<FoundKey, ModelError> {
    if bytes.len() > LONGEST_KEY {
        return setup(format!("{source}: the key is longer than {LONGEST_KEY} bytes"));
    }
    let Ok(text) = str::from_utf8(bytes) else {
        return setup(format!("{source}: the key is not valid UTF-8"));
    };
    match ApiKey::new(text) {
        Some(key) => Ok(FoundKey { key, source }),
        None => setup(format!("{source}: there is no key in it")),
    }
}

/// The output of a command. It shares our terminal and process group, so that it can ask for a passphrase.
fn run_key_command(command: &str, limit: Duration) -> Result<Vec<u8>, ModelError> {
    let failed = |error: io::Error| ModelError::Setup(format!("{COMMAND_SETTING} cannot be run: {error}"));
    let (reader, writer) = io::pipe().map_err(failed)?;
    let mut child = Command::new("sh").args(["-c", "--", command]).stdout(writer).spawn().map_err(failed)?;
    let deadline = Instant::now() + limit;
    let printed = read_until(reader, deadline);
    let status = match &printed {
        Ok(Some(printed)) if printed.len() <= LONGEST_KEY => wait_until(&mut child, deadline),
        _ => Ok(None),
    };
    if !matches!(status, Ok(Some(_))) {
        // It may have ended already.
        let _ = child.kill();
        let _ = child.wait();
    }
    let again = format!("run it yourself to see why: {command}");
    match (printed.map_err(failed)?, status.map_err(failed)?) {
        (Some(printed), _) if printed.len() > LONGEST_KEY => Ok(printed),
        (Some(printed), Some(status)) if status.success() => Ok(printed),
        (Some(_), Some(status)) => setup(format!("{COMMAND_SETTING} failed ({status})\n{again}")),
        (None, _) | (_, None) => setup(format!("{COMMAND_SETTING} gave no key within {} seconds\n{again}", limit.as_secs())),
    }
}

/// The status of the command; `None` after the deadline.
fn wait_until(child: &mut Child, deadline: Instant) -> io::Result<Option<ExitStatus>> {
    /// The command has closed its output and will end at once.
    const NAP: Duration = Duration::from_millis(2);
    loop {
        match child.try_wait()? {
            None if Instant::now() < deadline => thread::sleep(NAP),
            status => return Ok(status),
        }
    }
}

/// Reads to the end, or slightly beyond the longest key; `None` after the deadline. This uses no thread, because keys
/// can be removed from the environment only while the process has a single one.
fn read_until(mut reader: PipeReader, deadline: Instant) -> io::Result<Option<Vec<u8>>> {
    let mut read = Vec::new();
    let mut buffer = [0; 512];
    while read.len() <= LONGEST_KEY {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec { tv_sec: left.as_secs().try_into().unwrap_or(i64::MAX), tv_nsec: left.subsec_nanos().into() };
        match poll(&mut [PollFd::new(&reader, PollFlags::IN)], Some(&timeout)) {
            Ok(0) => return Ok(None),
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        match reader.read(&mut buffer)? {
            0 => break,
            count => read.extend_from_slice(&buffer[..count]),
        }
    }
    Ok(Some(read))
}

/// The content of a file that no other user can read or write. Symbolic links are followed.
fn read_key_file(path: &str, home: Option<&str>) -> Result<Vec<u8>, ModelError> {
    let path = match (path.strip_prefix("~/"), home.filter(|home| home.starts_with('/'))) {
        (Some(rest), Some(home)) => format!("{}/{rest}", home.trim_end_matches('/')),
        _ => path.to_owned(),
    };
    let wrong = |why: &str| setup(format!("{FILE_SETTING}: {path}: {why}"));
    if !path.starts_with('/') {
        return wrong("the path must be absolute or begin with ~/");
    }
    let failed = |error: io::Error| ModelError::Setup(format!("{FILE_SETTING}: {path}: {error}"));
    // Opening a pipe must not wait for a writer.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = sys::open(&path, flags, Mode::empty()).map_err(|error| failed(error.into()))?;
    let stat = sys::fstat(&file).map_err(|error| failed(error.into()))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return wrong("not a regular file");
    }
    if stat.st_uid != geteuid().as_raw() {
        // Another user may have planted it.
        return wrong("the file belongs to another user\nuse a file of your own");
    }
    let mode = stat.st_mode & 0o7777;
    if mode & 0o077 != 0 {
        return wrong(&format!("other users may read or write the file (mode {mode:04o})\nrun: chmod 600 {path}"));
    }
    let mut content = Vec::new();
    File::from(file).take(LONGEST_KEY as u64 + 1).read_to_end(&mut content).map_err(failed)?;
    Ok(content)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "tests lay out files")]

    use std::{fs, os::unix::fs::PermissionsExt, path::Path};

    use super::*;

    #[track_caller]
    fn check(set: &[(&str, &str)], protocol: ModelProtocol, expected: Option<(&str, &'static str)>) {
        check_store(&KeyStore::default(), set, protocol, expected);
    }

    #[track_caller]
    fn check_store(store: &KeyStore, set: &[(&str, &str)], protocol: ModelProtocol, expected: Option<(&str, &'static str)>) {
        let env = |name: &str| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        let found = find_key(store, Some(provider_variable(protocol)), &env).unwrap();
        assert_eq!(found.as_ref().map(|found| (found.key.reveal(), found.source)), expected);
    }

    #[test]
    fn each_provider_has_its_variable_and_ours_comes_first() {
        check(&[], ModelProtocol::OpenAi, None);
        check(&[("OPENAI_API_KEY", "abc")], ModelProtocol::OpenAi, Some(("abc", "OPENAI_API_KEY")));
        check(&[("OPENAI_API_KEY", "abc")], ModelProtocol::Anthropic, None);
        check(&[("ANTHROPIC_API_KEY", "abc")], ModelProtocol::Anthropic, Some(("abc", "ANTHROPIC_API_KEY")));
        let both = [("OPENAI_API_KEY", "abc"), ("SUREHAND_API_KEY", "ours")];
        check(&both, ModelProtocol::OpenAi, Some(("ours", "SUREHAND_API_KEY")));
    }

    #[test]
    fn blank_is_no_key() {
        check(&[("SUREHAND_API_KEY", " "), ("OPENAI_API_KEY", " abc\n")], ModelProtocol::OpenAi, Some(("abc", "OPENAI_API_KEY")));
    }

    #[test]
    fn a_key_is_never_shown() {
        let key = ApiKey::new("sk-secret").unwrap();
        assert_eq!(format!("{key:?} {:?}", Some(&key)), "Key(…) Some(Key(…))");
        assert_eq!(key.redact("wrong key sk-secret, sk-secret"), "wrong key …, …");
    }

    /// A file of this user with this mode.
    fn key_file(dir: &Path, content: &[u8], mode: u32) -> String {
        let path = dir.join("key");
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path.to_str().unwrap().to_owned()
    }

    #[test]
    fn our_variable_comes_before_the_command_the_command_before_the_file_and_the_file_before_the_providers_variable() {
        let dir = tempfile::tempdir().unwrap();
        let file = Some(key_file(dir.path(), b" of-the-file\n", 0o600));
        let command = Some("echo of-the-command".to_owned());
        let theirs = ("OPENAI_API_KEY", "of-the-provider");
        let ours = ("SUREHAND_API_KEY", "ours");
        let all = KeyStore { command, file: file.clone() };
        check_store(&all, &[ours, theirs], ModelProtocol::OpenAi, Some(("ours", "SUREHAND_API_KEY")));
        check_store(&all, &[theirs], ModelProtocol::OpenAi, Some(("of-the-command", "model.key_command")));
        let file_only = KeyStore { command: None, file };
        check_store(&file_only, &[theirs], ModelProtocol::OpenAi, Some(("of-the-file", "model.key_file")));
        let home = dir.path().to_str().unwrap();
        let at_home = KeyStore { command: None, file: Some("~/key".to_owned()) };
        check_store(&at_home, &[theirs, ("HOME", home)], ModelProtocol::OpenAi, Some(("of-the-file", "model.key_file")));
    }

    #[track_caller]
    fn file_fails(path: &str, expected: &str) {
        let error = read_key_file(path, None).map_err(|error| error.to_string().replace(path, "FILE"));
        assert_eq!(error.unwrap_err(), format!("model.key_file: FILE: {expected}"));
    }

    #[test]
    fn a_file_that_others_can_read_or_write_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        for mode in [0o644, 0o640, 0o620, 0o604] {
            let path = key_file(dir.path(), b"sk-12345", mode);
            let expected = format!("other users may read or write the file (mode {mode:04o})\nrun: chmod 600 FILE");
            file_fails(&path, &expected);
        }
        for mode in [0o600, 0o400] {
            fs::remove_file(dir.path().join("key")).unwrap();
            assert_eq!(read_key_file(&key_file(dir.path(), b"sk-12345", mode), None).unwrap(), b"sk-12345");
        }
    }

    #[test]
    fn what_is_not_a_file_of_ours_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
        file_fails(&at("none"), "No such file or directory (os error 2)");
        file_fails(dir.path().to_str().unwrap(), "not a regular file");
        assert!(Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
        file_fails(&at("pipe"), "not a regular file");
        file_fails("a/relative/one", "the path must be absolute or begin with ~/");
        file_fails("~/one", "the path must be absolute or begin with ~/");
        if geteuid().is_root() {
            let path = key_file(dir.path(), b"sk-12345", 0o600);
            std::os::unix::fs::chown(&path, Some(65534), None).unwrap();
            file_fails(&path, "the file belongs to another user\nuse a file of your own");
        }
    }

    #[track_caller]
    fn store_fails(command: &str, expected: &str) {
        let store = KeyStore { command: Some(command.to_owned()), file: None };
        let env = |name: &str| (name == "OPENAI_API_KEY").then(|| "another".to_owned());
        assert_eq!(find_key(&store, Some("OPENAI_API_KEY"), &env).unwrap_err().to_string(), expected);
    }

    #[test]
    fn a_store_that_gives_no_key_is_an_error() {
        let again = "run it yourself to see why";
        store_fails("exit 3", &format!("model.key_command failed (exit status: 3)\n{again}: exit 3"));
        store_fails(
            "echo sk-12345; kill $$",
            &format!("model.key_command failed (signal: 15 (SIGTERM))\n{again}: echo sk-12345; kill $$"),
        );
        store_fails("echo", "model.key_command: there is no key in it");
        store_fails("printf 'a\\377b'", "model.key_command: the key is not valid UTF-8");
        store_fails("yes | head -c 5000", "model.key_command: the key is longer than 4096 bytes");
        store_fails("head -c 5000 /dev/zero", "model.key_command: the key is longer than 4096 bytes");
        let dir = tempfile::tempdir().unwrap();
        let too_long = KeyStore { command: None, file: Some(key_file(dir.path(), &[b'x'; 5000], 0o600)) };
        let error = find_key(&too_long, None, &|_| None).unwrap_err().to_string();
        assert_eq!(error, "model.key_file: the key is longer than 4096 bytes");
    }

    #[test]
    fn a_command_that_takes_too_long_is_ended() {
        let error = run_key_command("exec sleep 60", Duration::ZERO).unwrap_err().to_string();
        assert!(error.starts_with("model.key_command gave no key within 0 seconds\n"), "{error}");
        let error = run_key_command("exec sleep 60 >&-", Duration::from_millis(50)).unwrap_err().to_string();
        assert!(error.starts_with("model.key_command gave no key within 0 seconds\n"), "{error}");
    }
}
