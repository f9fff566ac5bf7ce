//! The rules of a robots.txt (RFC 9309). Where the standard is open, they follow the parser that
//! Lighthouse uses: a crawler's own group replaces the general one, the longest pattern wins, and
//! `Allow` wins over an equally long `Disallow`.

use super::robots_txt::lines;

#[derive(Debug, Default)]
pub(super) struct RobotsRules {
    groups: Vec<(String, Vec<RobotsRule>)>,
}

#[derive(Debug, Clone)]
pub(super) struct RobotsRule {
    pattern: String,
    is_allowed: bool,
    /// The line number, counted from 1.
    pub(super) line: usize,
}

impl RobotsRules {
    pub(super) fn parse(content: &str) -> Self {
        let mut rules = Self::default();
        let mut agents: Vec<String> = Vec::new();
        let mut is_after_rule = true;
        for (number, line) in (1..).zip(lines(content)) {
            let line = line.split('#').next().unwrap_or_default();
            let Some((name, value)) = line.split_once(':') else {
                continue;
            };
            let (name, value) = (name.trim().to_lowercase(), value.trim());
            if name.is_empty() {
                continue;
            }
            match name.as_str() {
                "user-agent" => {
                    if is_after_rule {
                        agents.clear();
                    }
                    if !value.is_empty() {
                        agents.push(agent_name(value));
                    }
                }
                "allow" | "disallow" => rules.add(&agents, value, name == "allow", number),
                "crawl-delay" => rules.add(&agents, "", true, number),
                _ => {}
            }
            is_after_rule = name != "user-agent";
        }
        rules
    }

    /// Adds a rule to the groups of the agents. A group without patterns allows everything.
    fn add(&mut self, agents: &[String], pattern: &str, is_allowed: bool, line: usize) {
        for agent in agents {
            let at = self.groups.iter().position(|(name, _)| name == agent);
            let at = at.unwrap_or_else(|| {
                self.groups.push((agent.clone(), Vec::new()));
                self.groups.len() - 1
            });
            if !pattern.is_empty() {
                self.groups[at].1.push(RobotsRule {
                    pattern: escaped(pattern),
                    is_allowed,
                    line,
                });
            }
        }
    }

    /// Returns the rule that blocks a crawler from a path with query, if any.
    pub(super) fn refusal(&self, crawler: &str, path: &str) -> Option<&RobotsRule> {
        let group = |name: &str| self.groups.iter().find(|(agent, _)| agent == name);
        let (_, rules) = group(&agent_name(crawler)).or_else(|| group("*"))?;
        let path = uppercase_escapes(path);
        rules
            .iter()
            .filter(|rule| matches(&rule.pattern, &path))
            .reduce(|best, rule| {
                let is_longer = rule.pattern.len() > best.pattern.len();
                let is_more_permissive =
                    rule.pattern.len() == best.pattern.len() && rule.is_allowed;
                if is_longer || (is_more_permissive && !best.is_allowed) {
                    rule
                } else {
                    best
                }
            })
            .filter(|rule| !rule.is_allowed)
    }
}

/// Returns the name of a user agent in lower case, without its version.
fn agent_name(agent: &str) -> String {
    let name = agent.split('/').next().unwrap_or_default();
    name.trim().to_lowercase()
}

/// Returns whether a pattern matches a path. `*` matches anything, a final `$` the end; without `$`
/// a pattern matches a prefix.
fn matches(pattern: &str, path: &str) -> bool {
    let (pattern, is_whole) = match pattern.strip_suffix('$') {
        Some(pattern) => (pattern, true),
        None => (pattern, false),
    };
    let mut parts = pattern.split('*');
    let Some(mut rest) = path.strip_prefix(parts.next().unwrap_or_default()) else {
        return false;
    };
    let mut parts: Vec<&str> = parts.collect();
    let last = if is_whole { parts.pop() } else { None };
    for part in parts {
        match rest.split_once(part) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    match last {
        Some(last) => rest.ends_with(last),
        None => !is_whole || rest.is_empty(),
    }
}

/// Escapes a pattern like `encodeURI`, but leaves existing escapes alone.
fn escaped(pattern: &str) -> String {
    const UNESCAPED: &str = ";,/?:@&=+$-_.!~*'()#%";
    let mut escaped = String::with_capacity(pattern.len());
    for c in pattern.chars() {
        if c.is_ascii_alphanumeric() || UNESCAPED.contains(c) {
            escaped.push(c);
        } else {
            for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                escaped.push_str(&format!("%{byte:02X}"));
            }
        }
    }
    uppercase_escapes(&escaped)
}

