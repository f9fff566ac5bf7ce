use plumbline_model::category::Fraction;

use crate::html::figures::Grade;

/// Draws a score as a ring with the number in it. The category is named next to it.
pub(crate) fn ring(label: &str, score: Option<u8>) -> String {
    let grade = Grade::of_score(score);
    let (class, grade) = (grade.class(), grade.label());
    let aria_label = match score {
        Some(score) => format!("{label}: {score} of 100, {grade}"),
        None => format!("{label}: {grade}"),
    };
    // The circumference is declared as 100, so the score is the length of the arc. A score of 0 has
    // no arc, because its line cap would be visible.
    let arc = match score {
        Some(0) | None => String::new(),
        Some(score) => format!(
            r#"<circle class="arc" cx="44" cy="44" r="38" pathLength="100" stroke-dasharray="{score} 100" transform="rotate(-90 44 44)"/>"#
        ),
    };
    let number = score.map_or("–".to_owned(), |score| score.to_string());
    svg(class, &aria_label, &arc, &number)
}

/// Draws the passed checks of a category as a ring with a fraction in it.
pub(crate) fn fraction_ring(label: &str, fraction: Fraction) -> String {
    let grade = Grade::of_fraction(fraction);
    let (class, grade, Fraction { passed, of }) = (grade.class(), grade.label(), fraction);
    let aria_label = format!("{label}: {passed} of {of} checks passed, {grade}");
    let arc = match passed {
        0 => String::new(),
        _ => format!(
            r#"<circle class="arc" cx="44" cy="44" r="38" pathLength="{of}" stroke-dasharray="{passed} {of}" transform="rotate(-90 44 44)"/>"#
        ),
    };
    svg(class, &aria_label, &arc, &fraction.to_string())
}

fn svg(class: &str, aria_label: &str, arc: &str, text: &str) -> String {
    format!(
        r#"<svg class="ring {class}" viewBox="0 0 88 88" role="img" aria-label="{aria_label}"><circle class="track" cx="44" cy="44" r="38"/>{arc}<text x="44" y="44" dy=".35em">{text}</text></svg>"#
    )
}
