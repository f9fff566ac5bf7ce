//! The web pages, as browsers request them.

use std::{collections::BTreeSet, io::Read};

use flate2::read::GzDecoder;
use plumbline_bundle::Phase;
use plumbline_seam::{VisitNumber, VisitReason};

use crate::{
    rig::{HttpRequest, NOW, Rig, failure, get},
    visitor::{assert_is_page, completed, form, report, sign_in},
};

#[tokio::test]
async fn an_audit_is_started_followed_and_read() {
    let rig = Rig::with_pages().await;
    let cookie = sign_in(&rig, &rig.key).await;
    let order = "url=example.com&device=iphone7&network=wifi&location=eu";
    let started = rig
        .browse(&form("/audits", order).header("Cookie", &cookie))
        .await;
    assert_eq!(started.status, 303, "{}", started.text());
    assert!(
        started
            .header("set-cookie")
            .unwrap()
            .contains("iphone7.wifi.eu")
    );
    let progress = started.header("location").unwrap().to_owned();
    let tracking_id = progress.strip_prefix("/audits/").unwrap();

    let request = |path: &str| get(path).header("Cookie", &cookie);
    let page = rig.browse(&request(&progress)).await;
    assert_is_page(&page);
    assert!(page.text().contains("https://example.com"));
    assert!(page.text().contains(r#"data-phase="waiting" class="now""#));
    assert!(page.text().contains("Number 1 in the queue · 0 s so far"));
    let lease = rig.lease().await;
    let visit = VisitNumber {
        run: 1,
        number: 2,
        max: 3,
        reason: VisitReason::Uncertain,
    };
    rig.phases
        .record(tracking_id, Phase::Loading, Some(visit), NOW);
    let page = rig.browse(&request(&progress)).await;
    assert!(page.text().contains(r#"data-phase="loading" class="now""#));
    let details = "Visit 2 of at most 3: confirming the score · 0 s so far, about 30 s left";
    assert!(page.text().contains(details), "{}", page.text());

    let events = request(&format!("{progress}/events"));
    let (stream, ()) = tokio::join!(rig.stream(&events), async {
        rig.phases
            .record(tracking_id, Phase::Judging, Some(visit), NOW);
        rig.finish(&lease, report(), None).await;
        rig.phases.remove(tracking_id);
    });
    assert!(stream.contains("text/event-stream"), "{stream}");
    let done = format!("event: done\ndata: /reports/{}", lease.audit_id);
    assert!(stream.contains(&done), "{stream}");

    let to = rig.browse(&request(&progress)).await;
    let report_path = format!("/reports/{}", lease.audit_id);
    assert_eq!(
        (to.status, to.header("location")),
        (303, Some(&*report_path))
    );
    let report = rig.browse(&request(&report_path)).await;
    assert_is_page(&report);
    assert!(report.text().contains("Performance: 91 of 100, good"));
    assert!(
        report.text().contains("are no longer stored"),
        "there are no report media"
    );
    let remembered = format!("{cookie}; plumbline_choice=iphone7.wifi.eu");
    let start = rig.browse(&get("/").header("Cookie", &remembered)).await;
    assert!(
        start
            .text()
            .contains(r#"<option value="iphone7" selected>"#)
    );
    assert!(
        start.text().contains(&report_path),
        "recent audits are listed"
    );
}

#[tokio::test]
async fn the_form_is_prefilled_by_the_query() {
    let rig = Rig::with_pages().await;
    let cookie = sign_in(&rig, &rig.key).await;
    let query = "/?url=https%3A%2F%2Fexample.com%2F&device=desktop&network=cable&location=teapot\
                 &runs=3&quick=true";
    let request = get(query).header(
        "Cookie",
        &format!("{cookie}; plumbline_choice=pixel.wifi.eu"),
    );
    let start = rig.browse(&request).await;
    for part in [
        r#"value="https://example.com/""#,
        " autofocus>",
        r#"<option value="desktop" selected>"#,
        r#"<option value="cable" selected>"#,
        r#"<option value="eu" selected>"#,
        r#"name="runs" type="number" min="1" max="9" value="3">"#,
        r#"name="quick" value="true" checked>"#,
    ] {
        assert!(start.text().contains(part), "{part}");
    }
    let icon = rig.browse(&get("/favicon.ico")).await;
    assert_eq!(icon.header("content-type"), Some("image/svg+xml"));
}

#[tokio::test]
async fn a_link_that_fills_in_the_form_leads_to_it_after_the_sign_in() {
    let rig = Rig::with_pages().await;
    let page = rig
        .browse(&get("/?url=https://example.com/&device=desktop"))
        .await;
    let to = r#"name="to" value="/?url=https://example.com/&#38;device=desktop""#;
    assert!(page.text().contains(to), "{}", page.text());
    let plain = rig.browse(&get("/")).await;
    assert!(!plain.text().contains(r#"name="to""#));
}

#[tokio::test]
async fn values_of_a_link_that_are_not_known_are_named() {
    let rig = Rig::with_pages().await;
    let cookie = sign_in(&rig, &rig.key).await;
    let query = "/?device=phone&network=zz&view=zz&record=on&interactions=1&quick=off";
    let page = rig.browse(&get(query).header("Cookie", &cookie)).await;
    for part in [
        "left out: device=phone, network=zz, view=zz.",
        r#"name="record" value="true" checked"#,
        r#"name="interactions" value="true" checked"#,
    ] {
        assert!(page.text().contains(part), "{part}: {}", page.text());
    }
}

#[tokio::test]
async fn every_field_of_the_form_is_prefilled_by_its_name() {
    let rig = Rig::with_pages().await;
    let cookie = sign_in(&rig, &rig.key).await;
    let see = async |query: &str| {
        let request = get(&format!("/?{query}")).header("Cookie", &cookie);
        rig.browse(&request).await.text().to_owned()
    };
    let empty = see("").await;
    let form = empty
        .split("</form>")
        .find(|part| part.contains(r#"class="order""#));
    let fields = form.unwrap().split(" name=\"").skip(1);
    let fields = fields.map(|field| field.split('"').next().unwrap());
    let fields: BTreeSet<&str> = fields.collect();
    let cases = [
        ("url", "a.test", r#"value="a.test""#),
        ("compareWith", "b.test", r#"value="b.test""#),
        ("device", "pixel", r#"<option value="pixel" selected>"#),
        ("network", "dsl", r#"<option value="dsl" selected>"#),
        ("location", "eu", r#"<option value="eu" selected>"#),
        ("consent", "accept", r#"<option value="accept" selected>"#),
        ("view", "repeat", r#"<option value="repeat" selected>"#),
        ("runs", "4", r#"value="4""#),
        ("quick", "true", r#"name="quick" value="true" checked"#),
        ("record", "true", r#"name="record" value="true" checked"#),
        ("profile", "true", r#"name="profile" value="true" checked"#),
        (
            "allowErrorStatus",
            "true",
            r#"name="allowErrorStatus" value="true" checked"#,
        ),
        (
            "interactions",
            "true",
            r#"name="interactions" value="true" checked"#,
        ),
        ("preparing", "%5B1%5D", ">[1]</textarea>"),
        (
            "preset",
            "lighthouse-desktop",
            r#"<option value="desktop" selected>"#,
        ),
    ];
    // The field for a session exists only if there is one.
    let names = cases.map(|(name, ..)| name);
    assert_eq!(fields, names.into_iter().collect());
    for (name, value, expected) in cases {
        assert!(!empty.contains(expected), "{name} is empty otherwise");
        let page = see(&format!("{name}={value}")).await;
        assert!(page.contains(expected), "{name}: {page}");
    }
    let members = see("flow=%5B2%5D&steps=%5B1%5D").await;
    let json = "{\n  &#34;steps&#34;: [1],\n  &#34;flow&#34;: [2]\n}</textarea>";
    assert!(members.contains(json), "{members}");
}

#[tokio::test]
async fn the_network_of_the_form_follows_the_device_and_presets_choose_both() {
    let rig = Rig::with_pages().await;
    let cookie = sign_in(&rig, &rig.key).await;
    let start = rig.browse(&get("/").header("Cookie", &cookie)).await;
    for part in [
        r#"<optgroup label="Phones"><option value="mobile" selected>"#,
        r#"<optgroup label="Tablets"><option value="ipad102">"#,
        r#"<optgroup label="Desktops and laptops"><option value="desktop">"#,
        r#"<option value="" selected>Follows the device</option>"#,
        r#"<optgroup label="Mobile networks">"#,
        r#"<optgroup label="Fixed lines and Wi-Fi"><option value="fiber">"#,
        r#"name="preset" value="lighthouse-desktop">Lighthouse desktop</button>"#,
    ] {
        assert!(start.text().contains(part), "{part}");
    }
    for (choice, device, network) in [
        ("device=mobile&network=", "mobile", "mobileSlow4g"),
        (
            "device=macbookPro16&network=",
            "macbookPro16",
            "desktopDense4G",
        ),
        ("device=macbookPro16&network=dsl", "macbookPro16", "dsl"),
        (
            "device=pixel&network=dsl&preset=lighthouse-desktop",
            "desktop",
            "desktopDense4G",
        ),
    ] {
        let order = format!("url=example.com&location=eu&{choice}");
        let request = form("/audits", &order).header("Cookie", &cookie);
        let started = rig.browse(&request).await;
        assert_eq!(started.status, 303, "{}", started.text());
        let order = rig.lease().await.order;
        assert_eq!((&*order.device, &*order.network), (device, network));
    }
    let choice = "url=example.com&device=mobile&network=&location=eu&runs=3&quick=true&interactions=true&profile=true&allowErrorStatus=true";
    rig.browse(&form("/audits", choice).header("Cookie", &cookie))
        .await;
    let lease = rig.lease().await;
    assert_eq!((lease.runs, lease.order.options.quick), (3, true));
    assert_eq!(lease.order.options.interactions.number(), 8);
    assert!(lease.order.options.profile);
    assert!(lease.order.options.allow_error_status);
}

#[tokio::test]
async fn the_start_page_shows_why_an_audit_is_refused() {
    let rig = Rig::with_pages().await;
    let cookie = sign_in(&rig, &rig.key).await;
    for (order, status) in [
        (
            "url=http://private.example/&device=mobile&network=wifi&location=eu",
            406,
        ),
        (
            "url=ftp://example.com/&device=mobile&network=wifi&location=eu",
            406,
        ),
        (
            "url=https://example.com/&device=teapot&network=wifi&location=eu",
            406,
        ),
        ("", 406),
    ] {
        let reply = rig
            .browse(&form("/audits", order).header("Cookie", &cookie))
            .await;
        assert_eq!(reply.status, status, "{order}");
        assert_is_page(&reply);
        assert!(reply.text().contains("role=\"alert\""));
    }
    assert_eq!(rig.credits().await, 100);
}

#[tokio::test]
async fn a_url_has_a_history_and_two_audits_can_be_compared() {
    let rig = Rig::with_pages().await;
    let (first, second) = (completed(&rig).await, completed(&rig).await);
    let cookie = sign_in(&rig, &rig.key).await;
    let history = rig
        .browse(&get(&format!("/history?audit={first}")).header("Cookie", &cookie))
        .await;
    assert_is_page(&history);
    assert!(
        history
            .text()
            .contains("Performance over 2 audits: newest 91, median 91")
    );
    let compare = get(&format!("/compare?before={first}&after={second}"));
    let compare = rig.browse(&compare.header("Cookie", &cookie)).await;
    assert_is_page(&compare);
    assert!(compare.text().contains("the same checks fail in both"));
    for path in [
        "/history",
        "/history?audit=x",
        "/compare",
        "/compare?before=x&after=y",
    ] {
        let reply = rig.browse(&get(path).header("Cookie", &cookie)).await;
        assert_eq!(reply.status, 404, "{path}");
    }
}

#[tokio::test]
async fn the_history_of_a_url_without_audits_says_so() {
    let rig = Rig::with_pages().await;
    let cookie = sign_in(&rig, &rig.key).await;
    let path = "/history?url=http%3A%2F%2Fnowhere.example%2F";
    let history = rig.browse(&get(path).header("Cookie", &cookie)).await;
    assert_eq!(history.status, 404);
    assert_is_page(&history);
    for part in [
        "There are no audits of this URL yet.",
        r#"<a href="/?url=http%3A%2F%2Fnowhere.example%2F">"#,
    ] {
        assert!(history.text().contains(part), "{}", history.text());
    }
}

#[tokio::test]
async fn errors_are_pages_for_browsers_and_json_for_other_clients() {
    let rig = Rig::with_pages().await;
    for path in [
        "/nothing",
        "/reports",
        "/shared/unknown",
        "/assets/nothing.css",
    ] {
        let page = rig.browse(&get(path)).await;
        assert_eq!(page.status, 404, "{path}");
        assert_is_page(&page);
        let id = page.header("x-request-id").unwrap();
        assert!(page.text().contains(id), "the page shows the request id");
        rig.check(get(path), 404, failure("Resource Not Found"))
            .await;
    }
    let wrong = rig.browse(&HttpRequest::new("DELETE", "/sign-in")).await;
    assert_eq!((wrong.status, wrong.header("allow")), (405, Some("POST")));
    for path in ["/v1/nothing", "/v1", "/v1/audit/status/x"] {
        let reply = rig.browse(&get(path).key(&rig.key)).await;
        assert_eq!(
            reply.header("content-type"),
            Some("application/json"),
            "{path}"
        );
        assert_eq!(reply.json(), failure("Resource Not Found"));
    }
}

#[tokio::test]
async fn pages_and_assets_are_compressed_for_clients_that_accept_it() {
    let rig = Rig::with_pages().await;
    let plain = rig.browse(&get("/")).await;
    assert_eq!(plain.header("content-encoding"), None);
    let style = plain.text().split("href=\"/assets/").nth(1).unwrap();
    let style = format!("/assets/{}", style.split('"').next().unwrap());
    for path in ["/", &style] {
        let plain = rig.browse(&get(path)).await;
        let packed = rig
            .browse(&get(path).header("Accept-Encoding", "gzip, br"))
            .await;
        assert_eq!(packed.header("content-encoding"), Some("gzip"), "{path}");
        let mut text = String::new();
        GzDecoder::new(&packed.body[..])
            .read_to_string(&mut text)
            .unwrap();
        assert_eq!(text, plain.text());
    }
    let style = rig.browse(&get(&style)).await;
    assert_eq!(
        style.header("content-type"),
        Some("text/css; charset=utf-8")
    );
    let cache_control = style.header("cache-control").unwrap();
    assert!(cache_control.contains("immutable"));
    let json = rig
        .send(&get("/v1/devices").header("Accept-Encoding", "gzip"))
        .await;
    assert_eq!(
        json.header("content-encoding"),
        None,
        "the API is not compressed"
    );
}
