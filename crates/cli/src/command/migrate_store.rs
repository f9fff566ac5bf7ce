//! `migrate-store`: migrates an installation from SQLite to PostgreSQL.

use std::path::Path;

use plumbline_store::move_to_postgres;

use crate::args::MigrateStoreArgs;
use crate::command::serve;
use crate::exit::Exit;
use crate::standard_output as out;
use crate::storage::Address;

/// The number of rows between two progress lines of a table.
const PROGRESS_INTERVAL_ROWS: u64 = 10_000;

/// Runs `plumbline migrate-store`.
pub async fn run(args: MigrateStoreArgs) -> Result<Exit, Exit> {
    let parse = |flag: &str, text: &str| {
        text.parse::<Address>()
            .map_err(|error| Exit::usage(format!("{flag}: {error}")))
    };
    let (Address::Sqlite(from), Address::Postgres(to)) =
        (parse("--from", &args.from)?, parse("--to", &args.to)?)
    else {
        return Err(Exit::usage(
            "expected --from sqlite:FILE and --to postgres://USER:PASSWORD@HOST/DATABASE",
        ));
    };
    let directory = from.parent().unwrap_or(Path::new("."));
    // A running server would write to the old file, and those changes would be lost.
    let _lock = if directory.join("serve.lock").exists() {
        Some(serve::lock(directory)?)
    } else {
        None
    };
    let mut last_line = (String::new(), 0);
    let moved = move_to_postgres(&from, &to, |table, rows| {
        if last_line.0 != table || rows >= last_line.1 + PROGRESS_INTERVAL_ROWS {
            eprintln!("{table}: {rows} rows");
            last_line = (table.to_owned(), rows);
        }
    });
    let moved = moved.await.map_err(Exit::failed)?;
    for (table, rows) in &moved.rows {
        out::line(format_args!("{table:<12}{rows:>12}"))?;
    }
    out::line(format_args!(
        "migrated and verified: all counts and sums are equal; {} credits in total",
        moved.credits
    ))?;
    out::line(format_args!(
        "next: start servers with --store postgres://…; evidence remains in {}",
        directory.display()
    ))?;
    Ok(Exit::Done)
}
