//! The frame of every page: stylesheet, script, icon, and the signed-in account.

use std::fmt::Write;
use std::sync::LazyLock;

use sha2::{Digest, Sha256};

const CSS: &str = include_str!("../../assets/plumbline.css");
const JS: &str = include_str!("../../assets/plumbline.js");
const ICON: &str = include_str!("../../assets/icon.svg");

/// The content security policy of served pages: nothing from other hosts, nothing inline, no
/// framing.
pub const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; \
     img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; \
     frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// The parts that all pages have in common.
#[derive(Debug, Clone)]
pub struct PageFrame {
    pub(super) asset_mode: AssetMode,
    /// The name of the signed-in account.
    pub(super) account: Option<String>,
    /// Hides navigation and sign-in, for shared and standalone pages.
    pub(super) bare: bool,
}

/// The way a page includes stylesheet and script.
#[derive(Debug, Clone)]
pub(super) enum AssetMode {
    /// The page links to files of the server.
    Linked,
    /// The page contains both.
    Inlined,
}

impl PageFrame {
    /// Returns the frame of a page for a signed-in account.
    pub fn signed_in(account: impl Into<String>) -> Self {
        Self {
            asset_mode: AssetMode::Linked,
            account: Some(account.into()),
            bare: false,
        }
    }

    /// Returns the frame of a page for a visitor who is not signed in.
    pub fn signed_out() -> Self {
        Self {
            asset_mode: AssetMode::Linked,
            account: None,
            bare: false,
        }
    }

    /// Returns the frame of a page that is opened through a shared link.
    pub fn shared() -> Self {
        Self {
            asset_mode: AssetMode::Linked,
            account: None,
            bare: true,
        }
    }

    /// Returns the frame of a page that is a single file.
    pub(super) fn standalone() -> Self {
        Self {
            asset_mode: AssetMode::Inlined,
            account: None,
            bare: true,
        }
    }

    /// The elements of `<head>` that load stylesheet and script.
    pub(super) fn head(&self) -> &'static str {
        match self.asset_mode {
            AssetMode::Linked => &LINKED,
            AssetMode::Inlined => &INLINED,
        }
    }
}

static LINKED: LazyLock<String> = LazyLock::new(|| {
    format!(
        "<link rel=\"stylesheet\" href=\"{}\">\n<link rel=\"icon\" href=\"{}\" type=\"image/svg+xml\">\n\
         <script src=\"{}\" defer></script>",
        Asset::Stylesheet.path(),
        Asset::Icon.path(),
        Asset::Script.path()
    )
});

/// A standalone file has a policy too: it may only use its own script, stylesheet and images.
static INLINED: LazyLock<String> = LazyLock::new(|| {
    format!(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; \
         style-src 'sha256-{}'; script-src 'sha256-{}'\">\n<style>{CSS}</style>\n\
         <script type=\"module\">{JS}</script>",
        base64(&Sha256::digest(CSS)),
        base64(&Sha256::digest(JS))
    )
});

/// A static file that pages load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asset {
    Stylesheet,
    Script,
    Icon,
}

impl Asset {
    const ALL: [Self; 3] = [Self::Stylesheet, Self::Script, Self::Icon];

    /// The content of the file.
    pub fn text(self) -> &'static str {
        match self {
            Self::Stylesheet => CSS,
            Self::Script => JS,
            Self::Icon => ICON,
        }
    }

    /// The value of the `Content-Type` header.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Stylesheet => "text/css; charset=utf-8",
            Self::Script => "text/javascript; charset=utf-8",
            Self::Icon => "image/svg+xml",
        }
    }

    /// The path of the file. It contains a hash of the content, so that caches may keep it forever.
    pub fn path(self) -> String {
        format!("/assets/{}", self.file())
    }

    fn file(self) -> String {
        let extension = match self {
            Self::Stylesheet => "css",
            Self::Script => "js",
            Self::Icon => "svg",
        };
        let digest = Sha256::digest(self.text());
        let mut hash = String::new();
        for byte in &digest[..6] {
            let _ = write!(hash, "{byte:02x}");
        }
        format!("plumbline-{hash}.{extension}")
    }
}

/// Returns the asset with this file name.
pub fn asset(file: &str) -> Option<Asset> {
    Asset::ALL.into_iter().find(|asset| asset.file() == file)
}

fn base64(bytes: &[u8]) -> String {
    const SYMBOLS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let mut padded = [0; 4];
        padded[1..=group.len()].copy_from_slice(group);
        let bits = u32::from_be_bytes(padded);
        for place in 0..4 {
            text.push(if place <= group.len() {
                char::from(SYMBOLS[(bits >> (18 - 6 * place) & 63) as usize])
            } else {
                '='
            });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_asset_is_returned_for_its_own_path() {
        for expected in Asset::ALL {
            let path = expected.path();
            assert_eq!(
                asset(path.strip_prefix("/assets/").unwrap()),
                Some(expected)
            );
        }
        assert_eq!(asset("plumbline-000000000000.css"), None);
    }

    #[test]
    fn base64_pads_as_the_policy_requires() {
        assert_eq!(base64(b"Ma"), "TWE=");
        assert_eq!(base64(b"Man!"), "TWFuIQ==");
    }

    #[test]
    fn no_inlined_asset_contains_a_closing_tag() {
        for asset in Asset::ALL {
            let text = asset.text();
            assert!(asset == Asset::Icon || !text.contains("</s"), "{asset:?}");
        }
    }
}
