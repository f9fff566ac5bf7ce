use plumbline_catalog::Mode;

use crate::checks::{Outcome, check};
use crate::facts::{Facts, Missing, PageProperties};

check! {
    /// # What
    /// The content is as wide as the viewport.
    ///
    /// # Why
    /// Wider content requires zooming out or horizontal scrolling.
    ///
    /// # Scored
    /// Fails on mobile devices when the viewport is not as wide as the window. Not applicable on
    /// desktop.
    ///
    /// # Fix
    /// Set `<meta name="viewport" content="width=device-width">` and let no element be wider than
    /// the viewport.
    ///
    /// # Source
    /// Lighthouse 11.7.1, `content-width`.
    id: "content-width",
    pass: "Content is sized correctly for the viewport",
    fail: "Content is wider than the viewport",
    learn: "https://developer.chrome.com/docs/lighthouse/pwa/content-width/",
    run: run,
}

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let page = facts.get::<PageProperties>()?;
    Ok(if facts.mode == Mode::Desktop {
        Outcome::not_applicable()
    } else if page.inner_width == page.outer_width {
        Outcome::pass()
    } else {
        Outcome::fail(format!(
            "The viewport is {} pixels wide, the window {}.",
            page.inner_width, page.outer_width
        ))
    })
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::Verdict;

    use super::CHECK;
    use crate::checks::testing::{Visit, verdict_without_evidence};

    #[test]
    fn on_a_mobile_device_the_widths_must_match() {
        let visit = |page| Visit::new().with("page", page);
        let fitting = r#"{"innerWidth": 412, "outerWidth": 412}"#;
        let wide = r#"{"innerWidth": 980, "outerWidth": 412}"#;
        assert_eq!(visit(fitting).verdict(CHECK), Verdict::Pass);
        assert_eq!(visit(wide).verdict(CHECK), Verdict::Fail);
        assert_eq!(visit(wide).desktop().verdict(CHECK), Verdict::NotApplicable);
    }

    #[test]
    fn without_the_page_it_cannot_be_measured() {
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
    }
}
