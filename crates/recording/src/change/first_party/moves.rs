//! Servers and the places to which their resources are moved.

use std::collections::{BTreeMap, BTreeSet};

use aho_corasick::{AhoCorasick, MatchKind};

use crate::body::NewContent;
use crate::{BodyError, Endpoint};

/// The slash of URLs, and that of URLs in JSON that escapes it.
const SLASHES: [&str; 2] = ["/", "\\/"];

/// Servers whose resources move to the first party.
pub struct Moves {
    servers: BTreeSet<Endpoint>,
    /// The scheme of the first party.
    scheme: &'static str,
    /// The hosts of the servers, each with two slashes before it.
    searcher: AhoCorasick,
    /// The replacements of what the searcher finds, in the same order.
    targets: Vec<Target>,
}

/// The replacement of a host in URLs.
struct Target {
    /// The schemes of the moved servers with this host.
    schemes: Vec<&'static str>,
    /// The new host with the beginning of the new path.
    text: String,
}

impl Moves {
    /// Prepares moves to the server `first`. Returns `None` if there are too many.
    pub fn new(servers: BTreeSet<Endpoint>, first: &Endpoint) -> Option<Self> {
        let mut hosts: BTreeMap<String, Vec<&Endpoint>> = BTreeMap::new();
        for server in &servers {
            hosts.entry(server.authority()).or_default().push(server);
        }
        let mut old_texts = Vec::new();
        let mut targets = Vec::new();
        for (host, servers) in hosts {
            for slash in SLASHES {
                old_texts.push(format!("{slash}{slash}{host}"));
                let path = prefix_of_host(&host).replace('/', slash);
                targets.push(Target {
                    schemes: servers.iter().map(|it| it.scheme()).collect(),
                    text: format!("{slash}{slash}{}{path}", first.authority()),
                });
            }
        }
        let searcher = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(&old_texts);
        Some(Self {
            scheme: first.scheme(),
            searcher: searcher.ok()?,
            targets,
            servers,
        })
    }

    /// Returns whether a server is moved.
    pub fn has(&self, server: &Endpoint) -> bool {
        self.servers.contains(server)
    }

    /// Replaces the URLs of the servers in a text, also those without a scheme, and those in JSON
    /// with escaped slashes.
    pub fn replaced(&self, text: &[u8]) -> Result<Vec<u8>, BodyError> {
        let mut output = NewContent::default();
        let mut end = 0;
        for found in self.searcher.find_iter(text) {
            // A longer host is another one.
            if !ends_host(text.get(found.end()).copied()) {
                continue;
            }
            let target = &self.targets[found.pattern().as_usize()];
            let before = &text[end..found.start()];
            if !before.ends_with(b":") {
                output.push(before)?;
            } else {
                let mut schemes = target.schemes.iter();
                let rest = schemes.find_map(|it| before.strip_suffix(format!("{it}:").as_bytes()));
                let Some(rest) = rest else {
                    // Another scheme means another server.
                    continue;
                };
                output.push(rest)?;
                output.push(self.scheme.as_bytes())?;
                output.push(b":")?;
            }
            output.push(target.text.as_bytes())?;
            end = found.end();
        }
        output.push(&text[end..])?;
        Ok(output.finish())
    }
}

/// Returns the beginning of the new paths of a server.
pub fn prefix(server: &Endpoint) -> String {
    prefix_of_host(&server.authority())
}

fn prefix_of_host(host: &str) -> String {
    // Colons are not allowed in the first part of a relative path.
    let name = host.replace(':', "-").replace(['[', ']'], "");
    format!("/{name}")
}

/// Returns whether a character is not part of a host.
fn ends_host(c: Option<u8>) -> bool {
    c.is_none_or(|c| !c.is_ascii_alphanumeric() && !b".-_:@".contains(&c))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::endpoint;

    fn replaced(servers: &[&str], text: &str) -> String {
        let servers = servers.iter().map(|it| endpoint(it)).collect();
        let moves = Moves::new(servers, &endpoint("https://first.test")).unwrap();
        String::from_utf8(moves.replaced(text.as_bytes()).unwrap()).unwrap()
    }

    #[test]
    fn urls_are_replaced_by_scheme_and_whole_host() {
        let both = ["http://a.test", "https://a.test", "https://a.test.b"];
        for (text, expected) in [
            ("http://a.test/c", "https://first.test/a.test/c"),
            ("https://a.test", "https://first.test/a.test"),
            ("//a.test.b/", "//first.test/a.test.b/"),
            ("//a.test.c/", "//a.test.c/"),
            ("wss://a.test/", "wss://a.test/"),
            ("//a.test.bc//a.test/", "//a.test.bc//first.test/a.test/"),
            ("http://a.test.b/", "http://a.test.b/"),
            (
                "https:\\/\\/a.test\\/",
                "https:\\/\\/first.test\\/a.test\\/",
            ),
        ] {
            assert_eq!(replaced(&both, text), expected);
        }
    }

    #[test]
    fn many_servers_are_replaced_in_one_pass() {
        let servers: Vec<String> = (0..5000).map(|it| format!("https://{it}.test")).collect();
        let servers: Vec<&str> = servers.iter().map(String::as_str).collect();
        let text = "https://4999.test/ ".repeat(20_000);
        let expected = "https://first.test/4999.test/ ".repeat(20_000);
        assert_eq!(replaced(&servers, &text), expected);
    }
}
