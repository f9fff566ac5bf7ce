//! Tests of the built-in data and of the validation.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use plumbline_catalog::{BUILT_IN, Catalog, CatalogFiles, FormFactor, Mode, NetworkKind, PRESETS};

const DEVICES: &str = "mobile desktop macbookAir2020 highEndLaptop macbookPro133 macbookPro16 \
    msSurfaceBook315 msSurfaceBook3135 msSurface ipad102 samsungGalaxyTab7 iphone13ProMax iphone11 \
    samsungGalaxyS10Plus redmiNote8Pro iphone7 samsungGalaxyA50 motorolaMotoG5 redmi5A iphone13Pro \
    iphone8Plus ipadPro129 samsungGalaxyA32 samsungGalaxyS21Ultra samsungGalaxyS20 oneplus10Pro \
    oneplus7 iphoneXR iphone5 iphone6 iphone11Pro iphone12Pro iphone12Mini pixel oneplusNord \
    samsungGalaxyS8 pixel3 pixel4 pixel5 pixel6 pixel6Pro";
const NETWORKS: &str = "fiber cable dsl normal5g wifiFast wifi normal4gFast desktopDense4G \
    normal4g normal3gSlow normal2gEdge normal2g mobileSlow4g mobileRegular4g";
const LOCATIONS: &str = "in us-tx us-ca eu fr au uk ca br";

fn built_in() -> Catalog {
    Catalog::load(BUILT_IN).unwrap()
}

fn list(ids: &str) -> Vec<&str> {
    ids.split_whitespace().collect()
}

#[test]
fn all_ids_of_the_contract_exist_in_its_order() {
    let catalog = built_in();
    let devices: Vec<_> = catalog.devices().iter().map(|d| d.id.as_str()).collect();
    let networks: Vec<_> = catalog.networks().iter().map(|n| n.id.as_str()).collect();
    let locations: Vec<_> = catalog.locations().iter().map(|l| l.id.as_str()).collect();
    assert_eq!(devices, list(DEVICES));
    assert_eq!(networks, list(NETWORKS));
    assert_eq!(locations, list(LOCATIONS));
}

#[test]
fn ids_are_case_sensitive() {
    assert!(built_in().device("Mobile").is_none());
    assert!(built_in().network("Fiber").is_none());
    assert!(built_in().location("IN").is_none());
}

#[test]
fn the_user_agent_contains_the_running_version() {
    for device in built_in().devices() {
        assert!(!device.user_agent("156").contains('{'), "{}", device.id);
    }
    let mobile = built_in().device("mobile").unwrap().user_agent("156");
    assert!(mobile.contains("Chrome/156.0.0.0 Mobile"), "{mobile}");
}

#[test]
fn apple_phones_and_tablets_send_no_client_hints_and_all_others_do() {
    for device in built_in().devices() {
        let ios = device.platform.starts_with("iOS") || device.platform.starts_with("iPadOS");
        assert_eq!(device.client_hints.is_none(), ios, "{}", device.id);
    }
}

#[test]
fn mobile_devices_have_touch_and_desktops_do_not() {
    for device in built_in().devices() {
        assert_eq!(device.touch, device.mode == Mode::Mobile, "{}", device.id);
    }
}

#[test]
fn round_trip_times_are_symmetric() {
    let catalog = built_in();
    assert_eq!(catalog.round_trip_ms("us-tx", "eu"), Some(123.0));
    assert_eq!(catalog.round_trip_ms("eu", "us-tx"), Some(123.0));
    assert_eq!(catalog.round_trip_ms("eu", "moon"), None);
}

