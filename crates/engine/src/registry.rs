//! The registry of all checks with their category and weight, and the function that runs them.

use plumbline_model::category::{CategoryId, CategoryResult, Fraction, Group};
use plumbline_model::check::{CheckResult, Verdict};

use crate::checks::{
    Check, HEADINGS, Outcome, accessibility, agentic, best_practices as bp, performance as perf,
    pwa, seo,
};
use crate::facts::Facts;

/// A category with its checks in the order of the report.
pub struct Category {
    pub id: CategoryId,
    pub entries: Vec<RegisteredCheck>,
}

/// A check with its weight and group in a category.
#[derive(Clone, Copy)]
pub struct RegisteredCheck {
    pub check: &'static Check,
    pub weight: f64,
    pub group: Group,
}

/// Returns all categories. Weights are those of Lighthouse 13.5, for PWA those of Lighthouse 11.7.1
/// (core/config/default-config.js).
pub fn categories() -> [Category; 6] {
    let category = |id, entries: &[(&'static Check, f64, Group)]| Category {
        id,
        entries: entries
            .iter()
            .map(|&(check, weight, group)| RegisteredCheck {
                check,
                weight,
                group,
            })
            .collect(),
    };
    [
        category(CategoryId::Performance, PERFORMANCE),
        Category {
            id: CategoryId::Accessibility,
            entries: accessibility::RULES
                .iter()
                .map(|rule| RegisteredCheck {
                    check: &rule.check,
                    weight: rule.weight,
                    group: rule.group,
                })
                .collect(),
        },
        category(CategoryId::BestPractices, BEST_PRACTICES),
        category(CategoryId::Seo, SEO),
        category(CategoryId::Pwa, PWA),
        category(CategoryId::AgenticBrowsing, AGENTIC_BROWSING),
    ]
}

/// The checks of the performance category. It is scored by its metrics, so these have weight 0.
const PERFORMANCE: &[(&Check, f64, Group)] = &[
    (&perf::cls_culprits_insight::CHECK, 0.0, Group::Insights),
    (&perf::dom_size_insight::CHECK, 0.0, Group::Insights),
    (&perf::forced_reflow_insight::CHECK, 0.0, Group::Insights),
    (&perf::inp_breakdown_insight::CHECK, 0.0, Group::Insights),
    (&perf::lcp_breakdown_insight::CHECK, 0.0, Group::Insights),
    (&perf::lcp_discovery_insight::CHECK, 0.0, Group::Insights),
    (&perf::viewport_insight::CHECK, 0.0, Group::Insights),
    (&perf::user_timings::CHECK, 0.0, Group::Diagnostics),
    (&perf::bootup_time::CHECK, 0.0, Group::Diagnostics),
    (
        &perf::mainthread_work_breakdown::CHECK,
        0.0,
        Group::Diagnostics,
    ),
    (&perf::long_tasks::CHECK, 0.0, Group::Diagnostics),
    (
        &perf::non_composited_animations::CHECK,
        0.0,
        Group::Diagnostics,
    ),
    (&perf::unsized_images::CHECK, 0.0, Group::Diagnostics),
    (&perf::bf_cache::CHECK, 0.0, Group::Diagnostics),
    (&perf::main_thread_tasks::CHECK, 0.0, Group::Experimental),
    (&perf::layout_shifts::CHECK, 0.0, Group::Experimental),
    (&perf::cache::CHECK, 0.0, Group::Insights),
    (&perf::document_latency::CHECK, 0.0, Group::Insights),
    (&perf::font_display::CHECK, 0.0, Group::Insights),
    (&perf::image_delivery::CHECK, 0.0, Group::Insights),
    (&perf::duplicated_javascript::CHECK, 0.0, Group::Insights),
    (&perf::legacy_javascript::CHECK, 0.0, Group::Insights),
    (&perf::modern_http::CHECK, 0.0, Group::Insights),
    (&perf::network_dependency_tree::CHECK, 0.0, Group::Insights),
    (&perf::render_blocking::CHECK, 0.0, Group::Insights),
    (&perf::third_parties::CHECK, 0.0, Group::Insights),
    (&perf::unminified_css::CHECK, 0.0, Group::Diagnostics),
    (&perf::unminified_javascript::CHECK, 0.0, Group::Diagnostics),
    (&perf::unused_css_rules::CHECK, 0.0, Group::Diagnostics),
    (&perf::unused_javascript::CHECK, 0.0, Group::Diagnostics),
    (&perf::total_byte_weight::CHECK, 0.0, Group::Diagnostics),
    (&perf::resource_summary::CHECK, 0.0, Group::Experimental),
    (&perf::script_treemap_data::CHECK, 0.0, Group::Experimental),
    (&perf::redirects::CHECK, 0.0, Group::Experimental),
    (&perf::server_response_time::CHECK, 0.0, Group::Experimental),
];

const BEST_PRACTICES: &[(&Check, f64, Group)] = &[
    (&bp::is_on_https::CHECK, 5.0, Group::TrustAndSafety),
    (&bp::redirects_http::CHECK, 1.0, Group::TrustAndSafety),
    (&bp::geolocation_on_start::CHECK, 1.0, Group::TrustAndSafety),
    (
        &bp::notification_on_start::CHECK,
        1.0,
        Group::TrustAndSafety,
    ),
    (&bp::csp_xss::CHECK, 0.0, Group::TrustAndSafety),
    (&bp::has_hsts::CHECK, 0.0, Group::TrustAndSafety),
    (&bp::origin_isolation::CHECK, 0.0, Group::TrustAndSafety),
    (
        &bp::clickjacking_mitigation::CHECK,
        0.0,
        Group::TrustAndSafety,
    ),
    (&bp::trusted_types_xss::CHECK, 0.0, Group::TrustAndSafety),
    (
        &bp::paste_preventing_inputs::CHECK,
        3.0,
        Group::UserExperience,
    ),
    (&bp::image_aspect_ratio::CHECK, 1.0, Group::UserExperience),
    (
        &bp::image_size_responsive::CHECK,
        1.0,
        Group::UserExperience,
    ),
    (&bp::doctype::CHECK, 1.0, Group::Compatibility),
    (&bp::charset::CHECK, 1.0, Group::Compatibility),
    (&bp::baseline::CHECK, 0.0, Group::Compatibility),
    (&bp::js_libraries::CHECK, 0.0, Group::General),
    (&bp::deprecations::CHECK, 5.0, Group::General),
    (&bp::third_party_cookies::CHECK, 5.0, Group::General),
    (&bp::errors_in_console::CHECK, 1.0, Group::General),
    (&bp::valid_source_maps::CHECK, 0.0, Group::General),
    (&bp::inspector_issues::CHECK, 1.0, Group::General),
];

const SEO: &[(&Check, f64, Group)] = &[
    (&seo::is_crawlable::CHECK, 93.0 / 23.0, Group::Crawling),
    (accessibility::rule("document-title"), 1.0, Group::Content),
    (&seo::meta_description::CHECK, 1.0, Group::Content),
    (&seo::http_status_code::CHECK, 1.0, Group::Crawling),
    (&seo::link_text::CHECK, 1.0, Group::Content),
    (&seo::crawlable_anchors::CHECK, 1.0, Group::Crawling),
    (&seo::robots_txt::CHECK, 1.0, Group::Crawling),
    (accessibility::rule("image-alt"), 1.0, Group::Content),
    (&seo::hreflang::CHECK, 1.0, Group::Content),
    (&seo::canonical::CHECK, 1.0, Group::Content),
];

const PWA: &[(&Check, f64, Group)] = &[
    (&pwa::installable_manifest::CHECK, 2.0, Group::Installable),
    (&pwa::splash_screen::CHECK, 1.0, Group::Optimized),
    (&pwa::themed_omnibox::CHECK, 1.0, Group::Optimized),
    (&pwa::content_width::CHECK, 1.0, Group::Optimized),
    (&pwa::viewport::CHECK, 2.0, Group::Optimized),
    (&pwa::maskable_icon::CHECK, 1.0, Group::Optimized),
];

const AGENTIC_BROWSING: &[(&Check, f64, Group)] = &[
    (
        &agentic::agent_accessibility_tree::CHECK,
        1.0,
        Group::AgentAccessibility,
    ),
    (
        &agentic::cumulative_layout_shift::CHECK,
        1.0,
        Group::AgentAccessibility,
    ),
    (&agentic::webmcp_form_coverage::CHECK, 1.0, Group::WebMcp),
    (&agentic::webmcp_registered_tools::CHECK, 1.0, Group::WebMcp),
    (&agentic::webmcp_schema_validity::CHECK, 1.0, Group::WebMcp),
    (&agentic::llms_txt::CHECK, 1.0, Group::AgentDiscoverability),
    (
        &agentic::ard_schema::CHECK,
        1.0,
        Group::AgentDiscoverability,
    ),
];

/// Runs every check on a visit. It never fails: a check that cannot be measured has that verdict.
pub fn judge(facts: &Facts) -> Vec<CategoryResult> {
    categories()
        .into_iter()
        .map(|category| {
            let checks: Vec<CheckResult> = category
                .entries
                .iter()
                .map(|entry| entry.result(facts))
                .collect();
            CategoryResult {
                id: category.id,
                title: category.id.title().to_owned(),
                score: score(&checks),
                fraction: category
                    .id
                    .is_shown_as_fraction()
                    .then(|| Fraction::of(&checks)),
                checks,
            }
        })
        .collect()
}

impl RegisteredCheck {
    fn result(&self, facts: &Facts) -> CheckResult {
        let check = self.check;
        let outcome = if facts.is_stopped() {
            Outcome::could_not_measure("the evaluation was stopped".to_owned())
        } else {
            (check.run)(facts)
                .unwrap_or_else(|missing| Outcome::could_not_measure(missing.to_string()))
        };
        let counts = match outcome.verdict {
            Verdict::Pass | Verdict::Fail | Verdict::CouldNotMeasure => true,
            Verdict::NotApplicable | Verdict::Informative => false,
        };
        let title = match outcome.verdict {
            Verdict::Fail => check.title_fail,
            _ => check.title_pass,
        };
        CheckResult {
            id: check.id.to_owned(),
            title: title.to_owned(),
            verdict: outcome.verdict,
            score: outcome.score.or_else(|| outcome.verdict.score()),
            weight: if counts { self.weight } else { 0.0 },
            group: self.group,
            summary: outcome.summary,
            why: check.why(),
            fix: outcome.fix.unwrap_or_else(|| check.fix()),
            learn_more: check.learn_more.map(str::to_owned),
            details: outcome.details,
            savings: outcome.savings,
            figure: outcome.figure,
            warnings: outcome.warnings,
        }
    }
}

/// Returns the weighted mean of the checks, rounded to two decimals like Lighthouse
/// (core/scoring.js), in points.
fn score(checks: &[CheckResult]) -> Option<u8> {
    let mut sum = 0.0;
    let mut weight = 0.0;
    for check in checks.iter().filter(|check| check.weight > 0.0) {
        sum += check.score? * check.weight;
        weight += check.weight;
    }
    (weight > 0.0).then(|| (sum / weight * 100.0).round() as u8)
}

/// Returns the reference documentation of all checks, generated from their doc comments.
pub fn reference_markdown() -> String {
    let mut text = String::from(
        "# Checks\n\n\
         Generated from the doc comments in `crates/engine/src/checks`; do not edit.\n\n\
         Ids and weights are those of Lighthouse 13.5 (PWA: 11.7.1). A check passes, fails, is not\n\
         applicable, is informative, or could not be measured. A category's score is the weighted mean\n\
         of the checks that pass or fail; a weighted check that could not be measured leaves\n\
         the category without a score.\n",
    );
    for category in categories() {
        text.push_str(&format!("\n## {}\n", category.id.title()));
        for entry in &category.entries {
            let weight = (entry.weight * 100.0).round() / 100.0;
            text.push_str(&format!(
                "\n### {}\n\n{} · weight {weight} · {}\n\n",
                entry.check.id,
                entry.check.title_pass,
                entry.group.title(),
            ));
            for heading in HEADINGS {
                let section = entry.check.section(heading);
                text.push_str(&format!("- **{heading}:** {section}\n"));
            }
            if let Some(url) = entry.check.learn_more {
                text.push_str(&format!("- **Learn more:** <{url}>\n"));
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use plumbline_bundle::Bundle;
    use plumbline_catalog::Mode;

    use super::*;
    use crate::checks::testing::{Visit, verdict_without_evidence};

    fn judged(bundle: &Bundle, mode: Mode) -> Vec<CategoryResult> {
        judge(&Facts::new(bundle, mode))
    }

    fn entries() -> Vec<RegisteredCheck> {
        categories()
            .into_iter()
            .flat_map(|category| category.entries)
            .collect()
    }

    #[test]
    fn every_check_is_documented_under_all_headings() {
        for RegisteredCheck { check, .. } in entries() {
            for heading in HEADINGS {
                assert!(!check.section(heading).is_empty(), "{} {heading}", check.id);
            }
            assert!(check.title_pass.chars().count() <= 80, "{}", check.id);
            assert!(check.title_fail.chars().count() <= 80, "{}", check.id);
        }
    }

    #[test]
    fn checks_refer_to_a_page_with_more_except_where_lighthouse_does_not() {
        const WITHOUT_PAGE: [&str; 4] = [
            "inspector-issues",
            "main-thread-tasks",
            "resource-summary",
            "script-treemap-data",
        ];
        for RegisteredCheck { check, .. } in entries() {
            match check.learn_more {
                Some(url) => assert!(url.starts_with("https://"), "{}", check.id),
                None => assert!(WITHOUT_PAGE.contains(&check.id), "{}", check.id),
            }
        }
    }

    #[test]
    fn no_check_is_listed_twice_in_a_category() {
        for category in categories() {
            let ids: BTreeSet<_> = category
                .entries
                .iter()
                .map(|entry| entry.check.id)
                .collect();
            assert_eq!(
                ids.len(),
                category.entries.len(),
                "{}",
                category.id.as_str()
            );
        }
    }

    #[test]
    fn weights_sum_up_to_those_of_lighthouse() {
        let sums = categories().map(|category| {
            let sum: f64 = category.entries.iter().map(|entry| entry.weight).sum();
            (category.id.as_str(), sum.round())
        });
        let expected = [
            ("performance", 0.0),
            ("accessibility", 416.0),
            ("best-practices", 27.0),
            ("seo", 13.0),
            ("pwa", 8.0),
            ("agentic-browsing", 7.0),
        ];
        assert_eq!(sums, expected);
    }

    /// The only check that compares nothing but the URLs of the visit.
    const READS_NO_EVIDENCE: &str = "redirects-http";

    #[test]
    fn a_check_that_reads_evidence_cannot_be_measured_without_it() {
        for RegisteredCheck { check, .. } in entries() {
            let verdict = verdict_without_evidence(*check);
            assert_eq!(
                verdict == Verdict::CouldNotMeasure,
                check.id != READS_NO_EVIDENCE,
                "{} says {verdict:?}",
                check.id
            );
        }
    }

    #[test]
    fn a_missing_artifact_affects_only_its_checks_and_the_score_of_their_category() {
        let bundle = Visit::new()
            .with("axe", "{}")
            .without("metas", "the page hung")
            .bundle();
        let results = judged(&bundle, Mode::Mobile);
        let [_, accessibility, _, seo, ..] = &results[..] else {
            panic!("six categories");
        };
        assert_eq!(accessibility.score, Some(100));
        assert_eq!(seo.score, None);
        let of = |id: &str| seo.checks.iter().find(|check| check.id == id).unwrap();
        assert_eq!(of("meta-description").verdict, Verdict::CouldNotMeasure);
        assert_eq!(
            of("meta-description").summary.as_deref(),
            Some("`metas` was not gathered: the page hung")
        );
        assert_eq!(of("http-status-code").verdict, Verdict::Pass);
    }

    #[test]
    fn a_score_is_the_weighted_mean_of_the_checks_that_count() {
        let axe = r#"{"violations": [{"id": "image-alt"}], "notApplicable": ["label", "list"]}"#;
        let bundle = Visit::new().with("axe", axe).bundle();
        let accessibility = &judged(&bundle, Mode::Mobile)[1];
        let weight: f64 = accessibility.checks.iter().map(|check| check.weight).sum();
        let expected = ((weight - 10.0) / weight * 100.0).round() as u8;
        assert_eq!(accessibility.score, Some(expected));
    }

    #[test]
    fn the_same_bundle_gives_the_same_bytes_which_can_be_parsed() {
        let bundle = Visit::new().with("axe", "{}").with("metas", "[]").bundle();
        let first = serde_json::to_string(&judged(&bundle, Mode::Desktop)).unwrap();
        let second = serde_json::to_string(&judged(&bundle, Mode::Desktop)).unwrap();
        assert_eq!(first, second);
        let read: Vec<CategoryResult> = serde_json::from_str(&first).unwrap();
        assert_eq!(read, judged(&bundle, Mode::Desktop));
    }

    #[test]
    fn the_reference_equals_the_committed_file() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/checks.md");
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&path, reference_markdown()).unwrap();
        }
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            committed == reference_markdown(),
            "docs/checks.md is out of date: run `make bless`"
        );
    }
}
