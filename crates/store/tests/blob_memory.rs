//! Files are kept as blobs in parts. One test alone in its process: it looks at the process's memory.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod s3;

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use plumbline_store::{Blobs, FileBlobs, S3Blobs};

use crate::s3::S3Server;

const FILE_MB: u64 = 128;
/// A part of 8 MB, what is on its way of it, and what an allocator keeps.
const GROWN_AT_MOST_MB: u64 = 48;

#[tokio::test]
async fn keeping_a_large_file_takes_far_less_memory_than_it_has_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let server = S3Server::start();
    let file = dir.path().join("upload");
    for blobs in [
        Box::new(FileBlobs::open(&dir.path().join("bundles")).unwrap()) as Box<dyn Blobs>,
        Box::new(S3Blobs::open(&server.place(), "bundles").unwrap()),
    ] {
        write(&file);
        let before = most_resident_mb();
        blobs.put_file("aud_1", &file).await.unwrap();
        let grown = most_resident_mb() - before;
        assert!(grown < GROWN_AT_MOST_MB, "{grown} MB more, {blobs:?}");
    }
}

fn write(file: &Path) {
    let mut file = File::create(file).unwrap();
    let piece = vec![7; 1 << 20];
    for _ in 0..FILE_MB {
        file.write_all(&piece).unwrap();
    }
}

/// The most memory that this process has ever had.
fn most_resident_mb() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kb = line.unwrap().split_whitespace().nth(1).unwrap();
    kb.parse::<u64>().unwrap() / 1024
}
