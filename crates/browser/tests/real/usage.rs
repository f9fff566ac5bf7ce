//! Tests of the measured usage of scripts and style sheets.

use plumbline_bundle::{Artifact, Bundle};
use serde_json::Value;

use crate::site::Site;
use crate::{TestBed, plan};

fn artifact(bundle: &Bundle, name: &str) -> Value {
    match bundle.artifacts.get(name) {
        Some(Artifact::Gathered(json)) => serde_json::from_str(json.get()).unwrap(),
        other => panic!("{name}: {other:?}"),
    }
}

#[tokio::test]
async fn used_code_and_rules_are_counted_and_texts_are_not_stored() {
    let (bed, site) = (TestBed::new(), Site::start().await);
    let url = site.url("uses-half-of-it.html");
    let bundle = bed.measure(&plan(url.clone())).await;

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
async fn scripts_are_divided_into_modules_by_their_source_maps() {
    let (bed, site) = (TestBed::new(), Site::start().await);
    let bundle = bed.measure(&plan(site.url("built-twice.html"))).await;

    let scripts = artifact(&bundle, "scripts");
    let script = |name: &str| {
        let mut scripts = scripts.as_array().unwrap().iter();
        scripts
            .find(|script| script["url"] == site.url(name))
            .unwrap()
            .clone()
    };
    let second = script("built-twice-2.js");
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
    let sum = |field: &str| {
        let values = modules.iter().map(|module| number(&module[field]));
        values.sum::<u64>()
    };
    let last_line = "//# sourceMappingURL=built-twice-2.js.map\n".len() as u64;
    assert_eq!(sum("length"), number(&second["length"]) - last_line);
    assert_eq!(sum("unused"), number(&second["coverage"]["unused"]));
    assert!(!scripts.to_string().contains("filled from the left"));
}
