//! Chooses the controls of a page that inputs are made on.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

use plumbline_bundle::ControlKind;
use serde::Deserialize;

/// A visible control, as `controls.js` describes it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Control {
    pub(super) kind: ControlKind,
    pub(super) name: String,
    pub(super) selector: String,
    pub(super) snippet: String,
    /// The position in the document.
    pub(super) path: String,
    /// Equal for controls that repeat in a list.
    pub(super) group: String,
    /// True if the control is visible without scrolling.
    pub(super) in_viewport: bool,
    pub(super) top: f64,
    pub(super) left: f64,
}

/// Number of controls at the same place of the same markup from which on they count as a list.
const LIST_LENGTH: usize = 4;

/// Returns up to `limit` controls: one of each kind in turn, and within a kind those first that are
/// visible without scrolling. Of controls that repeat, in a list or by their name, one is chosen.
pub(super) fn choose(controls: &[Control], limit: usize) -> Vec<Control> {
    let mut order: Vec<&Control> = controls.iter().collect();
    order.sort_by(|a, b| {
        let by_position = a.top.total_cmp(&b.top).then(a.left.total_cmp(&b.left));
        let key = |control: &Control| Reverse(control.in_viewport);
        key(a).cmp(&key(b)).then(by_position)
    });
    let mut lengths: HashMap<&str, usize> = HashMap::new();
    for control in controls {
        *lengths.entry(&control.group).or_default() += 1;
    }
    let is_list = |group: &str| {
        lengths
            .get(group)
            .is_some_and(|length| *length >= LIST_LENGTH)
    };
    let (mut groups, mut names) = (HashSet::new(), HashSet::new());
    let mut by_kind: BTreeMap<ControlKind, Vec<&Control>> = BTreeMap::new();
    for control in order {
        let name = (control.kind, control.name.to_lowercase());
        let is_repeated = (is_list(&control.group) && groups.contains(&control.group))
            || (!name.1.is_empty() && names.contains(&name));
        // Tabs and the buttons of a consent dialog are alike, and each does something else.
        let are_distinct = matches!(control.kind, ControlKind::Tab | ControlKind::Consent);
        if is_repeated && !are_distinct {
            continue;
        }
        groups.insert(&control.group);
        names.insert(name);
        by_kind.entry(control.kind).or_default().push(control);
    }
    let longest = by_kind.values().map(Vec::len).max().unwrap_or(0);
    (0..longest)
        .flat_map(|turn| by_kind.values().filter_map(move |kind| kind.get(turn)))
        .take(limit)
        .map(|control| (*control).clone())
        .collect()
}

/// Returns the index of a control among those of the page when it was loaded again: at the same
/// place of the document, or else with the same kind, selector and name.
pub(super) fn find_again(control: &Control, controls: &[Control]) -> Option<usize> {
    let is_same =
        |other: &Control| other.kind == control.kind && other.selector == control.selector;
    controls
        .iter()
        .position(|other| is_same(other) && other.path == control.path)
        .or_else(|| {
            controls
                .iter()
                .position(|other| is_same(other) && other.name == control.name)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn control(kind: ControlKind, name: &str, top: f64) -> Control {
        Control {
            kind,
            name: name.to_owned(),
            selector: format!("#{name}"),
            snippet: String::new(),
            path: format!("1,HTML,{name}"),
            group: name.to_owned(),
            in_viewport: top < 800.0,
            top,
            left: 0.0,
        }
    }

    fn names(controls: &[Control], limit: usize) -> Vec<String> {
        let chosen = choose(controls, limit).into_iter();
        chosen.map(|control| control.name).collect()
    }

    #[test]
    fn every_kind_is_chosen_before_a_second_control_of_one() {
        let controls = [
            control(ControlKind::Button, "first", 10.0),
            control(ControlKind::Button, "second", 20.0),
            control(ControlKind::Anchor, "anchor", 5.0),
            control(ControlKind::Menu, "menu", 700.0),
            control(ControlKind::Consent, "accept", 790.0),
        ];
        let all = ["accept", "menu", "first", "anchor", "second"];
        assert_eq!(names(&controls, 8), all);
        assert_eq!(names(&controls, 3), all[..3]);
        assert!(names(&[], 8).is_empty());
    }

    #[test]
    fn what_is_visible_without_scrolling_comes_first() {
        let controls = [
            control(ControlKind::Button, "below", 1200.0),
            control(ControlKind::Button, "lower", 500.0),
            control(ControlKind::Button, "upper", 100.0),
        ];
        assert_eq!(names(&controls, 8), ["upper", "lower", "below"]);
    }

    #[test]
    fn of_a_repeated_list_one_control_is_chosen() {
        let mut rows = [
            control(ControlKind::Button, "Add apples", 10.0),
            control(ControlKind::Button, "Add pears", 20.0),
            control(ControlKind::Button, "Add nuts", 30.0),
            control(ControlKind::Button, "Add oats", 40.0),
        ];
        for row in &mut rows {
            row.group = "HTML,BODY,UL,LI,BUTTON|add".to_owned();
        }
        assert_eq!(names(&rows, 8), ["Add apples"]);
        let mut tabs = rows.clone();
        for tab in &mut tabs {
            tab.kind = ControlKind::Tab;
        }
        assert_eq!(names(&tabs, 8).len(), 4);
        // Three buttons in a row are no list.
        assert_eq!(names(&rows[..3], 8).len(), 3);
    }

    #[test]
    fn of_controls_with_the_same_name_one_is_chosen() {
        let mut second = control(ControlKind::Button, "More", 20.0);
        second.group = "elsewhere".to_owned();
        let mut without_name = control(ControlKind::Button, "", 30.0);
        without_name.group = "icon".to_owned();
        let controls = [
            control(ControlKind::Button, "more", 10.0),
            second,
            control(ControlKind::Button, "", 5.0),
            without_name,
        ];
        assert_eq!(names(&controls, 8), ["", "more", ""]);
    }

    #[test]
    fn a_control_is_found_again_where_it_was_or_by_its_name() {
        let button = control(ControlKind::Button, "more", 10.0);
        let mut moved = button.clone();
        moved.path = "2,HTML,more".to_owned();
        let mut renamed = button.clone();
        renamed.name = "less".to_owned();
        let other = control(ControlKind::Button, "other", 10.0);
        let all = [other.clone(), moved.clone(), renamed];
        assert_eq!(find_again(&button, &all), Some(2));
        assert_eq!(find_again(&button, &all[..2]), Some(1));
        assert_eq!(find_again(&button, &[other]), None);
        moved.name = "less".to_owned();
        assert_eq!(find_again(&button, &[moved]), None);
    }
}
