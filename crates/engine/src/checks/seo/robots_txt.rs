use plumbline_model::check::Details;
use url::Url;

use crate::checks::{Outcome, check, count};
use crate::facts::{Facts, Missing, RobotsTxt};

check! {
    /// # What
    /// The site's robots.txt, if any, can be fetched and parsed.
    ///
    /// # Why
    /// Crawlers ignore invalid lines, and may not crawl the site at all if the file cannot be
    /// fetched.
    ///
    /// # Scored
    /// Fails when there is no response, when the status is 500 or above, or when a line is invalid:
    /// no colon, an unknown directive, a rule before any `user-agent`, a pattern that starts with
    /// neither `/` nor `*`, a `$` before its end, a sitemap without an absolute URL. Not applicable
    /// without a file (status 400 to 499) or when it is empty.
    ///
    /// # Fix
    /// Correct the listed lines. The format is specified in RFC 9309.
    ///
    /// # Source
    /// Lighthouse 13.5, `seo/robots-txt`.
    id: "robots-txt",
    pass: "robots.txt is valid",
    fail: "robots.txt is not valid",
    learn: "https://developer.chrome.com/docs/lighthouse/seo/invalid-robots-txt/",
    run: run,
}

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let RobotsTxt(robots) = &*facts.get::<RobotsTxt>()?;
    match robots.status {
        Some(status @ 500..) => {
            return Ok(Outcome::fail(format!(
                "The request for robots.txt failed with status {status}."
            )));
        }
        Some(400..) => return Ok(Outcome::not_applicable()),
        _ => {}
    }
    if robots.content.as_deref() == Some("") {
        return Ok(Outcome::not_applicable());
    }
    if robots.error.is_some() || robots.status.is_none() {
        let reason = robots.error.as_deref().unwrap_or("no response");
        return Ok(Outcome::fail(format!(
            "robots.txt could not be fetched: {reason}."
        )));
    }
    let Some(content) = &robots.content else {
        return Err(Missing("robots.txt has no content".to_owned()));
    };
    let errors = errors(content);
    if errors.is_empty() {
        return Ok(Outcome::pass());
    }
    let summary = count(errors.len(), "invalid line", "invalid lines");
    let rows = errors
        .into_iter()
        .map(|(number, line, error)| [number.to_string(), line.to_owned(), error.to_owned()]);
    Ok(Outcome::fail(summary).with(Details::table(["Line", "Content", "Error"], rows)))
}

/// Returns the invalid lines with their number, counted from 1, and the error.
fn errors(content: &str) -> Vec<(usize, &str, &'static str)> {
    let mut errors = Vec::new();
    let mut is_in_group = false;
    for (number, line) in (1..).zip(lines(content)) {
        match directive(line) {
            Err(error) => errors.push((number, line, error)),
            Ok(Some("user-agent")) => is_in_group = true,
            Ok(Some("allow" | "disallow")) if !is_in_group => {
                errors.push((number, line, "no user-agent before this rule"));
            }
            Ok(_) => {}
        }
    }
    errors
}

/// Returns the lines of a text; line breaks are `\n`, `\r\n` or `\r`.
pub(super) fn lines(content: &str) -> impl Iterator<Item = &str> {
    content
        .split('\n')
        .map(|line| line.strip_suffix('\r').unwrap_or(line))
        .flat_map(|line| line.split('\r'))
}

/// The directives that Lighthouse accepts: those of the standard and common extensions.
const DIRECTIVES: [&str; 11] = [
    "user-agent",
    "disallow",
    "allow",
    "sitemap",
    "crawl-delay",
    "clean-param",
    "host",
    "request-rate",
    "visit-time",
    "noindex",
    "content-signal",
];

/// Returns the name of the directive on a line, or `None` for an empty line or a comment.
fn directive(line: &str) -> Result<Option<&'static str>, &'static str> {
    let line = line.split('#').next().unwrap_or_default().trim();
    if line.is_empty() {
        return Ok(None);
    }
    let (name, value) = line.split_once(':').ok_or("invalid syntax")?;
    let (name, value) = (name.trim().to_lowercase(), value.trim());
    let directive = DIRECTIVES
        .into_iter()
        .find(|directive| *directive == name)
        .ok_or("unknown directive")?;
    match directive {
        "sitemap" => {
            let url = Url::parse(value).map_err(|_| "the sitemap URL is not absolute")?;
            if !["http", "https", "ftp"].contains(&url.scheme()) {
                return Err("the sitemap URL has an unsupported scheme");
            }
        }
        "user-agent" if value.is_empty() => return Err("no user-agent specified"),
        "allow" | "disallow" => {
            if !(value.is_empty() || value.starts_with(['/', '*'])) {
                return Err("a pattern has to start with / or *");
            }
            if value.find('$').is_some_and(|at| at + 1 != value.len()) {
                return Err("$ is allowed only at the end of a pattern");
            }
        }
        _ => {}
    }
    Ok(Some(directive))
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::Verdict;

    use super::{CHECK, errors};
    use crate::checks::testing::{Visit, verdict_without_evidence};

    fn verdict(robots_txt: &str) -> Verdict {
        Visit::new().with("robots-txt", robots_txt).verdict(CHECK)
    }

    #[test]
    fn a_valid_file_passes() {
        let content = "# all\\r\\nUser-agent: *\\r\\nDisallow: /x$\\rAllow:\\n\\nSitemap: https://a.test/s.xml";
        let answer = format!(r#"{{"status": 200, "content": "{content}"}}"#);
        assert_eq!(verdict(&answer), Verdict::Pass);
    }

    #[test]
    fn invalid_lines_are_reported() {
        for (content, wrong) in [
            ("User-agent: *\nDisallow /x", 1),
            ("Disallow: /x\nUser-agent: *\nDisallow: /x", 1),
            ("User-agent:\nAllow: x\nAllow: /a$b\nUnicorns: yes", 4),
            ("Sitemap: /s.xml\nSitemap: file:///s.xml", 2),
            ("<!doctype html>\n<p>Not found: sorry", 2),
        ] {
            assert_eq!(errors(content).len(), wrong, "{content}");
        }
    }

    #[test]
    fn a_site_without_the_file_is_not_applicable() {
        assert_eq!(verdict(r#"{"status": 404}"#), Verdict::NotApplicable);
        assert_eq!(
            verdict(r#"{"status": 200, "content": ""}"#),
            Verdict::NotApplicable
        );
    }

    #[test]
    fn a_server_error_fails() {
        assert_eq!(verdict(r#"{"status": 503}"#), Verdict::Fail);
        assert_eq!(
            verdict(r#"{"status": null, "error": "timed out"}"#),
            Verdict::Fail
        );
        assert_eq!(verdict("{}"), Verdict::Fail);
    }

    #[test]
    fn without_a_response_it_cannot_be_measured() {
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
        assert_eq!(verdict(r#"{"status": 302}"#), Verdict::CouldNotMeasure);
    }
}
