//! Who may take which location's audits.

/// The locations whose audits an agent at `stands_at` may take; `None` is all of them.
///
/// Its own first. Others' only where the operator lets locations be simulated, and only while nobody
/// who may work stands there.
pub(crate) fn may_take(
    stands_at: &str,
    locations: &[String],
    stood_at: &[String],
    simulate: bool,
) -> Option<Vec<String>> {
    if !simulate {
        return Some(vec![stands_at.to_owned()]);
    }
    let is_anothers = |place: &&String| place.as_str() != stands_at && stood_at.contains(place);
    if !locations.iter().any(|place| is_anothers(&place)) {
        // Also what was accepted for a place that the catalog no longer has.
        return None;
    }
    let free = locations.iter().filter(|place| !is_anothers(place));
    let mut places: Vec<_> = free.cloned().collect();
    if !places.iter().any(|place| place == stands_at) {
        places.push(stands_at.to_owned());
    }
    Some(places)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(ToString::to_string).collect()
    }

    fn taken(stood_at: &[&str], simulate: bool) -> Option<Vec<String>> {
        let all = names(&["us-tx", "eu", "asia"]);
        may_take("eu", &all, &names(stood_at), simulate)
    }

    #[test]
    fn who_is_alone_takes_everything() {
        assert_eq!(taken(&["eu"], true), None);
        assert_eq!(taken(&[], true), None);
    }

    #[test]
    fn a_place_where_somebody_stands_is_left_to_them() {
        assert_eq!(taken(&["eu", "asia"], true), Some(names(&["us-tx", "eu"])));
        let all = Some(names(&["eu"]));
        assert_eq!(taken(&["us-tx", "asia"], true), all);
    }

    #[test]
    fn nothing_is_simulated_where_the_operator_forbids_it() {
        assert_eq!(taken(&["eu"], false), Some(names(&["eu"])));
    }

    #[test]
    fn a_place_that_no_catalog_has_is_no_ones() {
        assert_eq!(taken(&["eu", "moon"], true), None);
    }
}
