//! Prints the reference documentation of all checks.

fn main() {
    print!("{}", plumbline_engine::registry::reference_markdown());
}
