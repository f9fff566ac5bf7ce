use plumbline_model::check::Details;

use super::date;
use super::robots_rules::RobotsRules;
use crate::checks::{Outcome, check};
use crate::facts::{Facts, MainResource, Metas, Missing, RobotsTxt};

check! {
    /// # What
    /// At least one of the well-known search engines may index the page.
    ///
    /// # Why
    /// A page that is blocked for all crawlers does not appear in search results.
    ///
    /// # Scored
    /// Fails when the `robots` meta element, an `X-Robots-Tag` header or robots.txt blocks all of
    /// Googlebot, bingbot, DuckDuckBot, archive.org_bot and crawlers in general: by `noindex`,
    /// `none`, an `unavailable_after` in the past, or a matching `Disallow`. The check has a weight
    /// of 93/23, so that a blocked page loses nearly a third of the category's score.
    ///
    /// # Fix
    /// Remove the listed directives if the page should be indexed.
    ///
    /// # Source
    /// Lighthouse 13.5, `seo/is-crawlable`.
    id: "is-crawlable",
    pass: "Page is not blocked from indexing",
    fail: "Page is blocked from indexing",
    learn: "https://developer.chrome.com/docs/lighthouse/seo/is-crawlable/",
    run: run,
}

/// The crawlers that are checked. `None` is any crawler without rules of its own.
const CRAWLERS: [Option<&str>; 5] = [
    None,
    Some("Googlebot"),
    Some("bingbot"),
    Some("DuckDuckBot"),
    Some("archive.org_bot"),
];

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let robots_txt = facts.get::<RobotsTxt>()?;
    let crawl_rules = CrawlRules {
        main: &*facts.get::<MainResource>()?,
        metas: &*facts.get::<Metas>()?,
        rules: robots_txt
            .0
            .content
            .as_deref()
            .filter(|content| !content.is_empty())
            .map(RobotsRules::parse),
    };
    let refusals = CRAWLERS.map(|crawler| (crawler, crawl_rules.refusals(crawler)));
    let blocked = || refusals.iter().filter(|(_, reasons)| !reasons.is_empty());
    if blocked().count() == CRAWLERS.len() {
        let general = &refusals[0].1;
        return Ok(Outcome::fail("All crawlers are blocked.")
            .with(Details::table(["Source", "Directive"], general.clone())));
    }
    let blocked_crawlers: Vec<&str> = blocked().filter_map(|(crawler, _)| *crawler).collect();
    if blocked().next().is_none() {
        return Ok(Outcome::pass());
    }
    let crawlers = match blocked_crawlers.as_slice() {
        [] => "Crawlers without rules of their own".to_owned(),
        names => names.join(", "),
    };
    Ok(Outcome::pass().warning(format!(
        "{crawlers} may not index the page, but at least one search engine may."
    )))
}

/// Everything that can block a crawler.
struct CrawlRules<'a> {
    main: &'a MainResource,
    metas: &'a Metas,
    rules: Option<RobotsRules>,
}

impl CrawlRules<'_> {
    /// Returns the sources and directives that block a crawler.
    fn refusals(&self, crawler: Option<&str>) -> Vec<[String; 2]> {
        let mut refusals = Vec::new();
        // An element for a specific crawler replaces the general one.
        let meta = crawler
            .and_then(|crawler| self.metas.named(&crawler.to_lowercase()))
            .or_else(|| self.metas.named("robots"));
        if let Some(meta) = meta.filter(|meta| self.blocks(&meta.content)) {
            refusals.push([format!("meta {}", meta.name), meta.content.clone()]);
        }
        for value in self.main.header("x-robots-tag") {
            let agent = user_agent(value);
            if agent.is_some() && agent != crawler {
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

    /// Returns whether an `unavailable_after` date was past when the page was requested: evaluation
    /// does not read the clock.
    fn is_past(&self, directive: &str) -> bool {
        let date = directive.strip_prefix("unavailable_after:");
        match (
            date.and_then(date::parse_s),
            self.main.0.exchange.wall_time_s,
        ) {
            (Some(date_s), Some(now_s)) => date_s < now_s,
            _ => false,
        }
    }
}

/// Returns the crawler that a header applies to: the word before its first colon, if no comma
/// precedes it.
fn user_agent(value: &str) -> Option<&str> {
    let end = value.find([',', ':']).filter(|end| *end > 0)?;
    let word = &value[..end];
    let is_word = value[end..].starts_with(':') && !word.eq_ignore_ascii_case("unavailable_after");
    is_word.then_some(word)
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::Verdict;

    use super::CHECK;
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
    fn an_indexable_page_passes() {
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
    fn a_page_that_is_blocked_for_all_crawlers_fails() {
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
    fn a_page_that_one_crawler_may_index_passes_with_a_warning() {
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
    fn an_expiry_date_counts_once_it_has_passed() {
        let dated =
            |date| with_meta("robots", &format!("unavailable_after: {date}")).verdict(CHECK);
        assert_eq!(dated("25 Jun 2010 15:00:00 PST"), Verdict::Fail);
        assert_eq!(dated("2999-01-01"), Verdict::Pass);
        assert_eq!(dated("soon"), Verdict::Pass);
    }

    #[test]
    fn a_header_for_another_crawler_is_ignored() {
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
