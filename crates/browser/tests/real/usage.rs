//! How much of its scripts and style sheets a page uses.

use plumbline_bundle::{Artifact, Bundle};
use serde_json::Value;

use crate::site::Site;
use crate::{Bench, plan};

fn artifact(bundle: &Bundle, name: &str) -> Value {
    match bundle.artifacts.get(name) {
        Some(Artifact::Gathered(json)) => serde_json::from_str(json.get()).unwrap(),
        other => panic!("{name}: {other:?}"),
    }
}

#[tokio::test]
async fn what_runs_and_what_matches_is_counted_and_texts_are_not_kept() {
    let (bench, site) = (Bench::new(), Site::start().await);
    let url = site.url("uses-half-of-it.html");
    let bundle = bench.measured(&plan(url.clone())).await;

    let scripts = artifact(&bundle, "scripts");
    let script = &scripts.as_array().unwrap()[0];
    assert_eq!(script["url"], url);
    assert_eq!(script["isInline"], true);
    let number = |value: &Value| value.as_u64().unwrap();
    let length = number(&script["length"]);
    assert!(number(&script["tokenLength"]) < length - 40, "{script}");
    let unused = number(&script["coverage"]["unused"]);
    assert!(unused > 80 && unused < length - 80, "{script}");
    assert_eq!(number(&script["coverage"]["total"]), length);

    let sheets = artifact(&bundle, "style-sheets");
    let sheet = &sheets.as_array().unwrap()[0];
    assert_eq!(sheet["isInline"], true);
    let (length, used) = (number(&sheet["length"]), number(&sheet["usedLength"]));
    assert!(used > 10 && used < length / 2, "{sheet}");
    assert!(number(&sheet["tokenLength"]) < length - 30, "{sheet}");
    assert!(!scripts.to_string().contains("nobody asks"));
}

#[tokio::test]
async fn bundles_are_taken_apart_by_their_source_maps() {
    let (bench, site) = (Bench::new(), Site::start().await);
    let bundle = bench.measured(&plan(site.url("built-twice.html"))).await;

    let scripts = artifact(&bundle, "scripts");
    let of = |name: &str| {
        let mut scripts = scripts.as_array().unwrap().iter();
        let is = |script: &&Value| script["url"] == site.url(name);
        scripts.find(is).unwrap().clone()
    };
    let second = of("built-twice-2.js");
    let map = &second["sourceMap"];
    assert_eq!(map["url"], site.url("built-twice-2.js.map"));
    assert_eq!(map["error"], Value::Null);
    let modules = map["modules"].as_array().unwrap();
    let names: Vec<&str> = modules
        .iter()
        .map(|module| module["source"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "webpack:///./../other/node_modules/pads/left.js",
            "webpack:///./src/search.js",
            "webpack:///./node_modules/pads/both.js?",
        ]
    );
    let number = |value: &Value| value.as_u64().unwrap();
    let sum = |what: &str| {
        let each = modules.iter().map(|module| number(&module[what]));
        each.sum::<u64>()
    };
    let last_line = "//# sourceMappingURL=built-twice-2.js.map\n".len() as u64;
    assert_eq!(sum("length"), number(&second["length"]) - last_line);
    assert_eq!(sum("unused"), number(&second["coverage"]["unused"]));
    assert!(!scripts.to_string().contains("filled from the left"));
}
