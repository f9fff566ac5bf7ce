//! Measures packed sizes, the time to pack and unpack, and the cost of one picture, in the format
//! of this version and in that of earlier ones.
//!
//!   cargo run --release -p plumbline-model --example pack_time -- BUNDLE MEDIA

use std::error::Error;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::time::Instant;

use plumbline_bundle::container::{Index, Part, TAIL_BYTES};
use plumbline_bundle::{Bundle, BundleParts, Encoding};
use plumbline_model::media::{PictureId, ReportMedia};

const RUNS: usize = 15;

fn main() -> Result<(), Box<dyn Error>> {
    let paths: Vec<String> = std::env::args().skip(1).collect();
    let [bundle, media] = paths.as_slice() else {
        return Err("usage: pack_time BUNDLE MEDIA".into());
    };
    let bundle = Bundle::unpack(&fs::read(bundle)?)?;
    let media = ReportMedia::unpack(&fs::read(media)?)?;
    println!(
        "trace {} bytes, log {} bytes, {} artifacts, {} pictures of the filmstrip",
        bundle.trace.len(),
        bundle.log.len(),
        bundle.artifacts.len(),
        media.pictures.len()
    );
    let trace_only = BundleParts {
        log: false,
        screenshot: false,
        artifacts: Some(&[]),
        ..BundleParts::ALL
    };
    let file = std::env::temp_dir().join(format!("pack_time-{}", std::process::id()));
    for encoding in [Encoding::GzipJson, Encoding::Container] {
        let packed = bundle.pack_as(encoding)?;
        println!("{encoding:?}: bundle {} bytes", packed.len());
        show("pack the bundle", || {
            Ok(bundle.pack_as(encoding).map(drop)?)
        })?;
        show("unpack the bundle", || {
            Ok(Bundle::unpack(&packed).map(drop)?)
        })?;
        show("unpack its trace", || {
            Ok(Bundle::unpack_parts(&packed, trace_only).map(drop)?)
        })?;
        let packed = media.pack_as(encoding)?;
        println!("{encoding:?}: report media {} bytes", packed.len());
        fs::write(&file, &packed)?;
        for id in [PictureId::Frame(0), PictureId::Final] {
            show(&format!("read and unpack {}", id.name()), || {
                let part = read_member(&file, &id.name())?;
                let picture = ReportMedia::unpack_picture(&part, id)?;
                picture
                    .map(drop)
                    .ok_or_else(|| "there is no picture".into())
            })?;
        }
    }
    fs::remove_file(&file)?;
    Ok(())
}

/// Reads one member of a file like the server does, or the whole file if it is no container.
fn read_member(path: &std::path::Path, name: &str) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut file = File::open(path)?;
    let tail_start = file.metadata()?.len().saturating_sub(TAIL_BYTES as u64);
    let mut tail = Vec::new();
    file.seek(SeekFrom::Start(tail_start))?;
    file.read_to_end(&mut tail)?;
    let Some(index) = Index::from_tail(&tail)? else {
        return Ok(fs::read(path)?);
    };
    let part = Part::new(&index, |member| member == name);
    let mut ranges = vec![(tail_start, tail)];
    for range in part.ranges() {
        if range.start < tail_start {
            let mut bytes = Vec::new();
            file.seek(SeekFrom::Start(range.start))?;
            let length = range.end - range.start;
            Read::by_ref(&mut file)
                .take(length)
                .read_to_end(&mut bytes)?;
            ranges.push((range.start, bytes));
        }
    }
    let ranges: Vec<_> = ranges.iter().map(|(at, bytes)| (*at, &bytes[..])).collect();
    Ok(part.assemble(&ranges)?)
}

/// Prints the median duration of `work`.
fn show(
    name: &str,
    mut work: impl FnMut() -> Result<(), Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    let mut times_ms = Vec::new();
    for _ in 0..RUNS {
        let start = Instant::now();
        work()?;
        times_ms.push(start.elapsed().as_secs_f64() * 1e3);
    }
    times_ms.sort_by(f64::total_cmp);
    println!("  {name:<26}{:>9.2} ms", times_ms[RUNS / 2]);
    Ok(())
}
