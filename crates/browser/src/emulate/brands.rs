use serde_json::{Value, json};

/// Returns the brands of a Chrome of this version, including the invented one that keeps sites from
/// relying on the list. The invented name and the order follow from the major version, as in
/// Chromium's `components/embedder_support/user_agent_utils.cc`.
pub(super) fn list(major: &str, version: &str) -> Value {
    let seed: usize = major.parse().unwrap_or(0);
    let (made_up, made_up_version) = made_up(seed);
    let made_up_version = if version.contains('.') {
        format!("{made_up_version}.0.0.0")
    } else {
        made_up_version.to_owned()
    };
    let brands = [
        (made_up.as_str(), made_up_version.as_str()),
        ("Chromium", version),
        ("Google Chrome", version),
    ];
    let mut ordered = [Value::Null, Value::Null, Value::Null];
    for (place, (brand, version)) in ORDERS[seed % ORDERS.len()].into_iter().zip(brands) {
        ordered[place] = json!({"brand": brand, "version": version});
    }
    Value::from(ordered.to_vec())
}

/// Positions of the invented brand, Chromium and Google Chrome.
const ORDERS: [[usize; 3]; 6] = [
    [0, 1, 2],
    [0, 2, 1],
    [1, 0, 2],
    [1, 2, 0],
    [2, 0, 1],
    [2, 1, 0],
];

fn made_up(seed: usize) -> (String, &'static str) {
    const CHARACTERS: [char; 11] = [' ', '(', ':', '-', '.', '/', ')', ';', '=', '?', '_'];
    const VERSIONS: [&str; 3] = ["8", "99", "24"];
    let first = CHARACTERS[seed % CHARACTERS.len()];
    let second = CHARACTERS[(seed + 1) % CHARACTERS.len()];
    (
        format!("Not{first}A{second}Brand"),
        VERSIONS[seed % VERSIONS.len()],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brands_of_version_156_are_those_of_chromium_156() {
        assert_eq!(
            list("156", "156.0.8078.79"),
            json!([
                {"brand": "Not:A-Brand", "version": "8.0.0.0"},
                {"brand": "Chromium", "version": "156.0.8078.79"},
                {"brand": "Google Chrome", "version": "156.0.8078.79"},
            ])
        );
    }

    #[test]
    fn every_version_has_each_brand_once() {
        for major in 100..160 {
            let text = list(&major.to_string(), &major.to_string()).to_string();
            for name in ["Not", "\"Chromium\"", "Google Chrome"] {
                assert_eq!(text.matches(name).count(), 1, "{text}");
            }
        }
    }
}
