//! Brings axe-core from npm, at the version and checksum of the lock file, into OUT_DIR.
//!
//! `PLUMBLINE_NODE_MODULES` names a `node_modules` directory that already holds it, for builds
//! without a network.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{env, fs};

const READY_MADE: &str = "PLUMBLINE_NODE_MODULES";
const FILES: [&str; 3] = ["axe.min.js", "LICENSE", "LICENSE-3RD-PARTY.txt"];

fn main() -> ExitCode {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=package.json");
    println!("cargo::rerun-if-changed=package-lock.json");
    println!("cargo::rerun-if-env-changed={READY_MADE}");
    match provide() {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            println!("cargo::error={reason}");
            ExitCode::FAILURE
        }
    }
}

fn provide() -> Result<(), String> {
    let out = PathBuf::from(variable("OUT_DIR")?);
    let here = PathBuf::from(variable("CARGO_MANIFEST_DIR")?);
    let modules = match env::var_os(READY_MADE) {
        Some(ready_made) => PathBuf::from(ready_made),
        None => install(&here, &out)?,
    };
    let package = modules.join("axe-core");
    let locked = version(&here.join("package.json"), "axe-core")?;
    let found = version(&package.join("package.json"), "version")?;
    if found != locked {
        return Err(format!(
            "{} holds axe-core {found}, but crates/axe/package.json asks for {locked}",
            modules.display()
        ));
    }
    for file in FILES {
        fs::copy(package.join(file), out.join(file))
            .map_err(|e| format!("axe-core has no readable {file}: {e}"))?;
    }
    println!("cargo::rustc-env=AXE_VERSION={found}");
    Ok(())
}

/// Runs npm in OUT_DIR, so that the source tree stays as it is.
fn install(here: &Path, out: &Path) -> Result<PathBuf, String> {
    let work = out.join("npm");
    fs::create_dir_all(&work).map_err(|e| format!("cannot create {}: {e}", work.display()))?;
    for file in ["package.json", "package-lock.json"] {
        fs::copy(here.join(file), work.join(file))
            .map_err(|e| format!("cannot copy crates/axe/{file}: {e}"))?;
    }
    let npm = if cfg!(windows) { "npm.cmd" } else { "npm" };
    let answer = Command::new(npm)
        .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
        .current_dir(&work)
        .output()
        .map_err(|e| {
            format!(
                "cannot run npm ({e}). axe-core comes from npm: install Node.js, \
                 or set {READY_MADE} to a node_modules directory that holds axe-core"
            )
        })?;
    if !answer.status.success() {
        let said = String::from_utf8_lossy(&answer.stderr).replace('\n', " | ");
        return Err(format!(
            "npm ci failed: {said}. Without a network, set {READY_MADE} to a node_modules \
             directory that holds axe-core"
        ));
    }
    Ok(work.join("node_modules"))
}

/// The string that follows the first `"key":` in a package.json: not worth a JSON parser here.
fn version(package: &Path, key: &str) -> Result<String, String> {
    let text = fs::read_to_string(package)
        .map_err(|e| format!("cannot read {}: {e}", package.display()))?;
    text.split_once(&format!("\"{key}\":"))
        .and_then(|(_, rest)| rest.split('"').nth(1))
        .map(str::to_owned)
        .ok_or_else(|| format!("{} names no {key}", package.display()))
}

fn variable(name: &str) -> Result<String, String> {
    env::var(name).map_err(|e| format!("{name}: {e}"))
}
