//! Tests of `plumbline compare`.

use std::process::Output;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use crate::pages;
use crate::server::plumbline;

fn compare(args: &[&str]) -> Output {
    plumbline().arg("compare").args(args).output().unwrap()
}

#[test]
fn a_page_with_blocking_requests_is_slower_than_one_without() {
    let site = format!("http://{}", pages::serve());
    let urls = [format!("{site}/"), format!("{site}/stylesheets")];
    let output = compare(&[
        &urls[0],
        &urls[1],
        "--network",
        "normal3gSlow",
        "--device",
        "desktop",
        "--max-pairs",
        "4",
        "--quick",
        "--output",
        "json",
        "--fail-if-slower",
    ]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["urls"][1], urls[1].as_str());
    let figures = result["figures"].as_array().unwrap();
    let paint = figures.iter().find(|figure| figure["name"] == "fcp");
    let paint = paint.unwrap();
    // Eight more round trips of 400 ms, which no load of the machine hides.
    assert_eq!(paint["answer"], "slower", "{result}");
    assert!(paint["interval"]["low"].as_f64().unwrap() > 0.0, "{paint}");
    let requests = &result["evidence"][0];
    assert_eq!(requests["name"], "Requests");
    assert!(requests["values"][1].as_f64() > requests["values"][0].as_f64());
}

#[test]
fn two_recordings_are_compared_without_their_server() {
    let dir = tempfile::tempdir().unwrap();
    let requests = Arc::<AtomicUsize>::default();
    let count = Arc::clone(&requests);
    let address = pages::serve_after(move || {
        count.fetch_add(1, Ordering::Relaxed);
    });
    let site = format!("http://{address}");
    let urls = [format!("{site}/"), format!("{site}/stylesheets")];
    let files = ["a.recording", "b.har"].map(|name| dir.path().join(name));
    let files = files.each_ref().map(|file| file.to_str().unwrap());
    let conditions = ["--network", "normal3gSlow", "--device", "desktop"];
    for (url, file) in urls.iter().zip(files) {
        let record = [&["record", url, "-o", file], &conditions[..]].concat();
        let output = plumbline().args(record).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    let recorded = requests.load(Ordering::Relaxed);
    let compared = ["--recordings", "--repeatable", files[0], files[1]];
    let options = ["--max-pairs", "4", "--quick", "--output", "json"];
    let output = compare(&[&compared[..], &conditions, &options].concat());
    assert!(output.status.success(), "{output:?}");
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["urls"][0], urls[0].as_str());
    assert_eq!(result["urls"][1], urls[1].as_str());
    let figures = &result["evidence"][0];
    assert!(figures["values"][1].as_f64() > figures["values"][0].as_f64());
    assert_eq!(requests.load(Ordering::Relaxed), recorded);

    let output = compare(&["--recordings", files[0], "missing.recording"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let output = compare(&["--repeatable", &urls[0], &urls[1]]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn a_page_that_cannot_be_measured_ends_the_comparison() {
    let (site, none) = (pages::serve(), pages::unused_address());
    let output = compare(&[&site.to_string(), &none.to_string(), "--network", "wifi"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let error = String::from_utf8(output.stderr).unwrap();
    let expected = format!("The second page, http://{none}/, could not be measured: ");
    assert!(error.contains(&expected), "{error}");
}

#[test]
fn two_urls_are_needed() {
    let output = compare(&["http://127.0.0.1/"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}
