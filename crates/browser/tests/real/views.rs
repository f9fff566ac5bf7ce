//! Tests of visits with a warm cache.

use plumbline_seam::View;
use serde_json::json;

use crate::TestBed;
use crate::site::Site;
use crate::state::{plan_with, transfer};

/// Serves a page with three scripts, and another page with one of them.
async fn site() -> Site {
    let site = Site::start().await;
    let html = "content-type: text/html\r\ncache-control: no-store\r\n";
    let scripts = ["fresh", "confirmed", "forgotten"]
        .map(|name| format!("<script src=\"{name}.js\"></script>"))
        .concat();
    site.add_file("shop", html, &format!("{scripts}<p>Everything must go."));
    let other = "<script src=\"fresh.js\"></script><p>Basket";
    site.add_file("basket", html, other);
    for (name, caching) in [
        ("fresh.js", "cache-control: max-age=600\r\n"),
        (
            "confirmed.js",
            "cache-control: no-cache\r\netag: \"one\"\r\n",
        ),
        ("forgotten.js", "cache-control: no-store\r\n"),
    ] {
        let headers = format!("content-type: text/javascript\r\n{caching}");
        site.add_file(name, &headers, &"void 0;".repeat(500));
    }
    site
}

/// Returns whether each request for a script was conditional.
fn requests(site: &Site, name: &str) -> Vec<bool> {
    let all = site.headers().into_iter();
    all.filter(|(path, _)| path == name)
        .map(|(_, headers)| headers.contains_key("if-none-match"))
        .collect()
}

#[tokio::test]
async fn a_repeat_visit_requests_only_what_the_cache_does_not_have() {
    let (bed, site) = (TestBed::new(), site().await);
    let first = bed.measure(&plan_with(site.url("shop"), json!({}))).await;
    assert_eq!(requests(&site, "fresh.js"), [false]);
    let repeat = json!({ "view": "repeat" });
    let repeat = bed.measure(&plan_with(site.url("shop"), repeat)).await;
    // Each visit has a profile of its own, and the second one loads the page twice.
    assert_eq!(requests(&site, "fresh.js"), [false, false]);
    assert_eq!(requests(&site, "confirmed.js"), [false, false, true]);
    assert_eq!(requests(&site, "forgotten.js"), [false, false, false]);
    let ((first_bytes, first_cached), (bytes, cached)) = (transfer(&first), transfer(&repeat));
    assert!(!first_cached && cached);
    assert!(bytes < first_bytes, "{bytes} of {first_bytes}");
}

#[tokio::test]
async fn another_page_of_the_site_finds_what_it_shares_with_the_one_before() {
    let (bed, site) = (TestBed::new(), site().await);
    let after = View::After(site.url("shop"));
    let options = json!({ "view": after });
    let bundle = bed.measure(&plan_with(site.url("basket"), options)).await;
    assert_eq!(bundle.final_url, site.url("basket"));
    assert_eq!(requests(&site, "fresh.js"), [false]);
    assert!(transfer(&bundle).1);
}
