//! Finding Chromium and starting it: one process group, one profile directory, one pair of pipes
//! per browser, and nothing of it left afterwards.

mod browser;
mod find;
mod flags;
mod memory;
mod process;
mod profile;
mod stderr;
mod way_out;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use command_fds::{CommandFdExt, FdMapping};
use plumbline_isolation::{CgroupParent, Ids};
use std::os::unix::process::CommandExt;

pub use browser::{Browser, Version};
pub use process::renderers;
pub(crate) use process::{group_of, is_renderer, pid_of, process_ids};
pub use profile::sweep;

use crate::BrowserError;
use crate::protocol;
use find::User;
use memory::MemoryLimit;
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
    /// network must then be [`crate::NetworkPath::Proxy`]. Where the machine permits it, the
    /// browser gets a network namespace of its own for that.
    pub only_through_proxy: bool,
    /// Whether such a browser gets its namespace where the machine permits it. Without one it is
    /// kept in by Chromium's flags.
    pub network_namespace: bool,
    /// How much memory all processes of a browser may use together. A page that makes its browser
    /// use more ends it.
    pub memory_bytes: u64,
}

/// How much memory a browser may use unless the operator says otherwise. Of the pages measured so
/// far none needed 1 GiB.
pub const DEFAULT_MEMORY_BYTES: u64 = 2 << 30;

/// How a browser is kept from reaching anything but the proxy of its visit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NetworkIsolation {
    /// A network namespace contains nothing else.
    Namespace,
    /// Only Chromium's flags do; the reason says why there is no namespace.
    Shared { reason: String },
}

impl NetworkIsolation {
    fn where_permitted(ids: Ids) -> Self {
        match plumbline_isolation::probe(ids) {
            Ok(()) => Self::Namespace,
            Err(error) => Self::Shared {
                reason: error.to_string(),
            },
        }
    }
}

impl Default for LaunchOptions {
    fn default() -> Self {
        Self {
            chromium: None,
            sandbox: true,
            run_dir: None,
            only_through_proxy: false,
            network_namespace: true,
            memory_bytes: DEFAULT_MEMORY_BYTES,
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
    isolation: NetworkIsolation,
    memory_bytes: u64,
    /// The directory in which cgroups can be made, if there is one.
    cgroups: Option<CgroupParent>,
}

impl Launcher {
    /// Finds Chromium and a place for profiles, and says clearly what is missing.
    pub fn find(options: LaunchOptions) -> Result<Self, BrowserError> {
        let chromium = find::chromium(options.chromium)?;
        let user = find::browser_user();
        let run_dir = options.run_dir.unwrap_or_else(profile::default_run_dir);
        profile::prepare_run_dir(&run_dir, user.is_some())?;
        process::adopt_orphans();
        let isolation = if options.network_namespace {
            NetworkIsolation::where_permitted(ids(user))
        } else {
            NetworkIsolation::Shared {
                reason: "it was switched off".to_owned(),
            }
        };
        let cgroups = CgroupParent::find()
            .inspect_err(|reason| tracing::debug!(reason, "browsers get no cgroup of their own"))
            .ok();
        Ok(Self {
            chromium,
            user,
            sandbox: options.sandbox,
            run_dir,
            only_through_proxy: options.only_through_proxy,
            isolation,
            memory_bytes: options.memory_bytes,
            cgroups,
        })
    }

    /// How the browsers of this launcher are kept from reaching anything but their proxy.
    pub fn network_isolation(&self) -> &NetworkIsolation {
        &self.isolation
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

    /// How much memory a browser of this launcher may use.
    pub fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }

    /// Whether the kernel enforces that limit on all processes of a browser together. Otherwise the
    /// use of memory is sampled.
    pub fn has_cgroups(&self) -> bool {
        self.cgroups.is_some()
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

        let mut command = self.command(&profile);
        let memory = MemoryLimit::new(self.memory_bytes, self.cgroups.as_ref())
            .map_err(|e| not_started(&e))?;
        // Before descriptors are moved, which could replace those that these two use.
        memory.apply(&mut command).map_err(|e| not_started(&e))?;
        let network = self
            .give_network(&mut command)
            .map_err(|e| not_started(&e))?;
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
        let spawned = command.spawn();
        // The command still holds the browser's ends of the pipes: without it they close with it.
        drop(command);
        let (child, way_out) = network.opened(spawned)?;

        let process = Process::watch(child, profile, memory);
        let stderr = StderrTail::follow(stderr.into()).map_err(|e| not_started(&e))?;
        let (client, events) =
            protocol::connect(our_write.into(), our_read.into()).map_err(|e| not_started(&e))?;
        let mut browser = Browser::greet(process, client, events, stderr, START_DEADLINE).await?;
        browser.way_out = way_out;
        Ok(browser)
    }

    /// Prepares the network that the command will start in.
    fn give_network(&self, command: &mut Command) -> std::io::Result<Network> {
        if !self.only_through_proxy {
            return Ok(Network::OfThisMachine);
        }
        match self.isolation {
            NetworkIsolation::Namespace => {
                command.args(flags::only_through(plumbline_isolation::LISTENER));
                plumbline_isolation::enter_on_spawn(command, ids(self.user))
                    .map(Network::Namespace)
                    .map_err(std::io::Error::other)
            }
            NetworkIsolation::Shared { .. } => {
                let way_out = WayOut::open()?;
                command.args(flags::only_through(way_out.address()?));
                Ok(Network::Flags(way_out))
            }
        }
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

/// The network of a browser that is about to be started.
enum Network {
    OfThisMachine,
    Flags(WayOut),
    Namespace(plumbline_isolation::Pending),
}

impl Network {
    /// Returns the started process and the listener that is its only way out, if it has one.
    fn opened(
        self,
        spawned: std::io::Result<Child>,
    ) -> Result<(Child, Option<WayOut>), BrowserError> {
        match (self, spawned) {
            (Self::OfThisMachine, Ok(child)) => Ok((child, None)),
            (Self::Flags(way_out), Ok(child)) => Ok((child, Some(way_out))),
            (Self::Namespace(pending), Ok(mut child)) => match pending.listener() {
                Ok(listener) => Ok((child, Some(WayOut::on(listener)))),
                Err(error) => {
                    let _ = child.kill();
                    let _ = child.wait();
                    Err(not_started(&error))
                }
            },
            (Self::Namespace(pending), Err(error)) => Err(not_started(&pending.explain(error))),
            (_, Err(error)) => Err(not_started(&error)),
        }
    }
}

/// The ids that a browser will have.
fn ids(user: Option<User>) -> Ids {
    user.map_or_else(Ids::own, |user| Ids {
        uid: user.uid,
        gid: user.gid,
    })
}

fn not_started(error: &dyn std::fmt::Display) -> BrowserError {
    BrowserError::Start {
        reason: error.to_string(),
    }
}
