use super::date;
use super::robots_rules::RobotsRules;
use crate::checks::{Details, Outcome, check};
use crate::facts::{Artifact, Facts, MainResource, Metas, Missing, Requests, RobotsTxt};

check! {
    /// # What
    /// At least one of the well-known search engines may list the page.
    ///
    /// # Why
    /// A page that all crawlers are told to leave alone cannot be found by searching.
    ///
    /// # Scored
    /// Fails when the `robots` meta element, an `X-Robots-Tag` header or robots.txt keeps away every
    /// one of Googlebot, bingbot, DuckDuckBot, archive.org_bot and crawlers in general: by
    /// `noindex`, `none`, an `unavailable_after` that is past, or a matching `Disallow`. The check
    /// weighs 93/23 in its category, so that a hidden page loses nearly a third of the score.
    ///
    /// # Fix
    /// Remove the directives that are listed, if the page is meant to be found.
    ///
    /// # Source
    /// Lighthouse 13.5, `seo/is-crawlable`.
    id: "is-crawlable",
    pass: "Search engines may list the page",
    fail: "Search engines are told not to list the page",
    needs: [Requests::NAME, Metas::NAME, RobotsTxt::NAME],
    run: run,
}

/// The crawlers that count. The first stands for all that are not named.
const CRAWLERS: [Option<&str>; 5] = [
    None,
    Some("Googlebot"),
    Some("bingbot"),
    Some("DuckDuckBot"),
    Some("archive.org_bot"),
];

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let robots_txt = facts.get::<RobotsTxt>()?;
    let gate = Gate {
        main: &*facts.get::<MainResource>()?,
        metas: &*facts.get::<Metas>()?,
        rules: robots_txt
            .content
            .as_deref()
            .filter(|content| !content.is_empty())
            .map(RobotsRules::parse),
    };
    let refusals = CRAWLERS.map(|crawler| (crawler, gate.refusals(crawler)));
    let refused = || refusals.iter().filter(|(_, reasons)| !reasons.is_empty());
    if refused().count() == CRAWLERS.len() {
        let general = &refusals[0].1;
        return Ok(Outcome::fail("Every crawler is kept away.")
            .with(Details::table(["Where", "Directive"], general.clone())));
    }
    let named: Vec<&str> = refused().filter_map(|(crawler, _)| *crawler).collect();
    if refused().next().is_none() {
        return Ok(Outcome::pass());
    }
    let who = match named.as_slice() {
        [] => "Crawlers without a rule of their own".to_owned(),
        named => named.join(", "),
    };
    Ok(Outcome::pass().warning(format!(
        "{who} may not list the page, but at least one search engine may."
    )))
}

/// Everything that may keep a crawler away.
struct Gate<'a> {
    main: &'a MainResource,
    metas: &'a Metas,
    rules: Option<RobotsRules>,
}

impl Gate<'_> {
    /// Where a crawler is refused, and by which words.
    fn refusals(&self, crawler: Option<&str>) -> Vec<[String; 2]> {
        let mut refusals = Vec::new();
        // An element for one crawler replaces, for it, the one for all.
        let meta = crawler
            .and_then(|crawler| self.metas.named(&crawler.to_lowercase()))
            .or_else(|| self.metas.named("robots"));
        if let Some(meta) = meta.filter(|meta| self.blocks(&meta.content)) {
            refusals.push([format!("meta {}", meta.name), meta.content.clone()]);
        }
        for value in self.main.header("x-robots-tag") {
            let addressee = addressee(value);
            if addressee.is_some() && addressee != crawler {
                continue;
            }
            let directives = crawler
                .and_then(|crawler| value.strip_prefix(crawler)?.strip_prefix(':'))
                .unwrap_or(value.trim());
            if self.blocks(directives) {
                refusals.push(["X-Robots-Tag header".to_owned(), value.to_owned()]);
            }
        }
        let url = &self.main.0.url;
        let path = match url.query() {
            Some(query) if !query.is_empty() => format!("{}?{query}", url.path()),
            _ => url.path().to_owned(),
        };
        let rule = self
            .rules
            .as_ref()
            .and_then(|rules| rules.refusal(crawler.unwrap_or("*"), &path));
        if let Some(rule) = rule {
            refusals.push(["robots.txt".to_owned(), format!("line {}", rule.line)]);
        }
        refusals
    }

    fn blocks(&self, directives: &str) -> bool {
        directives
            .split(',')
            .map(|directive| directive.to_lowercase())
            .any(|directive| match directive.trim() {
                "noindex" | "none" => true,
                other => self.is_past(other),
            })
    }

    /// Past when the page was asked for: the judge has no clock.
    fn is_past(&self, directive: &str) -> bool {
        let date = directive.strip_prefix("unavailable_after:");
        match (date.and_then(date::parse_s), self.main.0.wall_time_s) {
            (Some(date_s), Some(now_s)) => date_s < now_s,
            _ => false,
        }
    }
}

