//! Files are stored as blobs in parts. The test is alone in its process, because it measures the
//! memory of the process.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod s3;

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use plumbline_store::{Blobs, FileBlobs, S3Blobs};

use crate::s3::S3Server;

const FILE_MB: u64 = 128;
/// A part of 8 MB, its copy in the HTTP client, and the reserve of the allocator.
const MAX_GROWTH_MB: u64 = 48;

#[tokio::test]
async fn storing_a_large_file_takes_far_less_memory_than_its_size() {
    let dir = tempfile::tempdir().unwrap();
    let server = S3Server::start();
    let file = dir.path().join("upload");
    for blobs in [
        Box::new(FileBlobs::open(&dir.path().join("bundles")).unwrap()) as Box<dyn Blobs>,
        Box::new(S3Blobs::open(&server.config(), "bundles").unwrap()),
    ] {
        write(&file);
        let before = peak_resident_mb();
        blobs.put_file("aud_1", &file).await.unwrap();
        let growth = peak_resident_mb() - before;
        assert!(growth < MAX_GROWTH_MB, "{growth} MB more, {blobs:?}");
    }
}

fn write(file: &Path) {
    let mut file = File::create(file).unwrap();
    let piece = vec![7; 1 << 20];
    for _ in 0..FILE_MB {
        file.write_all(&piece).unwrap();
    }
}

/// Returns the peak resident memory of this process.
fn peak_resident_mb() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kb = line.unwrap().split_whitespace().nth(1).unwrap();
    kb.parse::<u64>().unwrap() / 1024
}
