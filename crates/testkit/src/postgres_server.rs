//! A PostgreSQL server for a test, in a temporary directory. It is stopped when it is dropped, and dies with the test.
//!
//! The server is Debian's, `postgresql`. It refuses to run as root; a test that runs as root starts it as `nobody`.

use std::{
    fs,
    io::Write as _,
    net::{Ipv4Addr, TcpListener},
    os::unix::{fs::chown, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::OnceLock,
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tempfile::TempDir;

const NOBODY: u32 = 65_534;
/// How long a server may take to start or stop.
const LONG: Duration = Duration::from_secs(60);

/// A running or stopped server. Its superuser is `postgres`, who needs no password.
pub struct PostgresServer {
    home: TempDir,
    port: u16,
    process: Option<Child>,
    settings: Vec<String>,
}

/// The directory of PostgreSQL's programs, the newest version if there are several.
fn programs() -> &'static Path {
    static PROGRAMS: OnceLock<PathBuf> = OnceLock::new();
    PROGRAMS.get_or_init(|| {
        let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
        let mut versions: Vec<(u32, PathBuf)> = versions
            .filter_map(|version| Some((version.file_name().to_str()?.parse().ok()?, version.path().join("bin"))))
            .filter(|(_, programs)| programs.join("initdb").exists())
            .collect();
        versions.sort();
        let on_path = || std::env::split_paths(&std::env::var_os("PATH")?).find(|place| place.join("initdb").exists());
        versions.pop().map(|(_, programs)| programs).or_else(on_path).unwrap_or_else(|| {
            panic!("PostgreSQL is not installed, and this test needs a real server: apt-get install postgresql")
        })
    })
}

/// A program of PostgreSQL, as a user that it accepts.
fn program(name: &str) -> Command {
    let mut command = Command::new(programs().join(name));
    command.stdin(Stdio::null()).current_dir("/").env_remove("PGHOST").env_remove("PGPASSWORD").env("LC_ALL", "C.UTF-8");
    if rustix::process::geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

fn succeed(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}{}", String::from_utf8_lossy(&output.stdout));
    output
}

/// A directory that only the server's user and root may enter.
fn new_home() -> TempDir {
    // The path of a Unix socket has at most 107 bytes.
    let home = tempfile::Builder::new().prefix("surehand-pg-").tempdir_in("/tmp").unwrap();
    if rustix::process::geteuid().is_root() {
        chown(home.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    }
    home
}

/// The state of a process, and its parent.
fn state_and_parent(process: Pid) -> Option<(String, Pid)> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero())).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    Some((fields.next()?.to_owned(), Pid::from_raw(fields.next()?.parse().ok()?)?))
}

fn is_running(process: Pid) -> bool {
    state_and_parent(process).is_some_and(|(state, _)| state != "Z")
}

fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

impl PostgresServer {
    /// Creates and starts a server with settings such as `max_connections = 200`.
    pub fn start(settings: &[&str]) -> Self {
        let home = new_home();
        let data = home.path().join("data");
        // The files of a test need not survive a power cut.
        let mut initdb = program("initdb");
        initdb.args(["--no-sync", "--encoding=UTF8", "--locale=C.UTF-8", "--auth=trust", "--username=postgres", "-D"]);
        succeed(initdb.arg(&data));
        let settings = settings.iter().map(|&setting| setting.to_owned()).collect();
        let mut server = Self { home, port: free_port(), process: None, settings };
        server.launch();
        server
    }

    /// Copies a running server, and starts the copy as its streaming replica. The replica asks for changes under this
    /// name, which the primary may list in `synchronous_standby_names`.
    pub fn replica(primary: &Self, name: &str) -> Self {
        let home = new_home();
        let mut copy = program("pg_basebackup");
        copy.args(["--checkpoint=fast", "--wal-method=stream", "--no-sync", "--write-recovery-conf", "--username=postgres"]);
        let source = format!("host={} port={} application_name={name}", primary.socket().display(), primary.port);
        succeed(copy.args(["--dbname", &source, "-D"]).arg(home.path().join("data")));
        let mut server = Self { home, port: free_port(), process: None, settings: primary.settings.clone() };
        server.settings.retain(|setting| !setting.starts_with("synchronous_standby_names"));
        server.launch();
        server
    }

    fn data(&self) -> PathBuf {
        self.home.path().join("data")
    }

    /// The directory of its Unix socket.
    pub fn socket(&self) -> &Path {
        self.home.path()
    }

    /// The port on the loopback interface.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// A URL over the Unix socket.
    pub fn url(&self, user: &str, database: &str) -> String {
        format!("postgres:///{database}?user={user}&host={}&port={}", self.socket().display(), self.port)
    }

