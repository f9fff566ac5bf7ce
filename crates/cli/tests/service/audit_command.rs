use std::process::Output;

use serde_json::Value;

use crate::pages;
use crate::server::plumbline;

fn audit(args: &[&str]) -> Output {
    plumbline().arg("audit").args(args).output().unwrap()
}

#[test]
fn a_page_is_measured_without_a_server() {
    let url = format!("http://{}/", pages::serve());
    let output = audit(&[&url, "--device", "desktop", "--network", "wifi", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(report["metrics"]["fcp"]["value"].as_f64().unwrap() > 0.0);
    assert_eq!(report["requestedUrl"], url.as_str());
    let progress = String::from_utf8(output.stderr).unwrap();
    assert!(progress.contains("loading"), "{progress}");
}

#[test]
fn a_page_that_cannot_be_measured_ends_with_one_and_says_why() {
    let url = format!("http://{}/", pages::nobody());
    let output = audit(&[&url, "--network", "wifi"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(
        String::from_utf8(output.stdout)
            .unwrap()
            .contains("Not measured")
    );
}

#[test]
fn a_wrong_command_ends_with_two_and_names_what_there_is() {
    for (args, expected) in [
        (
            &["http://example.com/", "--device", "toaster"][..],
            "no device `toaster`",
        ),
        (
            &["http://example.com/", "--network", "pigeon"][..],
            "no network `pigeon`",
        ),
        (
            &["http://example.com/", "--location", "moon"][..],
            "no location `moon`",
        ),
        (&["ftp://example.com/"][..], "neither http nor https"),
        (&["example.com"][..], "is no URL"),
        (&[][..], "URL"),
        (
            &["http://example.com/", "--allow-target", "a b"][..],
            "--allow-target",
        ),
    ] {
        let output = audit(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(expected), "{args:?}: {said}");
    }
}