fn uppercase_escapes(path: &str) -> String {
    let mut pieces = path.split('%');
    let mut result = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        result.push('%');
        match piece.split_at_checked(2) {
            Some((hex, rest)) if hex.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
                result.push_str(&hex.to_ascii_uppercase());
                result.push_str(rest);
            }
            _ => result.push_str(piece),
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn refuses(robots_txt: &str, crawler: &str, path: &str) -> bool {
        RobotsRules::parse(robots_txt)
            .refusal(crawler, path)
            .is_some()
    }

    #[test]
    fn a_crawlers_own_group_replaces_the_general_one() {
        let robots_txt = "User-agent: *\nDisallow: /\n\nUser-agent: Googlebot/2.1\nUser-agent: bingbot\nDisallow:";
        assert!(refuses(robots_txt, "*", "/x"));
        assert!(refuses(robots_txt, "DuckDuckBot", "/x"));
        assert!(!refuses(robots_txt, "Googlebot", "/x"));
        assert!(!refuses(robots_txt, "bingbot", "/x"));
    }

    #[test]
    fn the_longest_pattern_wins_and_allowing_wins_a_tie() {
        let robots_txt = "User-agent: *\nDisallow: /a\nAllow: /a/b\nDisallow: /tie\nAllow: /tie";
        assert!(refuses(robots_txt, "*", "/a/c"));
        assert!(!refuses(robots_txt, "*", "/a/b/c"));
        assert!(!refuses(robots_txt, "*", "/tie"));
        assert!(!refuses(robots_txt, "*", "/"));
    }

    #[test]
    fn patterns_support_wildcards_end_anchors_and_escapes() {
        for (pattern, path, does_match) in [
            ("/", "/anything", true),
            ("/*.gif$", "/a/b.gif", true),
            ("/*.gif$", "/a/b.gif?x", false),
            ("/*.gif", "/a/b.gif?x", true),
            ("/a*b*c", "/a..b..c..", true),
            ("/a*b*c", "/a..c..b", false),
            ("/a$", "/a", true),
            ("/a$", "/ab", false),
            ("*", "/x", true),
            ("/a*a$", "/a", false),
            ("/ä", "/%C3%A4", true),
            ("/%c3%a4", "/%C3%a4", true),
            ("x", "/x", false),
        ] {
            let robots_txt = format!("User-agent: *\nDisallow: {pattern}");
            assert_eq!(
                refuses(&robots_txt, "*", path),
                does_match,
                "{pattern} {path}"
            );
        }
    }

    #[test]
    fn the_blocking_line_is_reported() {
        let rules = RobotsRules::parse("# hello\nUser-agent: *\nDisallow: /private # secret");
        assert_eq!(
            rules.refusal("*", "/private/x").map(|rule| rule.line),
            Some(3)
        );
    }

    proptest! {
        #[test]
        fn arbitrary_files_and_paths_never_panic(content in "(?s).{0,200}", path in "(?s).{0,50}") {
            RobotsRules::parse(&content).refusal("Googlebot", &path);
        }

        #[test]
        fn a_path_always_matches_its_own_prefix(path in "/[a-z/]{0,20}", cut in 0_usize..20) {
            let pattern = &path[..cut.min(path.len())];
            prop_assert!(matches(pattern, &path));
        }
    }
}
