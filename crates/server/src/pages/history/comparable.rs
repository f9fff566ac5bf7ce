//! The audits of a history that can be compared.

use super::AuditRow;

/// An audit that can be selected for comparison.
pub(super) struct ComparisonOption {
    pub(super) audit_id: String,
    pub(super) label: String,
}

/// Returns the measured audits and the indexes of the two that are preselected, before and after:
/// the newest two with the same conditions.
pub(super) fn comparable(past: &[AuditRow]) -> (Vec<ComparisonOption>, [usize; 2]) {
    let measured: Vec<(&AuditRow, ComparisonOption)> = past
        .iter()
        .filter_map(|audit| {
            let (scores, audit_id) = (audit.scores.as_ref()?, audit.audit_id.clone()?);
            let performance = scores.first().map_or("–", |(_, score)| score);
            // A list cuts long texts: the parts in which audits of one page differ come first.
            let parts = [audit.when.as_str(), performance]
                .into_iter()
                .chain(audit.labels.iter().map(String::as_str))
                .chain([audit.conditions.as_str()]);
            let label = parts.collect::<Vec<_>>().join(" · ");
            Some((audit, ComparisonOption { audit_id, label }))
        })
        .collect();
    let conditions: Vec<&str> = measured
        .iter()
        .map(|(a, _)| a.conditions.as_str())
        .collect();
    let pair = (0..conditions.len()).find_map(|after| {
        let mut earlier = conditions[after + 1..].iter();
        let offset = earlier.position(|other| *other == conditions[after])?;
        Some([after + 1 + offset, after])
    });
    let choices = measured.into_iter().map(|(_, choice)| choice);
    (choices.collect(), pair.unwrap_or([1, 0]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_two_audits_with_the_same_conditions_are_preselected() {
        let row = |id: &str, conditions: &str| AuditRow {
            href: None,
            audit_id: Some(id.to_owned()),
            url: String::new(),
            when: String::new(),
            conditions: conditions.to_owned(),
            scores: Some(Vec::new()),
            state: String::new(),
            reason: None,
            redirected_to: None,
            error_status: None,
            labels: Vec::new(),
            kind: None,
        };
        for (conditions, expected) in [
            (&["a", "b", "a", "b"][..], [2, 0]),
            (&["c", "a", "b", "a"][..], [3, 1]),
            (&["a", "b"][..], [1, 0]),
            (&["a"][..], [1, 0]),
        ] {
            let rows: Vec<_> = conditions.iter().map(|text| row("x", text)).collect();
            assert_eq!(comparable(&rows).1, expected, "{conditions:?}");
        }
    }
}