    /// Starts the server again after a stop or a crash, and waits until it accepts connections.
    pub fn launch(&mut self) {
        let mut settings = self.settings.join("\n");
        settings.push_str(&format!(
            "\nport = {}\nlisten_addresses = '127.0.0.1'\nunix_socket_directories = '{}'\nmax_connections = {}\n",
            self.port,
            self.socket().display(),
            self.settings.iter().find_map(|line| line.strip_prefix("max_connections = ")).unwrap_or("60"),
        ));
        self.write("data/test.conf", &settings);
        let main = self.data().join("postgresql.conf");
        let known = fs::read_to_string(&main).unwrap();
        if !known.contains("test.conf") {
            self.write("data/postgresql.conf", &format!("{known}\ninclude 'test.conf'\n"));
        }
        let log = fs::File::options().create(true).append(true).open(self.home.path().join("log")).unwrap();
        let mut command = program("postgres");
        command.arg("-D").arg(self.data()).stdout(log.try_clone().unwrap()).stderr(log).process_group(0);
        // SAFETY: the closure makes one system call, which is allowed between fork and exec.
        #[expect(unsafe_code, reason = "there is no safe way to run code in the child")]
        unsafe {
            command.pre_exec(|| {
                // Also if the test is killed.
                rustix::process::set_parent_process_death_signal(Some(Signal::QUIT)).map_err(Into::into)
            });
        }
        self.process = Some(command.spawn().unwrap());
        self.wait_until_ready();
    }

    /// Waits until the server accepts connections. After a kill, it may first have to end leftover processes.
    fn wait_until_ready(&mut self) {
        let until = Instant::now() + LONG;
        while !self.ready() {
            let ended = self.process.as_mut().and_then(|process| process.try_wait().unwrap());
            assert!(ended.is_none() && Instant::now() < until, "PostgreSQL does not start: {}", self.log());
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn ready(&self) -> bool {
        let mut command = program("pg_isready");
        command.arg("-q").arg("-h").arg(self.socket()).args(["-p", &self.port.to_string(), "-t", "5"]);
        command.status().unwrap().success()
    }

    /// The server's log so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.home.path().join("log")).unwrap_or_default()
    }

    fn pid(&self) -> Pid {
        let process = self.process.as_ref().expect("the server runs");
        Pid::from_raw(i32::try_from(process.id()).unwrap()).unwrap()
    }

    /// Kills all processes of the server without notice, as a crash would.
    pub fn kill(&mut self) {
        // A stopped server starts no more processes for connections. Each of those is in its own session, so the
        // process group has only one process.
        kill_process(self.pid(), Signal::STOP).unwrap();
        let children = self.children();
        kill_process(self.pid(), Signal::KILL).unwrap();
        for child in &children {
            let _ = kill_process(*child, Signal::KILL);
        }
        self.process.take().unwrap().wait().unwrap();
        // Until the last one is gone, the next server does not start, because they share memory.
        let until = Instant::now() + LONG;
        while children.iter().any(|child| is_running(*child)) {
            assert!(Instant::now() < until, "a killed process does not end");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Stops it as an operator would, without loss.
    pub fn stop(&mut self) {
        kill_process(self.pid(), Signal::INT).unwrap();
        self.process.take().unwrap().wait().unwrap();
    }

    fn children(&self) -> Vec<Pid> {
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let ids = processes.filter_map(|process| Pid::from_raw(process.file_name().to_str()?.parse().ok()?));
        ids.filter(|id| state_and_parent(*id).is_some_and(|(_, parent)| parent == self.pid())).collect()
    }

    /// Stops all its processes, as if the machine hangs, until [`thaw`](Self::thaw).
    pub fn freeze(&self) {
        self.signal_all(Signal::STOP);
    }

    /// Lets the server continue after [`freeze`](Self::freeze).
    pub fn thaw(&self) {
        self.signal_all(Signal::CONT);
    }

    fn signal_all(&self, signal: Signal) {
        let _ = kill_process(self.pid(), signal);
        for child in self.children() {
            let _ = kill_process(child, signal);
        }
    }

    /// Makes a replica a primary, and waits until it takes writes.
    pub fn promote(&self) {
        self.query("postgres", "SELECT pg_promote(true, 60)");
    }

    /// Runs SQL as the superuser, and returns the rows, one per line.
    pub fn query(&self, database: &str, sql: &str) -> String {
        let mut psql = program("psql");
        psql.args(["-qAtX", "-v", "ON_ERROR_STOP=1", "-U", "postgres", "-p", &self.port.to_string(), "-h"]);
        let output = succeed(psql.arg(self.socket()).args(["-d", database, "-c", sql]));
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }

    /// Runs a program of PostgreSQL such as `pg_dump` as the superuser, and returns its output.
    pub fn run(&self, name: &str, arguments: &[&str]) -> Vec<u8> {
        let mut command = program(name);
        command.args(["-U", "postgres", "-p", &self.port.to_string(), "-h"]).arg(self.socket());
        succeed(command.args(arguments)).stdout
    }

    /// Writes a file that belongs to the server's user, such as `data/pg_hba.conf`, and returns its path.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.home.path().join(name);
        let mut file = fs::File::options().create(true).truncate(true).write(true).open(&path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        // PostgreSQL does not accept a key that others may read.
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        if rustix::process::geteuid().is_root() {
            chown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        path
    }

    /// Makes the server read its settings again.
    pub fn reload(&self) {
        self.query("postgres", "SELECT pg_reload_conf()");
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            let pid = Pid::from_raw(i32::try_from(process.id()).unwrap()).unwrap();
            // An immediate shutdown, also of a frozen server.
            let _ = kill_process(pid, Signal::QUIT);
            let _ = kill_process_group(pid, Signal::CONT);
            let until = Instant::now() + Duration::from_secs(10);
            while process.try_wait().is_ok_and(|ended| ended.is_none()) && Instant::now() < until {
                thread::sleep(Duration::from_millis(10));
            }
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}
