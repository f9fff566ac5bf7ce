use plumbline_model::check::Details;

use crate::checks::{Outcome, check, count};
use crate::facts::{Facts, LlmsTxt, Missing};

check! {
    /// # What
    /// The site's llms.txt, if any, follows the recommendations of llmstxt.org.
    ///
    /// # Why
    /// Language models and agents read llms.txt to learn what a site offers and where. They cannot
    /// use a file without a title or without links.
    ///
    /// # Scored
    /// Fails when there is no response, when the status is 500 or above, or when the file has no
    /// first-level heading, no Markdown link, or fewer than 50 characters. Not applicable without a
    /// file (status 400 to 499).
    ///
    /// # Fix
    /// Begin the file with a heading such as `# Title`, and list the important pages as Markdown
    /// links.
    ///
    /// # Source
    /// Lighthouse 13.5, `agentic/llms-txt`.
    id: "llms-txt",
    pass: "llms.txt follows the recommendations",
    fail: "llms.txt does not follow the recommendations",
    learn: "https://developer.chrome.com/docs/lighthouse/agentic-browsing/llms-txt",
    run: run,
}

/// The number of UTF-16 code units below which a file is too short to be useful.
const MIN_LENGTH: usize = 50;

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let LlmsTxt(file) = &*facts.get::<LlmsTxt>()?;
    if let Some(error) = &file.error {
        return Ok(Outcome::fail(format!(
            "llms.txt could not be fetched: {error}."
        )));
    }
    match file.status {
        None => return Ok(Outcome::fail("llms.txt could not be fetched.")),
        Some(status @ 500..) => {
            return Ok(Outcome::fail(format!(
                "The request for llms.txt failed with status {status}."
            )));
        }
        Some(400..) => return Ok(Outcome::not_applicable()),
        Some(_) => {}
    }
    let Some(content) = &file.content else {
        return Err(Missing("llms.txt has no content".to_owned()));
    };
    let problems: Vec<[String; 1]> = [
        (
            has_heading(content),
            "There is no heading such as `# Title`.",
        ),
        (has_link(content), "There is no Markdown link."),
        (
            content.encode_utf16().count() >= MIN_LENGTH,
            "The file is very short.",
        ),
    ]
    .into_iter()
    .filter(|(is_met, _)| !is_met)
    .map(|(_, problem)| [problem.to_owned()])
    .collect();
    if problems.is_empty() {
        return Ok(Outcome::pass());
    }
    let summary = count(problems.len(), "problem", "problems");
    Ok(Outcome::fail(summary).with(Details::table(["Problem"], problems)))
}

/// Returns whether a `#` at the start of a line is followed by blank space and further text.
/// Lighthouse's pattern for it lets the blank space contain line breaks.
fn has_heading(content: &str) -> bool {
    let mut is_line_start = true;
    for (at, c) in content.char_indices() {
        if c == '#' && is_line_start && is_text_after_space(&content[at + 1..]) {
            return true;
        }
        is_line_start = is_line_break(c) || (is_line_start && is_space(c));
    }
    false
}

/// Returns whether a text starts with blank space that is followed by a character on some line.
fn is_text_after_space(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(is_space) && chars.any(|c| !is_line_break(c))
}

/// Returns whether a line contains `[text](target)`.
fn has_link(content: &str) -> bool {
    content.split(is_line_break).any(|line| {
        let Some(start) = line.find('[') else {
            return false;
        };
        let after = line[start + 1..].char_indices().nth(1);
        let Some(after) = after.map(|(offset, _)| start + 1 + offset) else {
            return false;
        };
        let Some(middle) = line[after..].find("](") else {
            return false;
        };
        let target = &line[after + middle + 2..];
        target.rfind(')').is_some_and(|end| end > 0)
    })
}

/// Returns whether JavaScript's `.` does not match the character.
fn is_line_break(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{2028}' | '\u{2029}')
}

/// Returns whether JavaScript's `\s` matches the character.
fn is_space(c: char) -> bool {
    c == '\u{feff}' || (c.is_whitespace() && c != '\u{85}')
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::Verdict;
    use serde_json::json;

    use super::*;
    use crate::checks::testing::{Visit, verdict_without_evidence};

    fn verdict(file: &serde_json::Value) -> Verdict {
        let visit = Visit::new().with("llms-txt", &file.to_string());
        visit.verdict(CHECK)
    }

    const GOOD: &str = "# Example\n\n> A shop.\n\n- [Products](https://example.test/products.md)\n";

    #[test]
    fn a_file_with_heading_and_link_passes() {
        assert_eq!(
            verdict(&json!({"status": 200, "content": GOOD})),
            Verdict::Pass
        );
    }

    #[test]
    fn each_problem_is_listed() {
        let outcome = |content: &str| {
            let file = json!({"status": 200, "content": content}).to_string();
            Visit::new().with("llms-txt", &file).judge(CHECK)
        };
        let long = "x".repeat(50);
        for (content, problems) in [
            (String::new(), 3),
            (long.clone(), 2),
            (format!("# {long}"), 1),
            (format!("[a](b){long}"), 1),
            ("# T [a](b)".to_owned(), 1),
        ] {
            let outcome = outcome(&content);
            assert_eq!(outcome.verdict, Verdict::Fail);
            let details = outcome.details.map(|details| details.len());
            assert_eq!(details, Some(problems), "{content}");
        }
    }

    #[test]
    fn headings_are_found_as_by_lighthouse() {
        for content in [
            "# a",
            "x\n# a",
            "\u{feff}# a",
            "  \n #\ta",
            "#\na",
            "x\r# a",
            "#  ",
            "# \u{3000}",
        ] {
            assert!(has_heading(content), "{content:?}");
        }
        for content in ["", "#", "#a", "## a", "x # a", "# ", "#\n", "#\n\n", "# \n"] {
            assert!(!has_heading(content), "{content:?}");
        }
    }

    #[test]
    fn links_are_found_as_by_lighthouse() {
        for content in ["[a](b)", "x\n[[a]](b)", "[](a](b)", "é [é](é) x"] {
            assert!(has_link(content), "{content:?}");
        }
        for content in [
            "", "[a](b", "[](b)", "[a]()", "[a] (b)", "[a\n](b)", "](b)", "[",
        ] {
            assert!(!has_link(content), "{content:?}");
        }
    }

    #[test]
    fn a_site_without_the_file_is_not_applicable() {
        assert_eq!(verdict(&json!({"status": 404})), Verdict::NotApplicable);
    }

    #[test]
    fn a_file_that_cannot_be_fetched_fails() {
        assert_eq!(verdict(&json!({"status": 503})), Verdict::Fail);
        assert_eq!(verdict(&json!({"error": "timed out"})), Verdict::Fail);
        assert_eq!(verdict(&json!({})), Verdict::Fail);
    }

    #[test]
    fn without_content_it_cannot_be_measured() {
        assert_eq!(verdict(&json!({"status": 304})), Verdict::CouldNotMeasure);
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
    }
}
