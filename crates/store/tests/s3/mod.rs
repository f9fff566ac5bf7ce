//! An S3 server for tests.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use plumbline_store::S3Config;

/// An s3rver process with a temporary directory, which ends with the test.
pub struct S3Server {
    port: u16,
    process: Child,
    _stdin: ChildStdin,
    _dir: tempfile::TempDir,
}

impl S3Server {
    pub fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut process = Command::new("node")
            .arg(Path::new(SCRIPTS).join("serve.mjs"))
            .args([dir.path().join("objects"), PathBuf::from("audits")])
            .arg(modules())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("node is installed");
        let mut line = String::new();
        let mut stdout = BufReader::new(process.stdout.take().unwrap());
        stdout.read_line(&mut line).unwrap();
        Self {
            port: line.trim().parse().unwrap(),
            _stdin: process.stdin.take().unwrap(),
            process,
            _dir: dir,
        }
    }

    pub fn config(&self) -> S3Config {
        S3Config {
            bucket: "audits".to_owned(),
            endpoint: Some(format!("http://127.0.0.1:{}", self.port)),
            region: "us-east-1".to_owned(),
            access_key_id: Some("S3RVER".to_owned()),
            secret_access_key: Some("S3RVER".to_owned()),
            ..S3Config::default()
        }
    }
}

impl Drop for S3Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/s3");
const INSTALL_DEADLINE: Duration = Duration::from_secs(300);

/// Returns the directory of the npm packages, which are installed once per lock file below the
/// build directory. `PLUMBLINE_S3_MODULES` names a `node_modules` directory to use instead.
fn modules() -> &'static Path {
    static MODULES: OnceLock<PathBuf> = OnceLock::new();
    MODULES.get_or_init(|| match std::env::var_os("PLUMBLINE_S3_MODULES") {
        Some(modules) => PathBuf::from(modules),
        None => install(),
    })
}

fn install() -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("s3-server");
    let lock = fs::read_to_string(Path::new(SCRIPTS).join("package-lock.json")).unwrap();
    let stamp = dir.join("installed");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == lock) {
        return dir.join("node_modules");
    }
    fs::create_dir_all(&dir).unwrap();
    for file in ["package.json", "package-lock.json"] {
        fs::copy(Path::new(SCRIPTS).join(file), dir.join(file)).unwrap();
    }
    let mut npm = Command::new("npm")
        .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
        .arg("--loglevel=error")
        .current_dir(&dir)
        .spawn()
        .expect("npm is installed");
    let deadline = Instant::now() + INSTALL_DEADLINE;
    let status = loop {
        if let Some(status) = npm.try_wait().unwrap() {
            break status;
        }
        assert!(Instant::now() < deadline, "npm ci takes too long");
        std::thread::sleep(Duration::from_millis(50));
    };
    assert!(status.success(), "npm ci in {}", dir.display());
    fs::write(stamp, lock).unwrap();
    dir.join("node_modules")
}
