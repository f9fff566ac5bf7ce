use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::BrowserError;

/// Paths of Chromium in the order in which they are tried. Debian's `/usr/bin/chromium` is a script
/// that adds its own flags, so the program that it starts comes first.
const PATHS: [&str; 8] = [
    "/usr/lib/chromium/chromium",
    "/usr/lib64/chromium-browser/chromium-browser",
    "/usr/lib/chromium-browser/chromium-browser",
    "/opt/google/chrome/chrome",
    "/usr/bin/google-chrome-stable",
    "/usr/bin/google-chrome",
    "/usr/bin/chromium",
    "/usr/bin/chromium-browser",
];

const NAMES: [&str; 4] = [
    "chromium",
    "chromium-browser",
    "google-chrome-stable",
    "google-chrome",
];

/// A user other than root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct User {
    pub uid: u32,
    pub gid: u32,
}

/// Returns the path of Chromium: the configured one, or the first that exists.
pub(super) fn chromium(configured: Option<PathBuf>) -> Result<PathBuf, BrowserError> {
    let from_environment = |name| {
        env::var_os(name)
            .filter(|v| !v.is_empty())
            .map(PathBuf::from)
    };
    let configured = configured
        .or_else(|| from_environment("PLUMBLINE_CHROMIUM"))
        .or_else(|| from_environment("CHROME_PATH"));
    if let Some(path) = configured {
        return match check_executable(&path) {
            Ok(()) => Ok(without_wrapper(path)),
            Err(reason) => Err(BrowserError::NotUsable { path, reason }),
        };
    }
    let directories = env::var_os("PATH").unwrap_or_default();
    let mut candidates = PATHS
        .iter()
        .map(PathBuf::from)
        .chain(NAMES.iter().flat_map(|name| {
            env::split_paths(&directories)
                .map(|directory| directory.join(name))
                .collect::<Vec<_>>()
        }));
    candidates
        .find(|path| check_executable(path).is_ok())
        .map(without_wrapper)
        .ok_or_else(|| BrowserError::NotFound {
            searched: format!("{} and PATH", PATHS.join(", ")),
        })
}

fn check_executable(path: &Path) -> Result<(), String> {
    let metadata = fs::metadata(path).map_err(|error| error.to_string())?;
    if !metadata.is_file() {
        return Err("it is not a file".to_owned());
    }
    if metadata.permissions().mode() & 0o111 == 0 {
        return Err("it is not executable".to_owned());
    }
    Ok(())
}

/// Replaces the path of Debian's wrapper script by that of the program it starts, so that only our
/// own flags are used.
fn without_wrapper(path: PathBuf) -> PathBuf {
    if path == Path::new("/usr/bin/chromium") && check_executable(Path::new(PATHS[0])).is_ok() {
        return PathBuf::from(PATHS[0]);
    }
    path
}

/// Returns the user to run the browser as; `None` if this process does not run as root.
pub(super) fn browser_user() -> Option<User> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let user = user_named(&passwd, "plumbline").or_else(|| user_named(&passwd, "nobody"));
    // The id that Linux itself uses for nobody.
    Some(user.unwrap_or(User {
        uid: 65534,
        gid: 65534,
    }))
}

fn user_named(passwd: &str, name: &str) -> Option<User> {
    passwd.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        match fields[..] {
            [login, _, uid, gid, ..] if login == name => {
                let user = User {
                    uid: uid.parse().ok()?,
                    gid: gid.parse().ok()?,
                };
                (user.uid != 0).then_some(user)
            }
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_found_by_the_full_name_and_is_never_root() {
        let passwd = "root:x:0:0::/root:/bin/sh\nnobody2:x:7:7::/:\nnobody:x:65534:65533::/:\n";
        let nobody = User {
            uid: 65534,
            gid: 65533,
        };
        assert_eq!(user_named(passwd, "nobody"), Some(nobody));
        assert_eq!(user_named(passwd, "plumbline"), None);
        assert_eq!(user_named(passwd, "root"), None);
        assert_eq!(user_named("nobody:x:many", "nobody"), None);
    }

    #[test]
    fn a_configured_program_that_does_not_exist_is_named_in_the_error() {
        let error = chromium(Some("/nowhere/chromium".into())).unwrap_err();
        assert!(error.to_string().contains("/nowhere/chromium"));
    }

    #[test]
    fn a_directory_is_not_a_program() {
        let error = chromium(Some("/".into())).unwrap_err();
        assert!(error.to_string().contains("not a file"));
    }
}
