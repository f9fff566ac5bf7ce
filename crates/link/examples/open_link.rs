//! Opens a link and leaves it open until standard input ends:
//!
//!   cargo run --example open_link -- --down 1638.4 --up 750 --rtt 150 --allow 127.0.0.0/8
//!
//! Prints the address of the SOCKS5 proxy, and at the end one line per connection.

use std::error::Error;
use std::io::Read;
use std::sync::Arc;

use plumbline_link::{Guard, LineProfile, Link, LinkConfig};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut profile = LineProfile::UNLIMITED;
    let mut allow = Vec::new();
    let mut args = std::env::args().skip(1);
    while let Some(flag) = args.next() {
        let value = args.next().ok_or(format!("{flag} needs a value"))?;
        match flag.as_str() {
            "--down" => profile.down_kbps = Some(value.parse()?),
            "--up" => profile.up_kbps = Some(value.parse()?),
            "--rtt" => profile.rtt_ms = value.parse()?,
            "--loss" => profile.loss_pct = value.parse()?,
            "--allow" => allow.push(value.parse()?),
            _ => return Err(format!("unknown option: {flag} {value}").into()),
        }
    }
    let link = Link::open(LinkConfig {
        max_bytes: u64::MAX,
        ..LinkConfig::new(profile, Arc::new(Guard::new(allow)))
    })?;
    println!("{}", link.address());
    tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new())).await??;
    for record in link.records() {
        eprintln!("{record:?}");
    }
    link.close().await;
    Ok(())
}
