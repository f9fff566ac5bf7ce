use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::BrowserError;

/// Checked in this order. Debian's `/usr/bin/chromium` is a script that adds flags of its own, so
/// the program behind it comes first.
const PLACES: [&str; 8] = [
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

/// Somebody else than root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct User {
    pub uid: u32,
    pub gid: u32,
}

pub(super) fn chromium(chosen: Option<PathBuf>) -> Result<PathBuf, BrowserError> {
    let from_environment = |name| {
        env::var_os(name)
            .filter(|v| !v.is_empty())
            .map(PathBuf::from)
    };
    let chosen = chosen
        .or_else(|| from_environment("PLUMBLINE_CHROMIUM"))
        .or_else(|| from_environment("CHROME_PATH"));
    if let Some(path) = chosen {
        return match runnable(&path) {
            Ok(()) => Ok(behind_wrapper(path)),
            Err(reason) => Err(BrowserError::NotUsable { path, reason }),
        };
    }
    let on_path = env::var_os("PATH").unwrap_or_default();
    let mut candidates = PLACES
        .iter()
        .map(PathBuf::from)
        .chain(NAMES.iter().flat_map(|name| {
            env::split_paths(&on_path)
                .map(|directory| directory.join(name))
                .collect::<Vec<_>>()
        }));
    candidates
        .find(|path| runnable(path).is_ok())
        .map(behind_wrapper)
        .ok_or_else(|| BrowserError::NotFound {
            looked_at: format!("{} and PATH", PLACES.join(", ")),
        })
}

fn runnable(path: &Path) -> Result<(), String> {
    let metadata = fs::metadata(path).map_err(|error| error.to_string())?;
    if !metadata.is_file() {
        return Err("it is not a file".to_owned());
    }
    if metadata.permissions().mode() & 0o111 == 0 {
        return Err("it is not executable".to_owned());
    }
    Ok(())
}

/// A wrapper script named after the program it starts is replaced by that program, for a known set
/// of flags.
fn behind_wrapper(path: PathBuf) -> PathBuf {
    if path == Path::new("/usr/bin/chromium") && runnable(Path::new(PLACES[0])).is_ok() {
        return PathBuf::from(PLACES[0]);
    }
    path
}

/// `None` when we are an ordinary user ourselves.
pub(super) fn browser_user() -> Option<User> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let user = user_named(&passwd, "plumbline").or_else(|| user_named(&passwd, "nobody"));
    // The number that Linux itself gives to nobody.
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
    fn a_user_is_found_by_the_whole_name_and_is_never_root() {
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
    fn a_chosen_program_that_does_not_exist_is_named_in_the_error() {
        let error = chromium(Some("/nowhere/chromium".into())).unwrap_err();
        assert!(error.to_string().contains("/nowhere/chromium"));
    }

    #[test]
    fn a_directory_is_no_program() {
        let error = chromium(Some("/".into())).unwrap_err();
        assert!(error.to_string().contains("not a file"));
    }
}
