//! Finds and starts Chromium. Each browser has its own process group, profile directory and pair of
//! pipes, all of which are removed when it ends.

mod browser;
mod find;
mod flags;
mod memory;
mod process;
mod profile;
mod proxy_port;
mod stderr;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use command_fds::{CommandFdExt, FdMapping};
use futures_util::future::BoxFuture;
use plumbline_clock::{Library, PageClock, Turn};
use plumbline_isolation::{CgroupParent, Ids};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;

pub(crate) use browser::OnDrop;
pub use browser::{Browser, BrowserVersion};
pub use process::renderers;
pub use profile::sweep;

use crate::BrowserError;
use crate::protocol;
use find::User;
use memory::MemoryLimit;
use process::Process;
use profile::Profile;
use proxy_port::ProxyPort;
use stderr::StderrTail;

/// Maximum time from the start of the process to the response to its first call, which usually
/// takes 0.3 to 0.5 s.
const START_DEADLINE: Duration = Duration::from_secs(15);

/// Options of an operator for browsers.
#[derive(Debug, Clone)]
pub struct LaunchOptions {
    /// The program. By default `PLUMBLINE_CHROMIUM` and `CHROME_PATH` are read, then the usual
    /// locations are searched.
    pub chromium: Option<PathBuf>,
    /// Whether Chromium's own sandbox is used. It should be disabled only for a good reason.
    pub sandbox: bool,
    /// Directory for the profiles of running browsers. The default is `plumbline-UID` in the
    /// system's directory for temporary files.
    pub run_dir: Option<PathBuf>,
    /// Whether the browser may only connect to the proxy of its visit, and resolve no names. The
    /// network of the visit must then be [`crate::NetworkPath::Proxy`]. Where the machine permits
    /// it, the browser runs in its own network namespace.
    pub only_through_proxy: bool,
    /// Whether such a browser runs in a network namespace where the machine permits it. Without a
    /// namespace it is restricted by Chromium's flags.
    pub network_namespace: bool,
    /// Memory limit for all processes of a browser together. A browser that exceeds it is killed.
    pub memory_bytes: u64,
    /// Whether browsers get clocks of their own, where they can be preloaded with a library.
    pub page_clock: bool,
}

/// Default memory limit of a browser. None of the pages measured so far needed 1 GiB.
pub const DEFAULT_MEMORY_BYTES: u64 = 2 << 30;

/// How a browser is prevented from connecting to anything but the proxy of its visit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NetworkIsolation {
    /// A network namespace that contains nothing else.
    Namespace,
    /// Chromium's flags only, with the reason why there is no namespace.
    Shared { reason: String },
}

impl NetworkIsolation {
    fn detect(ids: Ids) -> Self {
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
            page_clock: false,
        }
    }
}

/// Starts browsers on this machine.
#[derive(Debug, Clone)]
pub struct Launcher {
    chromium: PathBuf,
    /// The user that the browser runs as if this process is root, as which Chromium's sandbox does
    /// not work.
    user: Option<User>,
    sandbox: bool,
    run_dir: PathBuf,
    only_through_proxy: bool,
    isolation: NetworkIsolation,
    memory_bytes: u64,
    page_clock: bool,
    /// Fingerprint of a public key whose certificates are trusted for all hosts.
    trusted_key: Option<String>,
    /// Directory in which cgroups can be created, if there is one.
    cgroups: Option<CgroupParent>,
}

impl Launcher {
    /// Finds Chromium and prepares the directory for profiles.
    pub fn find(options: LaunchOptions) -> Result<Self, BrowserError> {
        let chromium = find::chromium(options.chromium)?;
        let user = find::browser_user();
        let run_dir = options.run_dir.unwrap_or_else(profile::default_run_dir);
        profile::prepare_run_dir(&run_dir, user.is_some())?;
        process::adopt_orphans();
        let isolation = if options.network_namespace {
            NetworkIsolation::detect(ids(user))
        } else {
            NetworkIsolation::Shared {
                reason: "disabled by an option".to_owned(),
            }
        };
        let cgroups = CgroupParent::find()
            .inspect_err(|reason| tracing::debug!(reason, "no cgroups for browsers"))
            .ok();
        Ok(Self {
            chromium,
            user,
            sandbox: options.sandbox,
            run_dir,
            only_through_proxy: options.only_through_proxy,
            isolation,
            memory_bytes: options.memory_bytes,
            page_clock: options.page_clock,
            trusted_key: None,
            cgroups,
        })
    }

    /// Returns a launcher of browsers that trust certificates with a public key for all hosts. The
    /// fingerprint is its SHA-256 hash in Base64.
    pub fn trusting(&self, fingerprint: String) -> Self {
        Self {
            trusted_key: Some(fingerprint),
            ..self.clone()
        }
    }

    /// Returns how browsers are prevented from connecting to anything but their proxy.
    pub fn network_isolation(&self) -> &NetworkIsolation {
        &self.isolation
    }

    /// Returns the path of Chromium.
    pub fn chromium(&self) -> &Path {
        &self.chromium
    }

    /// Returns a text that is another one after Chromium was replaced by another version.
    pub fn executable_id(&self) -> String {
        let (bytes, modified_s) = std::fs::metadata(&self.chromium)
            .map(|file| (file.len(), file.mtime()))
            .unwrap_or_default();
        format!("{} {bytes} {modified_s}", self.chromium.display())
    }

    /// Returns the directory for profiles.
    pub fn run_dir(&self) -> &Path {
        &self.run_dir
    }

