use proptest::prelude::*;

use super::*;

const PAGE: &str = "<!doctype html><html><body class='a b'>
<div id=top><img src=1.png><p>text<p><img src=2.png class=hero></div>
<ul><li><img src=3.png><li class=x-y><a href=https://a.test/b.PDF><img src=4.png loading=lazy></a></ul>
<div><div><img src=5.png><img src='a b.png' lang=en-GB></div></div></body></html>";

/// Returns the sources of the selected elements.
fn sources(selector: &str) -> Vec<String> {
    let selector = Selector::parse(selector).unwrap();
    let selected = selector.select(PAGE.as_bytes());
    let source = |tag: &Tag| tag.value("src").unwrap_or(&tag.name).to_owned();
    selected.map(|tag| source(&tag)).collect()
}

#[test]
fn elements_are_selected_by_their_own_conditions() {
    let all = ["1.png", "2.png", "3.png", "4.png", "5.png", "a b.png"];
    for (selector, expected) in [
        ("img", &all[..]),
        ("IMG", &all),
        ("img.hero", &["2.png"]),
        (".a.b", &["body"]),
        ("#top", &["div"]),
        ("[src='a b.png']", &["a b.png"]),
        ("img[ src ^= \"1\" ]", &["1.png"]),
        ("[src$='4.png']", &["4.png"]),
        ("[src*=' ']", &["a b.png"]),
        ("[src*='']", &[]),
        ("[lang|=en]", &["a b.png"]),
        ("[class~=b]", &["body"]),
        ("img[loading]", &["4.png"]),
        (
            "img:not([loading]):not(.hero):not([src^='a'])",
            &["1.png", "3.png", "5.png"],
        ),
        ("li.x-y", &["li"]),
        ("a, .hero", &["2.png", "a"]),
    ] {
        assert_eq!(sources(selector), expected, "{selector}");
    }
}

#[test]
fn elements_are_selected_by_their_position() {
    for (selector, expected) in [
        ("#top img", &["1.png", "2.png"][..]),
        ("#top > img", &["1.png"]),
        ("#top>p>img", &["2.png"]),
        ("body > div > div img:first-child", &["5.png"]),
        ("body div:nth-child(3) img:nth-of-type(2)", &["a b.png"]),
        ("li:nth-child(2) img", &["4.png"]),
        ("ul > li > img", &["3.png"]),
        ("* > ul", &["ul"]),
        ("html > div", &[]),
    ] {
        assert_eq!(sources(selector), expected, "{selector}");
    }
}

#[test]
fn what_is_not_supported_is_an_error() {
    for (selector, reason) in [
        ("", "an element is missing"),
        ("img,", "an element is missing"),
        ("a + b", "siblings cannot be selected"),
        ("a:hover", "`:hover` is unknown"),
        ("a[b", "`]` is missing"),
        ("a[b='c]", "a quote is missing"),
        ("a::before", "a name is missing"),
        ("a)", "`)` is unexpected"),
        ("a:nth-child(2n+1)", "the position is not a number"),
        ("a >", "an element is missing"),
    ] {
        let error = Selector::parse(selector).unwrap_err();
        assert_eq!(error.reason, reason, "{selector}");
    }
}

#[test]
fn a_long_selector_is_tried_quickly_on_a_deep_document() {
    let html = "<i>".repeat(600) + "<b>";
    let selector = Selector::parse(&format!("a {}b", "* ".repeat(300))).unwrap();
    assert_eq!(selector.select(html.as_bytes()).count(), 0);
    let selector = Selector::parse(&format!("i {}b", "* > * ".repeat(100))).unwrap();
    assert_eq!(selector.select(html.as_bytes()).count(), 1);
}

/// If the time depended on the depth of the document, this would take minutes.
#[test]
fn a_long_selector_is_tried_quickly_on_a_large_document() {
    let html = "<i>".repeat(20_000);
    let selector = Selector::parse(&"* ".repeat(400)).unwrap();
    assert_eq!(selector.select(html.as_bytes()).count(), 20_000 - 399);
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(selector in "[a-c#.:\\[\\]()>,*='\" é\\\\-]{0,20}") {
        if let Ok(selector) = Selector::parse(&selector) {
            selector.select(PAGE.as_bytes()).count();
        }
    }
}
