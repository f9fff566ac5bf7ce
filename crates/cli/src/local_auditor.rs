//! Audits without a server, for commands that visit pages themselves.

use std::str::FromStr;
use std::sync::Arc;

use plumbline_agent::{Auditor, Cpu, Interception};
use plumbline_browser::Pool;
use plumbline_catalog::{Catalog, PRESETS};
use plumbline_link::Target;
use plumbline_seam::{Order, VisitOptions, with_scheme};
use url::Url;

use crate::args::{ChoiceArgs, ConditionArgs};
use crate::exit::Exit;
use crate::page_url;
use crate::settings::{TargetSettings, calibration_file, launch_options};
use crate::suggestion::{unknown_device, unknown_location, unknown_network};

/// Prepares audits of pages under the same conditions.
pub fn prepare<const N: usize>(
    args: ConditionArgs,
    urls: [String; N],
    options: VisitOptions,
) -> Result<(Auditor, [Order; N], TargetSettings), Exit> {
    let ConditionArgs {
        choice,
        place: args,
    } = args;
    let has_allowed_targets = !args.targets.allow_target.is_empty();
    let mut targets = TargetSettings::resolve(args.targets, args.agent_location)?;
    let (device, network) = choose(choice, &targets.catalog);
    let location = args
        .location
        .unwrap_or_else(|| targets.agent_location.id.clone());
    let orders = urls.map(|url| Order {
        url: with_scheme(&url).map_or(url, String::from),
        device: device.clone(),
        network: network.clone(),
        location: location.clone(),
        options: options.clone(),
    });
    for order in &orders {
        let url = check(order, &targets.catalog)?;
        if !has_allowed_targets {
            // The user of this command may visit any host: those in the URLs are allowed, and no
            // others.
            targets.allow.extend(target_of(&url));
        }
    }
    let guard = Arc::new(targets.guard()?);
    let launcher = crate::command::serve::find_browser(launch_options(args.browser))?;
    let roots = plumbline_http::roots::of_system();
    let interception = Interception::new(&launcher, roots).map_err(Exit::failed)?;
    let auditor = Auditor {
        interception,
        cpu: Cpu::new(launcher.clone(), calibration_file(&launcher)),
        // One visit is often enough: a spare browser would be started and never used.
        browsers: Pool::start(launcher, 0),
        catalog: Arc::new(targets.catalog.clone()),
        guard,
        agent_location: targets.agent_location.clone(),
        max_visits: plumbline_agent::MAX_VISITS,
    };
    Ok((auditor, orders, targets))
}

/// Returns the ids of the device and the network. A network that was not chosen follows the device;
/// for an unknown device it is empty, because the device is reported as the error.
fn choose(choice: ChoiceArgs, catalog: &Catalog) -> (String, String) {
    let preset = choice.preset.as_deref();
    if let Some(preset) = PRESETS.iter().find(|it| Some(it.id) == preset) {
        return (preset.device.to_owned(), preset.network.to_owned());
    }
    let device = choice.device.unwrap_or_else(|| DEFAULT_DEVICE.to_owned());
    let network = choice.network.unwrap_or_else(|| {
        let network = catalog
            .device(&device)
            .and_then(|it| catalog.network_of(it));
        network.map_or_else(String::new, |network| network.id.clone())
    });
    (device, network)
}

/// The device of an audit for which none was chosen.
const DEFAULT_DEVICE: &str = "mobile";

/// Checks the ids and the URL of an order.
fn check(order: &Order, catalog: &Catalog) -> Result<Url, Exit> {
    if catalog.device(&order.device).is_none() {
        return Err(Exit::usage(unknown_device(catalog, &order.device)));
    }
    if catalog.network(&order.network).is_none() {
        return Err(Exit::usage(unknown_network(catalog, &order.network)));
    }
    if catalog.location(&order.location).is_none() {
        return Err(Exit::usage(unknown_location(catalog, &order.location)));
    }
    page_url::parse(&order.url).map_err(Exit::usage)
}

fn target_of(url: &Url) -> Option<Target> {
    let target = format!("{}:{}", url.host_str()?, url.port_or_known_default()?);
    Target::from_str(&target).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_network_follows_the_device_unless_it_is_chosen() {
        let catalog = Catalog::load(plumbline_catalog::BUILT_IN).unwrap();
        let choose = |device: Option<&str>, network: Option<&str>, preset: Option<&str>| {
            let [device, network, preset] =
                [device, network, preset].map(|it| it.map(str::to_owned));
            choose(
                ChoiceArgs {
                    device,
                    network,
                    preset,
                },
                &catalog,
            )
        };
        for (chosen, device, network) in [
            (choose(None, None, None), "mobile", "mobileSlow4g"),
            (
                choose(Some("desktop"), None, None),
                "desktop",
                "desktopDense4G",
            ),
            (choose(Some("desktop"), Some("dsl"), None), "desktop", "dsl"),
            (choose(None, Some("dsl"), None), "mobile", "dsl"),
            (
                choose(None, None, Some("lighthouse-desktop")),
                "desktop",
                "desktopDense4G",
            ),
            (choose(Some("toaster"), None, None), "toaster", ""),
        ] {
            assert_eq!(chosen, (device.to_owned(), network.to_owned()));
        }
    }
}
