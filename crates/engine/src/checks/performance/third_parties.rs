use std::collections::BTreeMap;

use plumbline_entities as entities;
use plumbline_trace::{Resource, Trace};

use crate::checks::{Cell, Findings, Outcome, Row, Unit, check, count};
use crate::facts::{Facts, Missing, TRACE, loaded};

check! {
    /// # What
    /// Who else than the site itself sends files to this page.
    ///
    /// # Why
    /// The code of others is the part of a page that its owner does not control.
    ///
    /// # Scored
    /// Weighs nothing, judges nothing. Lists organisations that sent something, by bytes, with their files.
    ///
    /// # Fix
    /// Ask of each whether it is worth its cost; load the rest later, or from your own host.
    ///
    /// # Source
    /// Lighthouse 13.5, `third-parties-insight`; who owns which host: third-party-web.
    id: "third-parties-insight",
    pass: "Third parties on this page",
    fail: "Third parties on this page",
    needs: [TRACE],
    run: run,
}

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let trace = facts.get::<Trace>()?;
    let own = entities::of_url(&trace.navigation.url);
    let mut by_name: BTreeMap<String, Vec<&Resource>> = BTreeMap::new();
    for resource in loaded(&trace).filter(|resource| resource.transfer_bytes > 0.0) {
        if let Some(name) =
            entities::of_url(&resource.url).filter(|name| Some(name) != own.as_ref())
        {
            by_name.entry(name.into_owned()).or_default().push(resource);
        }
    }
    let sum = |resources: &[&Resource]| -> f64 {
        resources
            .iter()
            .map(|resource| resource.transfer_bytes)
            .sum()
    };
    let mut parties: Vec<(String, Vec<&Resource>)> = by_name.into_iter().collect();
    parties.sort_by(|(_, a), (_, b)| sum(b).total_cmp(&sum(a)));
    let outcome = match parties.len() {
        0 => Outcome::pass(),
        number => Outcome::informative(format!(
            "{} to this page.",
            count(
                number,
                "third party sends files",
                "third parties send files"
            )
        )),
    };
    let table = Findings::new([
        ("entity", "Third party", Unit::Text),
        ("transferSize", "Transferred", Unit::Bytes),
    ])
    .rows(parties.iter().map(|(name, resources)| {
        Row::new([Cell::text(name), Cell::Bytes(sum(resources))]).with(resources.iter().map(
            |resource| {
                Row::new([
                    Cell::url(&resource.url),
                    Cell::Bytes(resource.transfer_bytes),
                ])
            },
        ))
    }));
    Ok(outcome.with(table.into()))
}
