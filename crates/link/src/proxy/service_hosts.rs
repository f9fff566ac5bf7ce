//! Hosts that Chromium connects to for itself: updates, field trials, safe browsing, hints, push. A
//! visit by a user would hardly contain these requests either, because a browser makes them once a
//! day.
//!
//! Only hosts that pages never load from are listed. `accounts.google.com` is not, although
//! Chromium connects to it: its sign-in script is part of many pages.

/// Host names; a leading dot matches all subdomains.
pub(super) const BROWSER_SERVICES: &[&str] = &[
    "android.clients.google.com",
    "chromefeedback-pa.googleapis.com",
    "clients1.google.com",
    "clients2.google.com",
    "clients2.googleusercontent.com",
    "clients4.google.com",
    "clientservices.googleapis.com",
    "content-autofill.googleapis.com",
    "edgedl.me.gvt1.com",
    "mtalk.google.com",
    "optimizationguide-pa.googleapis.com",
    "passwordsleakcheck-pa.googleapis.com",
    "redirector.gvt1.com",
    "safebrowsing.google.com",
    "safebrowsing.googleapis.com",
    "safebrowsingohttpgateway.googleapis.com",
    "sb-ssl.google.com",
    "update.googleapis.com",
    ".clients.google.com",
    ".gvt1.com",
];

pub(super) fn matches(list: &[String], host: &str) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    list.iter().any(|entry| match entry.strip_prefix('.') {
        Some(_) => host.ends_with(entry.as_str()),
        None => host == *entry,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_services_match_and_hosts_of_pages_do_not() {
        let list: Vec<String> = BROWSER_SERVICES.iter().map(|h| (*h).to_owned()).collect();
        for service in [
            "update.googleapis.com",
            "Clients2.Google.com.",
            "r4---sn-abc.gvt1.com",
        ] {
            assert!(matches(&list, service), "{service}");
        }
        for page in [
            "accounts.google.com",
            "www.gstatic.com",
            "fonts.googleapis.com",
            "ajax.googleapis.com",
            "www.google.com",
            "maps.googleapis.com",
            "notgvt1.com",
        ] {
            assert!(!matches(&list, page), "{page}");
        }
    }
}
