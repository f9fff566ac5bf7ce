//! `migrate-store`: an installation moves from its SQLite file to PostgreSQL.

use std::path::Path;

use plumbline_store::move_to_postgres;

use crate::args::MigrateStoreArgs;
use crate::command::serve;
use crate::exit::Exit;
use crate::standard_output as out;
use crate::storage::Address;

/// Rows between two lines about the same table.
const TOLD_EVERY: u64 = 10_000;

pub async fn run(args: MigrateStoreArgs) -> Result<Exit, Exit> {
    let named = |flag: &str, text: &str| {
        text.parse::<Address>()
            .map_err(|error| Exit::usage(format!("{flag}: {error}")))
    };
    let (Address::Sqlite(from), Address::Postgres(to)) =
        (named("--from", &args.from)?, named("--to", &args.to)?)
    else {
        return Err(Exit::usage(
            "stores move from sqlite:FILE to postgres://USER:PASSWORD@HOST/DATABASE",
        ));
    };
    let directory = from.parent().unwrap_or(Path::new("."));
    // A server would write to what is left behind, and nobody would find it again.
    let _no_server = match directory.join("serve.lock").exists() {
        true => Some(serve::lock(directory)?),
        false => None,
    };
    let mut told = (String::new(), 0);
    let moved = move_to_postgres(&from, &to, |table, rows| {
        if told.0 != table || rows >= told.1 + TOLD_EVERY {
            eprintln!("{table}: {rows} rows");
            told = (table.to_owned(), rows);
        }
    });
    let moved = moved.await.map_err(Exit::failed)?;
    for (table, rows) in &moved.rows {
        out::line(format_args!("{table:<12}{rows:>12}"))?;
    }
    out::line(format_args!(
        "moved and compared: every count and sum is the same in both; {} credits in all",
        moved.credits
    ))?;
    out::line(format_args!(
        "next: start servers with --store postgres://…; evidence stays in {}",
        directory.display()
    ))?;
    Ok(Exit::Done)
}
