//! `licenses`: prints the licences of Plumbline and of everything that is part of the program.

use plumbline_vendored::{axe, entities, features};

use crate::exit::Exit;
use crate::standard_output as out;

/// The Rust crates in the program with their versions and licences. `make bless` updates the file.
const CRATES: &str = include_str!("../licenses.txt");
const APACHE: &str = include_str!("../../../../LICENSE");

/// Runs `plumbline licenses`.
pub fn run() -> Result<Exit, Exit> {
    let version = env!("CARGO_PKG_VERSION");
    let (axe_version, entities_version) = (axe::VERSION, entities::VERSION);
    let features_version = features::VERSION;
    let (axe_license, parts, entities_license) =
        (axe::LICENSE, axe::LICENSE_OF_PARTS, entities::LICENSE);
    out::text(format_args!(
        "\
Plumbline {version} is licensed under the Apache License, Version 2.0. Its text is at the end.
The program contains the following software and data of others.

axe-core {axe_version} (MPL-2.0), Copyright Deque Systems, Inc.
    Unmodified. Source: https://github.com/dequelabs/axe-core/tree/v{axe_version}
third-party-web {entities_version} (MIT), Copyright Patrick Hulce
    Its names and domains of organisations. Source: https://github.com/patrickhulce/third-party-web
web-features {features_version} (Apache-2.0), Copyright the authors of web-features
    Its dates of features. Source: https://github.com/web-platform-dx/web-features

Rust crates; their sources and licence texts are at https://crates.io/crates/NAME:
{CRATES}
{}{axe_license}
{}{parts}
{}{entities_license}
{}{APACHE}",
        heading("Licence of axe-core"),
        heading("Licences of the parts of axe-core"),
        heading("Licence of third-party-web"),
        heading("Apache License, Version 2.0"),
    ))?;
    Ok(Exit::Done)
}

fn heading(title: &str) -> String {
    format!("{title}\n{}\n\n", "=".repeat(title.len()))
}
