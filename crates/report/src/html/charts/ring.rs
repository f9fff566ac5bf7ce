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
    format!(
        r#"<svg class="ring {class}" viewBox="0 0 88 88" role="img" aria-label="{aria_label}"><circle class="track" cx="44" cy="44" r="38"/>{arc}<text x="44" y="44" dy=".35em">{number}</text></svg>"#
    )
}
