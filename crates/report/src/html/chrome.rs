//! What is around every page: the stylesheet, the script, who is signed in.

use std::fmt::Write;
use std::sync::LazyLock;

use sha2::{Digest, Sha256};

const CSS: &str = include_str!("../../assets/plumbline.css");
const JS: &str = include_str!("../../assets/plumbline.js");
const ICON: &str = include_str!("../../assets/icon.svg");

/// Nothing from elsewhere, nothing inline, no way into a frame.
pub const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; \
     img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; \
     frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// What a page is dressed in.
#[derive(Debug, Clone)]
pub struct Chrome {
    pub(super) dress: Dress,
    /// The account's name where somebody is signed in.
    pub(super) account: Option<String>,
    /// Nothing to sign in to: a shared or a standalone page.
    pub(super) bare: bool,
}

#[derive(Debug, Clone)]
pub(super) enum Dress {
    /// Stylesheet and script at addresses of the server.
    Linked,
    /// Both within the page.
    Inlined,
}

impl Chrome {
    pub fn signed_in(account: impl Into<String>) -> Self {
        Self {
            dress: Dress::Linked,
            account: Some(account.into()),
            bare: false,
        }
    }

    pub fn signed_out() -> Self {
        Self {
            dress: Dress::Linked,
            account: None,
            bare: false,
        }
    }

    /// For a page that is read through a shared link.
    pub fn shared() -> Self {
        Self {
            dress: Dress::Linked,
            account: None,
            bare: true,
        }
    }

    pub(super) fn standalone() -> Self {
        Self {
            dress: Dress::Inlined,
            account: None,
            bare: true,
        }
    }

    /// The part of the head that brings style and behaviour.
    pub(super) fn head(&self) -> &'static str {
        match self.dress {
            Dress::Linked => &LINKED,
            Dress::Inlined => &INLINED,
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

/// A file on its own keeps a policy too: only what is in it may run, only pictures in it may show.
static INLINED: LazyLock<String> = LazyLock::new(|| {
    format!(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; \
         style-src 'sha256-{}'; script-src 'sha256-{}'\">\n<style>{CSS}</style>\n\
         <script type=\"module\">{JS}</script>",
        base64(&Sha256::digest(CSS)),
        base64(&Sha256::digest(JS))
    )
});

/// A file that pages ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asset {
    Stylesheet,
    Script,
    Icon,
}

impl Asset {
    const ALL: [Self; 3] = [Self::Stylesheet, Self::Script, Self::Icon];

    pub fn text(self) -> &'static str {
        match self {
            Self::Stylesheet => CSS,
            Self::Script => JS,
            Self::Icon => ICON,
        }
    }

    pub fn media_type(self) -> &'static str {
        match self {
            Self::Stylesheet => "text/css; charset=utf-8",
            Self::Script => "text/javascript; charset=utf-8",
            Self::Icon => "image/svg+xml",
        }
    }

    /// With a mark of its content in it, so that it may be kept for ever.
    pub fn path(self) -> String {
        format!("/assets/{}", self.file())
    }

    fn file(self) -> String {
        let end = match self {
            Self::Stylesheet => "css",
            Self::Script => "js",
            Self::Icon => "svg",
        };
        let digest = Sha256::digest(self.text());
        let mut mark = String::new();
        for byte in &digest[..6] {
            let _ = write!(mark, "{byte:02x}");
        }
        format!("plumbline-{mark}.{end}")
    }
}

/// The asset of this file name.
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
    fn assets_are_found_by_the_path_they_are_linked_at() {
        for known in Asset::ALL {
            let path = known.path();
            assert_eq!(asset(path.strip_prefix("/assets/").unwrap()), Some(known));
        }
        assert_eq!(asset("plumbline-000000000000.css"), None);
    }

    #[test]
    fn digests_are_written_as_a_policy_wants_them() {
        assert_eq!(base64(b"Ma"), "TWE=");
        assert_eq!(base64(b"Man!"), "TWFuIQ==");
    }

    #[test]
    fn no_asset_can_end_the_element_it_is_inlined_in() {
        for asset in Asset::ALL {
            let text = asset.text();
            assert!(asset == Asset::Icon || !text.contains("</s"), "{asset:?}");
        }
    }
}
