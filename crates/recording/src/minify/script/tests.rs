use proptest::prelude::*;

use super::*;

#[test]
fn blanks_and_comments_without_meaning_are_left_out() {
    for (script, expected) in [
        ("let a = 1; // why\nlet b = 2;\n", "let a=1;let b=2;"),
        ("a()\nb()", "a()\nb()"),
        ("return\na", "return\na"),
        ("if (a) {\n  b()\n}\nc()", "if(a){b()}\nc()"),
        ("/* a */ b /* c */ + d", "b + d"),
        ("a /*\n*/ b", "a\nb"),
        ("a//b\nc", "a\nc"),
        ("/*! a */ b", "/*! a */ b"),
        ("/** @license a */b", "/** @license a */b"),
        ("'  // a  ' + \"/* b\"", "'  // a  ' + \"/* b\""),
        (
            "`  ${ a  +  `  ${ b }  ` }  // c\n  `",
            "`  ${a + `  ${b}  `}  // c\n  `",
        ),
        ("`${ {a : 1}.a }  x`", "`${{a:1}.a}  x`"),
        ("x = /[/ ]\\/  '/ ;", "x=/[/ ]\\/  '/;"),
        ("a  /  b  /  c // d", "a / b / c"),
        ("(a  +  b)  /  2 // d", "(a + b)/ 2"),
        ("if (x)  /  '/.test(y) // d", "if(x)/  '/.test(y)"),
        ("return  /  '/.test(y)", "return /  '/.test(y)"),
        ("a.return  /  b  /  c", "a.return / b / c"),
        ("a.if (x)  /  b  /  c", "a.if(x)/ b / c"),
        ("a[0]  /  b  /  c", "a[0]/ b / c"),
        ("x = /a/g  /  b  /  c", "x=/a/g / b / c"),
        ("a +  + b - -c", "a + + b - -c"),
        ("a++\n++b", "a++\n++b"),
        ("} / b", "}/ b"),
        ("é  =  '𝕏'", "é='𝕏'"),
        ("a\\\u{75}b", "a\\\u{75}b"),
        ("", ""),
    ] {
        let minified = minified_script(script);
        assert_eq!(minified.as_deref(), Some(expected), "{script}");
    }
}

#[test]
fn a_script_that_is_not_understood_is_not_minified() {
    for script in [
        "} /'/ // a",
        "x++ /'/ // a",
        "yield /'/ // a",
        "'a\n'",
        "'a",
        "`a",
        "`${a",
        "/* a",
        "x = /a\n/",
        "<!-- a",
        "#!/usr/bin/node",
    ] {
        assert_eq!(minified_script(script), None, "{script}");
    }
}

/// Returns the tokens of a script without blanks, as the minifier sees them.
fn without_blanks(script: &str) -> String {
    script.split_ascii_whitespace().collect()
}

proptest! {
    #[test]
    fn a_minified_script_stays_the_same(script in "[a-c{}();= '\"`$/*\\\\\n+é-]{0,30}") {
        if let Some(once) = minified_script(&script) {
            prop_assert!(once.len() <= script.len());
            // Without its line ends, a division may no longer be told from a pattern.
            if let Some(twice) = minified_script(&once) {
                prop_assert_eq!(twice, once);
            }
        }
    }

    #[test]
    fn only_blanks_of_a_script_without_comments_are_left_out(
        script in "([a-c]|[0-9]|[{}();=,+ \n-]|'[a /]*'|return ){0,20}",
    ) {
        if let Some(minified) = minified_script(&script) {
            prop_assert_eq!(without_blanks(&minified), without_blanks(&script));
        }
    }
}
