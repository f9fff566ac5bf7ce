//! A PostgreSQL server for tests: one cluster per test program in a temporary directory, and one
//! database per test. It runs without privileges, and is removed with its directory when the
//! program ends for whatever reason.
//!
//! `PLUMBLINE_TEST_POSTGRES=postgres://…` names a server to use instead, on which databases may be
//! created.

use std::env;
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, OnceLock};
use std::thread;

const SERVER: &str = "PLUMBLINE_TEST_POSTGRES";

/// The script that runs the server. It cleans up at the end of its standard input, when this
/// program has ended. `$1` is the data directory, `$2` the directory of the programs.
const SUPERVISOR: &str = r#"
    start() {
        "$2/postgres" -D "$1/data" -k "$1" -c listen_addresses= -c fsync=off -c full_page_writes=off \
            -c max_connections=400 -c shared_buffers=64MB -c log_min_messages=warning < /dev/null &
        server=$!
    }
    end() { kill -QUIT $server; wait $server; }
    start "$@"
    while read -r _; do end; start "$@"; done
    end
    rm -rf "$1"
"#;

/// A server with its files.
pub struct Cluster {
    directory: PathBuf,
    programs: PathBuf,
    supervisor: Child,
    // Dropping it ends the server; a line written to it restarts the server.
    control: Option<ChildStdin>,
    ready: Mutex<Receiver<()>>,
}

impl Cluster {
    pub fn start() -> Self {
        let programs = programs();
        let directory = tempfile::Builder::new()
            .prefix("plumbline-postgres-")
            .tempdir()
            .unwrap()
            .keep();
        fs::set_permissions(&directory, Permissions::from_mode(0o700)).unwrap();
        if let Some((uid, gid)) = unprivileged() {
            chown(&directory, Some(uid), Some(gid)).unwrap();
        }
        let output = as_unprivileged(Command::new(programs.join("initdb")))
            .arg("-D")
            .arg(directory.join("data"))
            .args(["-U", "postgres", "-A", "trust", "-E", "UTF8"])
            .args(["--no-locale", "--no-sync"])
            .current_dir(&directory)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "initdb: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        Self::over(directory, programs)
    }

    fn over(directory: PathBuf, programs: PathBuf) -> Self {
        let mut supervisor = as_unprivileged(Command::new("sh"))
            .args(["-c", SUPERVISOR, "sh"])
            .args([&directory, &programs])
            .current_dir(&directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            // An interrupt from the terminal goes to this program only, which then ends the server.
            .process_group(0)
            .spawn()
            .unwrap();
        let control = supervisor.stdin.take();
        let log = BufReader::new(supervisor.stderr.take().unwrap()).lines();
        let (is_ready, ready) = channel();
        thread::spawn(move || {
            for line in log.map_while(Result::ok) {
                if line.contains("ready to accept connections") {
                    let _ = is_ready.send(());
                }
            }
        });
        ready.recv().expect("PostgreSQL starts");
        Self {
            directory,
            programs,
            supervisor,
            control,
            ready: Mutex::new(ready),
        }
    }

    /// Stops the server as in a crash, and optionally restarts it: connections are closed, and
    /// uncommitted changes are lost.
    pub fn stop(&mut self, restart: bool) {
        if restart {
            writeln!(self.control.as_mut().unwrap(), "again").unwrap();
            let ready = self.ready.lock().unwrap();
            ready.recv().expect("PostgreSQL starts again");
        } else {
            self.control = None;
            let _ = self.supervisor.wait();
        }
    }

    pub fn database(&self) -> Database {
        let host = self.directory.to_string_lossy().replace('/', "%2F");
        Database::create(&self.programs, &format!("postgres://postgres@{host}"), "")
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.stop(false);
    }
}

/// An empty database.
pub struct Database {
    pub url: String,
    programs: PathBuf,
    /// The URL of the server and the name of the database, if it must be dropped explicitly.
    drop_from: Option<(String, String)>,
}

impl Database {
    /// Creates a database on the server that all tests of this program share.
    pub fn fresh() -> Self {
        static SHARED: OnceLock<Cluster> = OnceLock::new();
        match env::var(SERVER) {
            Ok(url) => {
                let (server, query) = match url.split_once('?') {
                    Some((server, query)) => (server, format!("?{query}")),
                    None => (url.as_str(), String::new()),
                };
                let after_host = server.find("//").map_or(0, |at| at + 2);
                let host = match server[after_host..].find('/') {
                    Some(slash) => &server[..after_host + slash],
                    None => server,
                };
                let mut database = Self::create(&programs(), host, &query);
                let name = database.url[host.len() + 1..].replace(&query, "");
                database.drop_from = Some((format!("{host}/postgres{query}"), name));
                database
            }
            Err(_) => SHARED.get_or_init(Cluster::start).database(),
        }
    }

    fn create(programs: &Path, server: &str, query: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("plumbline_test_{}_{number}", std::process::id());
        let output = Command::new(programs.join("createdb"))
            .arg(format!("--maintenance-db={server}/postgres{query}"))
            .args(["-T", "template0", "-E", "UTF8", &name])
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "createdb: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        Self {
            url: format!("{server}/{name}{query}"),
            programs: programs.to_owned(),
            drop_from: None,
        }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if let Some((server, name)) = &self.drop_from {
            let _ = Command::new(self.programs.join("dropdb"))
                .arg(format!("--maintenance-db={server}"))
                .args(["--force", name])
                .output();
        }
    }
}

/// Returns the directory of the PostgreSQL programs, which Debian does not put on the PATH.
fn programs() -> PathBuf {
    let on_path = env::split_paths(&env::var_os("PATH").unwrap_or_default()).collect::<Vec<_>>();
    let mut debians: Vec<_> = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .filter_map(|version| Some(version.ok()?.path().join("bin")))
        .collect();
    debians.sort();
    debians.reverse();
    on_path
        .into_iter()
        .chain(debians)
        .find(|directory| {
            let needed = ["initdb", "postgres", "createdb", "dropdb"];
            needed.iter().all(|name| directory.join(name).exists())
        })
        .expect("PostgreSQL is installed (tools/setup test does it)")
}

/// Returns the user and group `nobody` if this program runs as root, as which PostgreSQL refuses to
/// run.
fn unprivileged() -> Option<(u32, u32)> {
    let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
    is_root.then_some((65534, 65534))
}

fn as_unprivileged(mut command: Command) -> Command {
    if let Some((uid, gid)) = unprivileged() {
        command.uid(uid).gid(gid);
    }
    command
}
