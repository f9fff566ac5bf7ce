//! The web app manifest, parsed like Lighthouse 11.7 (core/lib/manifest-parser.js): by the
//! specification's steps, but keeping only the members that the checks read.

use serde::Deserialize;
use serde_json::Value;
use url::Url;

use super::null::or_default;
use super::{ArtifactFact, Fact, Facts, Missing};

/// The artifact: the result of `Page.getAppManifest`, or null if the page has no manifest.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct ManifestArtifact(pub Option<ManifestText>);

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ManifestText {
    #[serde(deserialize_with = "or_default")]
    pub url: String,
    #[serde(deserialize_with = "or_default")]
    pub data: String,
}

impl ArtifactFact for ManifestArtifact {
    const NAME: &'static str = "manifest";
}

#[derive(Debug, Clone, PartialEq)]
pub enum ManifestState {
    /// The page links no manifest, or it could not be fetched.
    Absent,
    NotJson,
    Read(Manifest),
}

/// A parsed manifest. Members that are missing or have the wrong type are `None`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Manifest {
    pub name: Option<String>,
    pub background_color: Option<String>,
    pub theme_color: Option<String>,
    pub icons: Vec<Icon>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Icon {
    pub src: Url,
    pub kind: Option<String>,
    /// The sizes in lower case: `192x192`, `any`.
    pub sizes: Vec<String>,
    /// The purposes in lower case.
    pub purposes: Vec<String>,
}

impl ManifestState {
    /// Returns the manifest, or a sentence that says why there is none.
    pub fn read(&self) -> Result<&Manifest, &'static str> {
        match self {
            Self::Absent => Err("The page has no manifest that could be fetched."),
            Self::NotJson => Err("The manifest is not valid JSON."),
            Self::Read(manifest) => Ok(manifest),
        }
    }
}

impl Fact for ManifestState {
    fn compute(facts: &Facts) -> Result<Self, Missing> {
        let artifact = facts.get::<ManifestArtifact>()?;
        Ok(match &artifact.0 {
            Some(text) if !text.data.is_empty() => parse(&text.data, &text.url),
            _ => Self::Absent,
        })
    }
}

impl Manifest {
    /// Returns whether there is a square PNG icon of at least this declared size.
    pub fn has_png_of_px(&self, px: f64) -> bool {
        self.icons
            .iter()
            .filter(|icon| match icon.kind.as_deref() {
                Some(kind) if !kind.is_empty() => kind == "image/png",
                _ => icon.src.path().ends_with(".png"),
            })
            .flat_map(|icon| &icon.sizes)
            .filter_map(|size| size.split_once('x'))
            .filter_map(|(width, height)| Some((number(width)?, number(height)?)))
            .any(|(width, height)| width == height && width >= px)
    }

    pub fn has_maskable_icon(&self) -> bool {
        let is_maskable = |purpose: &String| purpose == "maskable";
        self.icons
            .iter()
            .any(|icon| icon.purposes.iter().any(is_maskable))
    }
}

fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

fn parse(data: &str, manifest_url: &str) -> ManifestState {
    let json = data.strip_prefix('\u{feff}').unwrap_or(data);
    let Ok(value) = serde_json::from_str::<Value>(json) else {
        return ManifestState::NotJson;
    };
    if value.is_null() {
        return ManifestState::Absent;
    }
    let base = Url::parse(manifest_url).ok();
    let icons = value["icons"].as_array().map(Vec::as_slice);
    ManifestState::Read(Manifest {
        name: text(&value["name"]).map(|name| name.trim().to_owned()),
        background_color: text(&value["background_color"]),
        theme_color: text(&value["theme_color"]),
        icons: icons
            .unwrap_or_default()
            .iter()
            .filter_map(|icon| parse_icon(icon, base.as_ref()))
            .collect(),
    })
}

fn parse_icon(icon: &Value, base: Option<&Url>) -> Option<Icon> {
    let src = text(&icon["src"])?;
    let src = src.trim();
    if src.is_empty() {
        return None;
    }
    let words = |value: &Value| {
        let text = text(value)?;
        Some(text.split_whitespace().map(str::to_lowercase).collect())
    };
    Some(Icon {
        src: Url::options().base_url(base).parse(src).ok()?,
        kind: text(&icon["type"]).map(|kind| kind.trim().to_owned()),
        sizes: words(&icon["sizes"]).unwrap_or_default(),
        purposes: words(&icon["purpose"]).unwrap_or_else(|| vec!["any".to_owned()]),
    })
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// The artifact: the result of `Page.getInstallabilityErrors`.
#[derive(Debug, Default, Deserialize)]
pub struct Installability(pub Vec<InstallabilityError>);

impl ArtifactFact for Installability {
    const NAME: &'static str = "installability";
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InstallabilityError {
    #[serde(deserialize_with = "or_default")]
    pub error_id: String,
    pub error_arguments: Vec<InstallabilityArgument>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct InstallabilityArgument {
    pub name: String,
    pub value: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(data: &str) -> Manifest {
        match parse(data, "https://a.test/app.webmanifest") {
            ManifestState::Read(manifest) => manifest,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_icon_counts_by_type_or_else_by_extension() {
        let of = |icon: &str| read(&format!(r#"{{"icons": [{icon}]}}"#)).has_png_of_px(512.0);
        assert!(of(
            r#"{"src": "i", "type": "image/png", "sizes": "64x64 512x512"}"#
        ));
        assert!(of(r#"{"src": "i.png", "sizes": "1024x1024"}"#));
        assert!(!of(
            r#"{"src": "i.png", "type": "image/webp", "sizes": "512x512"}"#
        ));
        assert!(!of(r#"{"src": "i.png", "sizes": "512x256"}"#), "not square");
        assert!(!of(r#"{"src": "i.png", "sizes": "any"}"#));
        assert!(!of(r#"{"src": "", "sizes": "512x512"}"#));
        assert!(!of(r#"{"src": 7, "sizes": 9}"#));
    }

    #[test]
    fn a_purpose_is_a_list_of_words() {
        let of = |purpose: &str| {
            read(&format!(
                r#"{{"icons": [{{"src": "i.png", "purpose": {purpose}}}]}}"#
            ))
            .has_maskable_icon()
        };
        assert!(of(r#""any MASKABLE""#));
        assert!(!of(r#""any""#));
        assert!(!of("null"));
    }

    #[test]
    fn values_of_the_wrong_type_are_ignored() {
        let manifest = read(r#"{"name": 3, "theme_color": null, "icons": {}}"#);
        assert_eq!(manifest, Manifest::default());
        assert_eq!(parse("{", ""), ManifestState::NotJson);
        assert_eq!(parse("null", ""), ManifestState::Absent);
        assert_eq!(
            parse("\u{feff}[]", ""),
            ManifestState::Read(Manifest::default())
        );
    }
}
