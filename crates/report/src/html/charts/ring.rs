use crate::html::figures::Grade;

/// A score as a ring with the number in it. The text beside it names the category.
pub(crate) fn ring(label: &str, score: Option<u8>) -> String {
    let grade = Grade::of_score(score);
    let (class, word) = (grade.class(), grade.word());
    let said = match score {
        Some(score) => format!("{label}: {score} of 100, {word}"),
        None => format!("{label}: {word}"),
    };
    // The path counts 100 round the circle, so a score is its own length; a cap would add to a zero.
    let arc = match score {
        Some(0) | None => String::new(),
        Some(score) => format!(
            r#"<circle class="arc" cx="44" cy="44" r="38" pathLength="100" stroke-dasharray="{score} 100" transform="rotate(-90 44 44)"/>"#
        ),
    };
    let number = score.map_or("–".to_owned(), |score| score.to_string());
    format!(
        r#"<svg class="ring {class}" viewBox="0 0 88 88" role="img" aria-label="{said}"><circle class="track" cx="44" cy="44" r="38"/>{arc}<text x="44" y="44" dy=".35em">{number}</text></svg>"#
    )
}
