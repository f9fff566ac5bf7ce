//! Compiles the preloaded library, which the crate embeds, and the program that its tests preload
//! it into.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=shim");
    println!("cargo:rerun-if-changed=tests/program.c");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let library = out.join("clock.so");
    let mut command = compiler();
    command.args(["-shared", "-fPIC", "-fvisibility=hidden"]);
    compile(&mut command, "shim/shim.c", &library);
    let program = out.join("program");
    compile(&mut compiler(), "tests/program.c", &program);
    println!("cargo:rustc-env=CLOCK_LIBRARY={}", library.display());
    println!("cargo:rustc-env=CLOCK_TEST_PROGRAM={}", program.display());
}

fn compiler() -> Command {
    let mut build = cc::Build::new();
    // The library is fast in every profile: a browser reads the time very often.
    build
        .opt_level(2)
        .debug(false)
        .std("gnu11")
        .warnings(true)
        .extra_warnings(true);
    build.get_compiler().to_command()
}

fn compile(command: &mut Command, source: &str, output: &Path) {
    command.arg("-Werror").arg(source).arg("-o").arg(output);
    command.args(["-lpthread", "-ldl"]);
    let status = command.status().expect("a C compiler is installed");
    assert!(status.success(), "{source} does not compile");
}