/// The crawler that a header is for: the word before its first colon, where no comma comes first.
fn addressee(value: &str) -> Option<&str> {
    let end = value.find([',', ':']).filter(|end| *end > 0)?;
    let word = &value[..end];
    let is_word = value[end..].starts_with(':') && !word.eq_ignore_ascii_case("unavailable_after");
    is_word.then_some(word)
}

#[cfg(test)]
mod tests {
    use super::CHECK;
    use crate::checks::Verdict;
    use crate::checks::testing::{Visit, verdict_without_evidence};

    fn visit() -> Visit {
        Visit::new()
            .with("metas", "[]")
            .with("robots-txt", r#"{"status": 404}"#)
    }

    fn with_meta(name: &str, content: &str) -> Visit {
        visit().with(
            "metas",
            &format!(r#"[{{"name": "{name}", "content": "{content}"}}]"#),
        )
    }

    fn with_robots(content: &str) -> Visit {
        visit().with(
            "robots-txt",
            &format!(r#"{{"status": 200, "content": "{content}"}}"#),
        )
    }

    #[test]
    fn an_open_page_passes() {
        assert_eq!(visit().verdict(CHECK), Verdict::Pass);
        assert_eq!(
            with_meta("robots", "index, nofollow").verdict(CHECK),
            Verdict::Pass
        );
        assert_eq!(
            with_robots("User-agent: *\\nDisallow: /x").verdict(CHECK),
            Verdict::Pass
        );
    }

    #[test]
    fn a_page_that_is_closed_to_all_fails() {
        assert_eq!(
            with_meta("robots", "NOINDEX,follow").verdict(CHECK),
            Verdict::Fail
        );
        assert_eq!(with_meta("robots", "none").verdict(CHECK), Verdict::Fail);
        assert_eq!(
            with_robots("User-agent: *\\nDisallow: /").verdict(CHECK),
            Verdict::Fail
        );
        let headed = |value| visit().header("X-Robots-Tag", value).verdict(CHECK);
        assert_eq!(headed("noindex"), Verdict::Fail);
        assert_eq!(headed("all\nnoindex"), Verdict::Fail);
    }

    #[test]
    fn a_page_that_is_open_to_one_passes_with_a_warning() {
        for visit in [
            with_meta("googlebot", "noindex"),
            visit().header("x-robots-tag", "Googlebot: noindex"),
            with_robots("User-agent: *\\nDisallow: /\\n\\nUser-agent: Googlebot\\nAllow: /"),
        ] {
            let outcome = visit.judge(CHECK);
            assert_eq!(outcome.verdict, Verdict::Pass);
            assert_eq!(outcome.warnings.len(), 1);
        }
    }

    #[test]
    fn a_date_counts_once_it_is_past() {
        let dated =
            |date| with_meta("robots", &format!("unavailable_after: {date}")).verdict(CHECK);
        assert_eq!(dated("25 Jun 2010 15:00:00 PST"), Verdict::Fail);
        assert_eq!(dated("2999-01-01"), Verdict::Pass);
        assert_eq!(dated("soon"), Verdict::Pass);
    }

    #[test]
    fn a_header_for_somebody_else_is_not_ours() {
        let headed = |value| visit().header("X-Robots-Tag", value).verdict(CHECK);
        assert_eq!(headed("otherbot: noindex"), Verdict::Pass);
        assert_eq!(headed("unavailable_after: 2010-01-01"), Verdict::Fail);
    }

    #[test]
    fn without_evidence_it_cannot_be_measured() {
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
        let without_robots = Visit::new().with("metas", "[]");
        assert_eq!(without_robots.verdict(CHECK), Verdict::CouldNotMeasure);
    }
}
