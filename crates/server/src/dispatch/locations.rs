//! Decides from which locations an agent may lease audits.

/// Returns the locations whose audits an agent at `agent_location` may lease; `None` means all.
///
/// An agent may always lease audits of its own location. It may lease those of other locations only
/// where the operator allows simulation, and only while no agent is active there.
pub(super) fn leasable_locations(
    agent_location: &str,
    locations: &[String],
    active_locations: &[String],
    simulate: bool,
) -> Option<Vec<String>> {
    if !simulate {
        return Some(vec![agent_location.to_owned()]);
    }
    let has_own_agent = |location: &&String| {
        location.as_str() != agent_location && active_locations.contains(location)
    };
    if !locations.iter().any(|location| has_own_agent(&location)) {
        // This includes audits that were accepted for a location that the catalog no longer has.
        return None;
    }
    let free = locations.iter().filter(|location| !has_own_agent(location));
    let mut leasable: Vec<_> = free.cloned().collect();
    if !leasable.iter().any(|location| location == agent_location) {
        leasable.push(agent_location.to_owned());
    }
    Some(leasable)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(ToString::to_string).collect()
    }

    fn leasable(active_locations: &[&str], simulate: bool) -> Option<Vec<String>> {
        let all = names(&["us-tx", "eu", "asia"]);
        leasable_locations("eu", &all, &names(active_locations), simulate)
    }

    #[test]
    fn a_single_agent_leases_audits_of_all_locations() {
        assert_eq!(leasable(&["eu"], true), None);
        assert_eq!(leasable(&[], true), None);
    }

    #[test]
    fn a_location_with_an_active_agent_is_left_to_that_agent() {
        assert_eq!(
            leasable(&["eu", "asia"], true),
            Some(names(&["us-tx", "eu"]))
        );
        let own = Some(names(&["eu"]));
        assert_eq!(leasable(&["us-tx", "asia"], true), own);
    }

    #[test]
    fn nothing_is_simulated_where_the_operator_forbids_it() {
        assert_eq!(leasable(&["eu"], false), Some(names(&["eu"])));
    }

    #[test]
    fn an_active_location_that_is_not_in_the_catalog_is_ignored() {
        assert_eq!(leasable(&["eu", "moon"], true), None);
    }
}