#[test]
fn a_device_is_added_by_adding_data() {
    let more = format!(
        "{}\n{}",
        BUILT_IN.devices,
        r#"
        [[device]]
        id = "kiosk"
        name = "Kiosk (1080x1920)"
        mode = "desktop"
        viewport = { width = 1080, height = 1920 }
        screen = { width = 1080, height = 1920 }
        scale = 1
        touch = true
        platform = "Linux"
        chip = "any"
        user_agent = "Kiosk/{CHROME_MAJOR}"
        navigator_platform = "Linux"
        source = "spec sheet"
        "#
    );
    let catalog = Catalog::load(CatalogFiles {
        devices: &more,
        ..BUILT_IN
    })
    .unwrap();
    assert_eq!(catalog.devices().len(), 42);
    assert!(catalog.device("kiosk").is_some());
}

#[test]
fn an_error_names_the_invalid_entry_and_the_reason() {
    check_refused(
        BUILT_IN.devices.replacen("(412x823)", "(1x1)", 1).as_str(),
        "entry `mobile`: `name` must include the screen size (412x823)",
    );
    check_refused(
        BUILT_IN
            .devices
            .replacen("id = \"desktop\"", "id = \"mobile\"", 1)
            .as_str(),
        "entry `mobile`: duplicate id",
    );
    check_refused(
        BUILT_IN
            .devices
            .replacen("scale = 1.75", "scale = 0", 1)
            .as_str(),
        "entry `mobile`: scale must be between 0.5 and 5",
    );
    check_refused(
        BUILT_IN
            .devices
            .replacen("touch = true", "touhc = true", 1)
            .as_str(),
        "unknown field `touhc`",
    );
    check_refused("", "cannot be read");
}

#[track_caller]
fn check_refused(devices: &str, expected: &str) {
    let error = Catalog::load(CatalogFiles {
        devices,
        ..BUILT_IN
    })
    .unwrap_err();
    assert!(error.to_string().contains(expected), "{error}");
}

#[test]
fn tablets_are_distinguished_from_phones_by_their_shorter_side() {
    let catalog = built_in();
    let of = |form_factor: FormFactor| -> Vec<&str> {
        let devices = catalog.devices().iter();
        devices
            .filter(|device| device.form_factor() == form_factor)
            .map(|device| device.id.as_str())
            .collect()
    };
    assert_eq!(
        of(FormFactor::Tablet),
        ["ipad102", "samsungGalaxyTab7", "ipadPro129"]
    );
    assert!(of(FormFactor::Desktop).contains(&"desktop"));
    assert!(of(FormFactor::Phone).contains(&"mobile"));
    assert_eq!(of(FormFactor::Phone).len(), 30);
}

#[test]
fn a_network_follows_the_device_if_none_is_chosen() {
    let catalog = built_in();
    for (device, network) in [
        ("mobile", "mobileSlow4g"),
        ("ipad102", "mobileSlow4g"),
        ("desktop", "desktopDense4G"),
        ("macbookPro16", "desktopDense4G"),
    ] {
        let device = catalog.device(device).unwrap();
        assert_eq!(catalog.network_of(device).unwrap().id, network);
    }
    let desktop = catalog.network("desktopDense4G").unwrap();
    assert_eq!((desktop.down_kbps, desktop.rtt_ms), (10_240.0, 40.0));
}

#[test]
fn a_catalog_without_lighthouses_networks_has_no_presets_but_a_network_for_each_device() {
    assert!(built_in().presets().eq(&PRESETS));
    let only_cable = BUILT_IN.networks.split("[[network]]").nth(2).unwrap();
    let networks = format!("[[network]]{}", only_cable.replace("kind = \"fixed\"", ""));
    let catalog = Catalog::load(CatalogFiles {
        networks: &networks,
        ..BUILT_IN
    })
    .unwrap();
    assert_eq!(catalog.preset("lighthouse-mobile"), None);
    let network = catalog.network_of(&catalog.devices()[0]).unwrap();
    assert_eq!(
        (network.id.as_str(), network.kind),
        ("cable", NetworkKind::Other)
    );
}

#[test]
fn every_network_has_a_kind() {
    for network in built_in().networks() {
        assert_ne!(network.kind, NetworkKind::Other, "{}", network.id);
    }
}
