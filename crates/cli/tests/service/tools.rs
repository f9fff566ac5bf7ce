//! Third-party tools that read the exports, from npm at the versions of the lock file.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tools");
const INSTALL_TIMEOUT: Duration = Duration::from_secs(400);

/// Returns the directory of the packages. They are installed once per lock file below the build
/// directory, unless `PLUMBLINE_TEST_MODULES` names a `node_modules` directory that contains them.
pub fn modules() -> &'static Path {
    static MODULES: OnceLock<PathBuf> = OnceLock::new();
    MODULES.get_or_init(|| match std::env::var_os("PLUMBLINE_TEST_MODULES") {
        Some(dir) => PathBuf::from(dir),
        None => install(),
    })
}

fn install() -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("report-tools");
    let lock = fs::read_to_string(Path::new(SCRIPTS).join("package-lock.json")).unwrap();
    let stamp = dir.join("installed");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == lock) {
        return dir.join("node_modules");
    }
    fs::create_dir_all(&dir).unwrap();
    for file in ["package.json", "package-lock.json"] {
        fs::copy(Path::new(SCRIPTS).join(file), dir.join(file)).unwrap();
    }
    let npm = Command::new("npm")
        .args([
            "ci",
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
            "--loglevel=error",
        ])
        .current_dir(&dir)
        .spawn()
        .expect("npm is installed");
    assert!(
        succeeds_within(npm, INSTALL_TIMEOUT),
        "npm ci in {}",
        dir.display()
    );
    fs::write(stamp, lock).unwrap();
    dir.join("node_modules")
}

/// Whether a process succeeds in time. It is killed otherwise.
fn succeeds_within(mut child: Child, limit: Duration) -> bool {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.success();
        }
        if Instant::now() > deadline {
            child.kill().unwrap();
            child.wait().unwrap();
            return false;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Runs one of the scripts, which must succeed, and returns its output.
pub fn script(name: &str, args: &[&str], input: &str) -> String {
    let mut command = Command::new("node");
    command.arg(Path::new(SCRIPTS).join(name)).args(args);
    let output = run(&mut command, input);
    assert!(
        output.status.success(),
        "{name}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// Runs the command of Lighthouse CI in a directory.
pub fn lhci(dir: &Path, args: &[&str]) -> Output {
    let mut command = Command::new("node");
    command
        .arg(modules().join("@lhci/cli/src/cli.js"))
        .args(args)
        .current_dir(dir);
    run(&mut command, "")
}

fn run(command: &mut Command, input: &str) -> Output {
    let mut child = command
        .env("PLUMBLINE_TEST_MODULES", modules())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("node is installed");
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    // The child may print before it has read everything.
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().unwrap();
    let _ = writer.join();
    output
}

/// Returns the DOM of a page after its scripts have run in a real browser.
pub fn dom_of(html: &Path) -> String {
    let browser = std::env::var("PLUMBLINE_CHROMIUM").unwrap_or_else(|_| {
        let names = [
            "chromium",
            "chromium-browser",
            "google-chrome",
            "google-chrome-stable",
        ];
        let installed = names.iter().find(|name| {
            Command::new(name)
                .arg("--version")
                .output()
                .is_ok_and(|output| output.status.success())
        });
        (*installed.expect("a Chromium is installed")).to_owned()
    });
    let profile = tempfile::tempdir().unwrap();
    let output = Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--virtual-time-budget=3000",
        ])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg("--dump-dom")
        .arg(format!("file://{}", html.display()))
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}
