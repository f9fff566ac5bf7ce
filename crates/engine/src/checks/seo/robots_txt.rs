use url::Url;

use crate::checks::{Details, Outcome, check, count};
use crate::facts::{Artifact, Facts, Missing, RobotsTxt};

check! {
    /// # What
    /// If the site has a robots.txt, crawlers can fetch and understand it.
    ///
    /// # Why
    /// Lines that crawlers do not understand are ignored; where the file fails to load, they stay away altogether.
    ///
    /// # Scored
    /// Fails when there is no answer, when the status is 500 or above, or when a line is wrong: no
    /// colon, an unknown directive, a rule before any `user-agent`, a pattern that begins with
    /// neither `/` nor `*`, a `$` before its end, a sitemap without a full address. Not applicable
    /// without a file (status 400 to 499) or when it is empty.
    ///
    /// # Fix
    /// Correct the lines that are listed. The format is RFC 9309.
    ///
    /// # Source
    /// Lighthouse 13.5, `seo/robots-txt`.
    id: "robots-txt",
    pass: "robots.txt is valid",
    fail: "robots.txt is not valid",
    needs: [RobotsTxt::NAME],
    run: run,
}

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let robots = facts.get::<RobotsTxt>()?;
    match robots.status {
        Some(status @ 500..) => {
            return Ok(Outcome::fail(format!(
                "robots.txt answers with status {status}."
            )));
        }
        Some(400..) => return Ok(Outcome::not_applicable()),
        _ => {}
    }
    if robots.content.as_deref() == Some("") {
        return Ok(Outcome::not_applicable());
    }
    if robots.error.is_some() || robots.status.is_none() {
        let reason = robots.error.as_deref().unwrap_or("no answer");
        return Ok(Outcome::fail(format!(
            "robots.txt could not be fetched: {reason}."
        )));
    }
    let Some(content) = &robots.content else {
        return Err(Missing("robots.txt came without content".to_owned()));
    };
    let faults = faults(content);
    if faults.is_empty() {
        return Ok(Outcome::pass());
    }
    let summary = count(faults.len(), "wrong line", "wrong lines");
    let rows = faults
        .into_iter()
        .map(|(number, line, fault)| [number.to_string(), line.to_owned(), fault.to_owned()]);
    Ok(Outcome::fail(summary).with(Details::table(["Line", "Content", "Fault"], rows)))
}

/// Line numbers from 1, the line, and what is wrong with it.
fn faults(content: &str) -> Vec<(usize, &str, &'static str)> {
    let mut faults = Vec::new();
    let mut is_in_group = false;
    for (number, line) in (1..).zip(lines(content)) {
        match directive(line) {
            Err(fault) => faults.push((number, line, fault)),
            Ok(Some("user-agent")) => is_in_group = true,
            Ok(Some("allow" | "disallow")) if !is_in_group => {
                faults.push((number, line, "no user-agent before this rule"));
            }
            Ok(_) => {}
        }
    }
    faults
}

/// Line breaks are `\n`, `\r\n` or `\r`.
pub(super) fn lines(content: &str) -> impl Iterator<Item = &str> {
    content
        .split('\n')
        .map(|line| line.strip_suffix('\r').unwrap_or(line))
        .flat_map(|line| line.split('\r'))
}

/// What Lighthouse knows: the standard, what all crawlers support, and what some do.
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

/// The name of the directive on a line, none where there is none.
fn directive(line: &str) -> Result<Option<&'static str>, &'static str> {
    let line = line.split('#').next().unwrap_or_default().trim();
    if line.is_empty() {
        return Ok(None);
    }
    let (name, value) = line.split_once(':').ok_or("syntax not understood")?;
    let (name, value) = (name.trim().to_lowercase(), value.trim());
    let known = DIRECTIVES
        .into_iter()
        .find(|known| *known == name)
        .ok_or("unknown directive")?;
    match known {
        "sitemap" => {
            let url = Url::parse(value).map_err(|_| "the sitemap has no full address")?;
            if !["http", "https", "ftp"].contains(&url.scheme()) {
                return Err("a sitemap cannot have this kind of address");
            }
        }
        "user-agent" if value.is_empty() => return Err("no user-agent named"),
        "allow" | "disallow" => {
            if !(value.is_empty() || value.starts_with(['/', '*'])) {
                return Err("a pattern begins with / or *");
            }
            if value.find('$').is_some_and(|at| at + 1 != value.len()) {
                return Err("$ stands only at the end of a pattern");
            }
        }
        _ => {}
    }
    Ok(Some(known))
}

#[cfg(test)]
mod tests {
    use super::{CHECK, faults};
    use crate::checks::Verdict;
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
    fn wrong_lines_are_found() {
        for (content, wrong) in [
            ("User-agent: *\nDisallow /x", 1),
            ("Disallow: /x\nUser-agent: *\nDisallow: /x", 1),
            ("User-agent:\nAllow: x\nAllow: /a$b\nUnicorns: yes", 4),
            ("Sitemap: /s.xml\nSitemap: file:///s.xml", 2),
            ("<!doctype html>\n<p>Not found: sorry", 2),
        ] {
            assert_eq!(faults(content).len(), wrong, "{content}");
        }
    }

    #[test]
    fn a_site_without_the_file_is_not_judged() {
        assert_eq!(verdict(r#"{"status": 404}"#), Verdict::NotApplicable);
        assert_eq!(
            verdict(r#"{"status": 200, "content": ""}"#),
            Verdict::NotApplicable
        );
    }

    #[test]
    fn a_server_that_fails_keeps_crawlers_away() {
        assert_eq!(verdict(r#"{"status": 503}"#), Verdict::Fail);
        assert_eq!(
            verdict(r#"{"status": null, "error": "timed out"}"#),
            Verdict::Fail
        );
        assert_eq!(verdict("{}"), Verdict::Fail);
    }

    #[test]
    fn without_an_answer_it_cannot_be_measured() {
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
        assert_eq!(verdict(r#"{"status": 302}"#), Verdict::CouldNotMeasure);
    }
}