    /// Returns the memory limit of a browser.
    pub fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }

    /// Returns whether the kernel enforces the limit on all processes of a browser together.
    /// Otherwise only samples of the memory usage are compared with it.
    pub fn has_cgroups(&self) -> bool {
        self.cgroups.is_some()
    }

    /// Starts a browser to read its version.
    pub fn version<'a>(&'a self) -> BoxFuture<'a, Result<BrowserVersion, BrowserError>> {
        Box::pin(async move {
            let browser = self.launch().await?;
            let version = browser.version().clone();
            browser.close().await;
            Ok(version)
        })
    }

    /// Starts a browser and waits until it responds. With page clocks, it waits for its turn on the
    /// cores first.
    pub fn launch<'a>(&'a self) -> BoxFuture<'a, Result<Browser, BrowserError>> {
        Box::pin(async move {
            let _turn = if self.page_clock {
                Turn::begin().await
            } else {
                None
            };
            let profile = Profile::create(&self.run_dir, self.user)?;
            let (their_read, our_write) = std::io::pipe().map_err(|e| start_error(&e))?;
            let (our_read, their_write) = std::io::pipe().map_err(|e| start_error(&e))?;
            let (stderr, their_stderr) = std::io::pipe().map_err(|e| start_error(&e))?;

            let mut command = self.command(&profile);
            let clock = self
                .prepare_clock(&profile, &mut command)
                .map_err(|e| start_error(&e))?;
            let memory = MemoryLimit::new(self.memory_bytes, self.cgroups.as_ref())
                .map_err(|e| start_error(&e))?;
            // Before file descriptors are mapped, which could replace those that these two use.
            memory.apply(&mut command).map_err(|e| start_error(&e))?;
            let network = self
                .prepare_network(&mut command)
                .map_err(|e| start_error(&e))?;
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
                .map_err(|e| start_error(&e))?;
            let result = command.spawn();
            // The command has the browser's ends of the pipes open, which must be closed when the
            // browser ends.
            drop(command);
            let (child, proxy_port) = network.complete(result)?;

            let process = Process::watch(child, profile, memory);
            let stderr = StderrTail::follow(stderr.into()).map_err(|e| start_error(&e))?;
            let (client, events) =
                protocol::connect(our_write.into(), our_read.into(), Arc::clone(&clock))
                    .map_err(|e| start_error(&e))?;
            let mut browser =
                Browser::connect(process, client, events, stderr, clock, START_DEADLINE).await?;
            browser.proxy_port = proxy_port;
            Ok(browser)
        })
    }

    /// Returns whether browsers are started with clocks of their own.
    pub fn uses_page_clocks(&self) -> bool {
        self.page_clock
    }

    /// Creates the clock that the command will see.
    fn prepare_clock(
        &self,
        profile: &Profile,
        command: &mut Command,
    ) -> std::io::Result<Arc<PageClock>> {
        if !self.page_clock {
            return PageClock::private().map(Arc::new);
        }
        let owner = self.user.map(|user| (user.uid, user.gid));
        let clock = PageClock::create(profile.directory(), owner)?;
        let library = Library::write(profile.directory())?;
        command.envs(clock.environment(&library));
        Ok(Arc::new(clock))
    }

    /// Prepares the network that the command will start in.
    fn prepare_network(&self, command: &mut Command) -> std::io::Result<Network> {
        if !self.only_through_proxy {
            return Ok(Network::Unrestricted);
        }
        match self.isolation {
            NetworkIsolation::Namespace => {
                command.args(flags::proxy(plumbline_isolation::LISTENER));
                plumbline_isolation::enter_on_spawn(command, ids(self.user))
                    .map(Network::Namespace)
                    .map_err(std::io::Error::other)
            }
            NetworkIsolation::Shared { .. } => {
                let port = ProxyPort::open()?;
                command.args(flags::proxy(port.address()?));
                Ok(Network::Flags(port))
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
        if let Some(fingerprint) = &self.trusted_key {
            command.arg(format!(
                "--ignore-certificate-errors-spki-list={fingerprint}"
            ));
        }
        if let Some(user) = self.user {
            command.uid(user.uid).gid(user.gid);
        }
        command
    }
}

/// The network of a browser that is about to be started.
enum Network {
    Unrestricted,
    Flags(ProxyPort),
    Namespace(plumbline_isolation::PendingListener),
}

impl Network {
    /// Returns the started process and its proxy port, if it may connect to nothing else.
    fn complete(
        self,
        result: std::io::Result<Child>,
    ) -> Result<(Child, Option<ProxyPort>), BrowserError> {
        match (self, result) {
            (Self::Unrestricted, Ok(child)) => Ok((child, None)),
            (Self::Flags(port), Ok(child)) => Ok((child, Some(port))),
            (Self::Namespace(pending), Ok(mut child)) => match pending.listener() {
                Ok(listener) => Ok((child, Some(ProxyPort::on(listener)))),
                Err(error) => {
                    let _ = child.kill();
                    let _ = child.wait();
                    Err(start_error(&error))
                }
            },
            (Self::Namespace(pending), Err(error)) => Err(start_error(&pending.explain(error))),
            (_, Err(error)) => Err(start_error(&error)),
        }
    }
}

/// Returns the ids that a browser runs with.
fn ids(user: Option<User>) -> Ids {
    user.map_or_else(Ids::own, |user| Ids {
        uid: user.uid,
        gid: user.gid,
    })
}

fn start_error(error: &dyn std::fmt::Display) -> BrowserError {
    BrowserError::Start {
        reason: error.to_string(),
    }
}
