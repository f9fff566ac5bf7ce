//! Requirements of every blob store, tested with files and with a real S3 server.

use std::fs;
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use plumbline_store::{AttemptBlob, BlobPart, Blobs, FileBlobs, S3Blobs, S3Config};

use crate::s3::S3Server;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Checks two kinds of blobs in one store, which must be independent.
async fn conforms(bundles: Arc<dyn Blobs>, media: Arc<dyn Blobs>) {
    // The newest blob is returned unchanged, with any content.
    let odd: Vec<u8> = (0..300_000_u32).map(|n| (n * 31 % 251) as u8).collect();
    bundles.put("aud_1", b"old".to_vec()).await.unwrap();
    bundles.put("aud_1", odd.clone()).await.unwrap();
    bundles.put("aud_empty", Vec::new()).await.unwrap();
    media.put("aud_1", b"another kind".to_vec()).await.unwrap();
    assert_eq!(bundles.get("aud_1").await.unwrap(), Some(odd.clone()));
    parts_are_read_without_the_rest(&*bundles, "aud_1", &odd).await;
    assert_eq!(bundles.get("aud_empty").await.unwrap(), Some(Vec::new()));
    assert_eq!(bundles.get("aud_2").await.unwrap(), None);

    // Names that are not ids are refused.
    for name in ["", "..", "../x", "a/b", "a\0b", "a.b", "a b", "é"] {
        let refused = bundles.put(name, Vec::new()).await.unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput, "{name:?}");
        assert!(bundles.get(name).await.is_err(), "{name:?}");
        assert!(bundles.remove(name).await.is_err(), "{name:?}");
    }

    // Removed blobs are gone, and removing them again is no error.
    bundles.remove("aud_1").await.unwrap();
    bundles.remove("aud_1").await.unwrap();
    assert_eq!(bundles.get("aud_1").await.unwrap(), None);
    let other = media.get("aud_1").await.unwrap();
    assert_eq!(other.as_deref(), Some(&b"another kind"[..]));

    attempts_are_independent(&*media).await;
    files_are_returned_unchanged(&*media).await;

    // Only old blobs are removed, and all of them.
    for n in 0..25 {
        let name = format!("aud_old-{n}");
        bundles.put(&name, vec![b'x'; 10]).await.unwrap();
    }
    let now = SystemTime::now();
    assert_eq!(bundles.remove_older(DAY, now).await.unwrap(), 0);
    assert_eq!(bundles.remove_older(DAY, now + 2 * DAY).await.unwrap(), 26);
    assert_eq!(bundles.get("aud_old-7").await.unwrap(), None);
    assert!(media.get("aud_1").await.unwrap().is_some());

    // Concurrent writes.
    let puts = (0..16).map(|n| {
        let bundles = bundles.clone();
        tokio::spawn(async move {
            let name = format!("aud_at-once-{n}");
            bundles.put(&name, vec![n; 100_000]).await.unwrap();
            assert_eq!(bundles.get(&name).await.unwrap(), Some(vec![n; 100_000]));
        })
    });
    for put in puts.collect::<Vec<_>>() {
        put.await.unwrap();
    }
}

/// Checks that parts of a blob are those of its content.
async fn parts_are_read_without_the_rest(blobs: &dyn Blobs, name: &str, content: &[u8]) {
    let part = async |part| blobs.get_part(name, part).await.unwrap().unwrap();
    assert_eq!(part(BlobPart::Range(0..2)).await, content[..2]);
    assert_eq!(
        part(BlobPart::Range(70_000..90_000)).await,
        content[70_000..90_000]
    );
    assert_eq!(part(BlobPart::Last(5)).await, content[content.len() - 5..]);
    // Parts end where the blob does.
    let length = content.len() as u64;
    assert_eq!(part(BlobPart::Last(length + 1)).await, content);
    let beyond = BlobPart::Range(length - 1..length + 9);
    assert_eq!(part(beyond).await, content[content.len() - 1..]);
    let missing = blobs.get_part("aud_none", BlobPart::Last(5)).await;
    assert_eq!(missing.unwrap(), None);
    assert!(blobs.get_part("a/b", BlobPart::Last(5)).await.is_err());
}

