//! Opens a file with the program that the desktop has for it.

use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::process::Command;

/// Commands that open a file, in the order in which they are tried: freedesktop.org's, GNOME's,
/// that of Windows' subsystem for Linux, and that of macOS.
const OPENERS: [(&str, &[&str]); 4] = [
    ("xdg-open", &[]),
    ("gio", &["open"]),
    ("wslview", &[]),
    ("open", &[]),
];

/// The time in which an opener reports a failure. Some run as long as the program that they start.
const MAX_WAIT: Duration = Duration::from_secs(10);

/// Opens a file. The error names the file, so that a person can open it.
pub async fn open(file: &Path) -> Result<(), String> {
    for (program, args) in OPENERS {
        // The output of a browser is not that of this command.
        let child = Command::new(program)
            .args(args)
            .arg(file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let Ok(mut child) = child else {
            continue;
        };
        match tokio::time::timeout(MAX_WAIT, child.wait()).await {
            Err(_) => return Ok(()),
            Ok(Ok(status)) if ExitStatus::success(&status) => return Ok(()),
            Ok(_) => {}
        }
    }
    let programs = OPENERS.map(|(program, _)| program).join(", ");
    Err(format!(
        "no program could open the report (tried {programs}); open {} in a browser",
        file.display()
    ))
}
