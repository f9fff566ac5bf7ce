//! Finding Chromium and starting it: one process group, one profile directory, one pair of pipes
//! per browser, and nothing of it left afterwards.

mod browser;
mod find;
mod flags;
mod process;
mod profile;
mod stderr;
mod way_out;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use command_fds::{CommandFdExt, FdMapping};
use std::os::unix::process::CommandExt;

pub use browser::{Browser, Version};
pub use process::renderers;
pub(crate) use process::{group_of, is_renderer, pid_of, process_ids};
pub use profile::sweep;

use crate::BrowserError;
use crate::protocol;
use find::User;
use process::Process;
use profile::Profile;
use stderr::StderrTail;
use way_out::WayOut;

/// From the start of the process until it has answered its first call. Usually 0.3 to 0.5 s.
const START_DEADLINE: Duration = Duration::from_secs(15);

/// What an operator may choose about browsers.
#[derive(Debug, Clone)]
pub struct LaunchOptions {
    /// The program; else `PLUMBLINE_CHROMIUM`, `CHROME_PATH`, then the usual places.
    pub chromium: Option<PathBuf>,
    /// Chromium's own sandbox. Only an operator who knows why turns it off.
    pub sandbox: bool,
    /// Where profile directories live while their browser does; else `plumbline-UID` in the
    /// system's directory for temporary files.
    pub run_dir: Option<PathBuf>,
    /// The browser may resolve no name and connect nowhere but to the proxy of its visit, whose
    /// network must then be [`crate::NetworkPath::Proxy`].
    pub only_through_proxy: bool,
}

impl Default for LaunchOptions {
    fn default() -> Self {
        Self {
            chromium: None,
            sandbox: true,
            run_dir: None,
            only_through_proxy: false,
        }
    }
}

/// Knows how to start a browser on this machine.
#[derive(Debug, Clone)]
pub struct Launcher {
    chromium: PathBuf,
    /// Who the browser runs as when we are root; Chromium's sandbox needs somebody else.
    user: Option<User>,
    sandbox: bool,
    run_dir: PathBuf,
    only_through_proxy: bool,
}

impl Launcher {
    /// Finds Chromium and a place for profiles, and says clearly what is missing.
    pub fn find(options: LaunchOptions) -> Result<Self, BrowserError> {
        let chromium = find::chromium(options.chromium)?;
        let user = find::browser_user();
        let run_dir = options.run_dir.unwrap_or_else(profile::default_run_dir);
        profile::prepare_run_dir(&run_dir, user.is_some())?;
        process::adopt_orphans();
        Ok(Self {
            chromium,
            user,
            sandbox: options.sandbox,
            run_dir,
            only_through_proxy: options.only_through_proxy,
        })
    }

    pub fn chromium(&self) -> &Path {
        &self.chromium
    }

    pub fn run_dir(&self) -> &Path {
        &self.run_dir
    }

    /// Whether Chromium's own sandbox is used.
    pub fn is_sandboxed(&self) -> bool {
        self.sandbox
    }

    /// Starts a browser only to ask what it is.
    pub async fn version(&self) -> Result<Version, BrowserError> {
        let browser = self.launch().await?;
        let version = browser.version().clone();
        browser.close().await;
        Ok(version)
    }

    /// Starts a browser and waits until it answers.
    pub async fn launch(&self) -> Result<Browser, BrowserError> {
        let profile = Profile::create(&self.run_dir, self.user)?;
        let (their_read, our_write) = std::io::pipe().map_err(|e| not_started(&e))?;
        let (our_read, their_write) = std::io::pipe().map_err(|e| not_started(&e))?;
        let (stderr, their_stderr) = std::io::pipe().map_err(|e| not_started(&e))?;

        let way_out = self
            .only_through_proxy
            .then(WayOut::open)
            .transpose()
            .map_err(|e| not_started(&e))?;

        let mut command = self.command(&profile);
        if let Some(way_out) = &way_out {
            command.args(flags::only_through(way_out.address()));
        }
        command.stderr(their_stderr);
        command
            .fd_mappings(vec![
                FdMapping {
                    parent_fd: their_read.into(),
                    child_fd: 3,
                },
                FdMapping {
                    parent_fd: their_write.into(),
                    child_fd: 4,
                },
            ])
            .map_err(|e| not_started(&e))?;
        let child = command.spawn().map_err(|e| not_started(&e))?;
        // The command still holds the browser's ends of the pipes: without it they close with it.
        drop(command);

        let process = Process::watch(child, profile);
        let stderr = StderrTail::follow(stderr.into()).map_err(|e| not_started(&e))?;
        let (client, events) =
            protocol::connect(our_write.into(), our_read.into()).map_err(|e| not_started(&e))?;
        let mut browser = Browser::greet(process, client, events, stderr, START_DEADLINE).await?;
        browser.way_out = way_out;
        Ok(browser)
    }

    fn command(&self, profile: &Profile) -> Command {
        let mut command = Command::new(&self.chromium);
        command
            .args(flags::fixed())
            .args(flags::for_this_machine())
            .arg(flags::with_path("--user-data-dir=", &profile.home()))
            .arg(flags::with_path("--crash-dumps-dir=", &profile.home()))
            .current_dir(profile.home())
            .env_clear()
            .envs(flags::environment(&profile.home()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .process_group(0);
        if !self.sandbox {
            command.arg("--no-sandbox");
        }
        if let Some(user) = self.user {
            command.uid(user.uid).gid(user.gid);
        }
        command
    }
}

fn not_started(error: &dyn std::fmt::Display) -> BrowserError {
    BrowserError::Start {
        reason: error.to_string(),
    }
}