/// Checks that each attempt has its own blob, and that those of other attempts can be removed.
async fn attempts_are_independent(blobs: &dyn Blobs) {
    let of = |attempt: u32| AttemptBlob {
        audit_id: "aud_2",
        attempt,
    };
    blobs.put("aud_2", b"before".to_vec()).await.unwrap();
    let before = of(2).get(blobs).await.unwrap();
    assert_eq!(before.as_deref(), Some(&b"before"[..]));
    for attempt in [3, 2, 1] {
        let bytes = attempt.to_string().into_bytes();
        of(attempt).put(blobs, bytes).await.unwrap();
    }
    let content = async |attempt: u32| of(attempt).get(blobs).await.unwrap().unwrap();
    assert_eq!(content(3).await, b"3");
    of(3).remove_earlier(blobs).await.unwrap();
    assert_eq!(
        (content(1).await, content(2).await),
        (b"before".to_vec(), b"before".to_vec())
    );
    assert_eq!(content(3).await, b"3");
    of(1).put(blobs, b"late".to_vec()).await.unwrap();
    of(3).remove_all(blobs).await.unwrap();
    for attempt in 1..4 {
        assert_eq!(of(attempt).get(blobs).await.unwrap(), None);
    }
}

/// Checks that files of any size are returned unchanged.
async fn files_are_returned_unchanged(blobs: &dyn Blobs) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("upload");
    let (small, part) = (b"small".to_vec(), vec![7; 8 << 20]);
    // As large as one part in S3, so that the next is empty, and a little larger.
    let longer = [&part[..], b"and more"].concat();
    for bytes in [Vec::new(), small, part, longer] {
        fs::write(&file, &bytes).unwrap();
        blobs.put_file("aud_file", &file).await.unwrap();
        assert_eq!(blobs.get("aud_file").await.unwrap(), Some(bytes));
    }
    let missing = blobs.put_file("aud_file", &dir.path().join("none")).await;
    assert_eq!(missing.unwrap_err().kind(), io::ErrorKind::NotFound);
    assert!(blobs.put_file("a/b", &file).await.is_err());
    blobs.remove("aud_file").await.unwrap();
}

#[tokio::test]
async fn a_directory_conforms() {
    let dir = tempfile::tempdir().unwrap();
    let open = |kind: &str| Arc::new(FileBlobs::open(&dir.path().join(kind)).unwrap());
    conforms(open("bundles"), open("exhibits")).await;
}

#[tokio::test]
async fn an_s3_server_conforms() {
    let server = S3Server::start();
    for prefix in ["", "some/prefix"] {
        let config = S3Config {
            prefix: prefix.to_owned(),
            ..server.config()
        };
        let open = |kind: &str| Arc::new(S3Blobs::open(&config, kind).unwrap());
        conforms(open("bundles"), open("exhibits")).await;
    }
}

#[tokio::test]
async fn denied_access_and_an_unreachable_server_are_errors_and_not_missing_blobs() {
    let server = S3Server::start();
    let wrong = S3Config {
        secret_access_key: Some("not-the-secret".to_owned()),
        ..server.config()
    };
    let denied = S3Blobs::open(&wrong, "bundles").unwrap();
    let error = denied.put("aud_1", Vec::new()).await.unwrap_err();
    assert!(!error.to_string().contains("not-the-secret"), "{error}");
    assert!(denied.get("aud_1").await.is_err());

    let nowhere = S3Config {
        // Nothing listens on the discard port.
        endpoint: Some("http://127.0.0.1:9".to_owned()),
        ..server.config()
    };
    let gone = S3Blobs::open(&nowhere, "bundles").unwrap();
    assert!(gone.get("aud_1").await.is_err());
}
