//! The table of axe-core's rules. Weights and groups are Lighthouse 13.5's
//! (core/config/default-config.js), and so is the version in the addresses of Deque's
//! documentation; the texts are our own.

use plumbline_model::category::Group;

use super::{RuleCheck, RuleMode, judge};
use crate::checks::Check;

macro_rules! rules {
    ($(
        $id:literal $weight:literal $group:ident $mode:ident
        $title_pass:literal $title_fail:literal
        why $why:literal
        fix $fix:literal
    )+) => {
        /// Every axe-core rule that is run, in the order of the report.
        pub static RULES: &[RuleCheck] = &[$(RuleCheck {
            weight: $weight,
            group: Group::$group,
            check: Check {
                id: $id,
                title_pass: $title_pass,
                title_fail: $title_fail,
                learn_more: Some(concat!("https://dequeuniversity.com/rules/axe/4.13/", $id)),
                run: |facts| judge(facts, $id, RuleMode::$mode),
                doc: concat!(
                    "# What\n", $title_pass, ".\n",
                    "# Why\n", $why, "\n",
                    "# Scored\n", scored!($mode), "\n",
                    "# Fix\n", $fix, "\n",
                    "# Source\naxe-core, rule `", $id, "`; Lighthouse 13.5.\n",
                ),
            },
        }),+];
    };
}

macro_rules! scored {
    (Scored) => {
        "Fails when axe-core finds a violation. Not applicable when no element on the page is affected."
    };
    (Informative) => {
        "Never scored: violations and undecided results are listed for manual review."
    };
}

rules! {
    "accesskeys" 7.0 Navigation Scored
        "Access keys are unique" "Access keys are not unique"
        why "A key that is assigned twice moves the focus to the wrong element."
        fix "Give each `accesskey` a unique value, or remove it."
    "aria-allowed-attr" 10.0 Aria Scored
        "ARIA attributes match their roles" "ARIA attributes do not match their roles"
        why "An attribute that a role does not support is ignored, or misleads screen reader users."
        fix "Remove the attribute, or use a role that supports it."
    "aria-command-name" 7.0 Aria Scored
        "ARIA buttons, links and menu items have accessible names" "ARIA buttons, links or menu items have no accessible name"
        why "Without a name a screen reader announces only the role, such as \"button\"."
        fix "Give the element text, or an `aria-label`."
    "aria-conditional-attr" 7.0 Aria Scored
        "ARIA attributes are used as the role allows" "ARIA attributes are used where the role forbids it"
        why "Some attributes are allowed only under certain conditions; otherwise they mislead assistive technology."
        fix "Remove the attribute, or use the native one, such as `checked`."
    "aria-deprecated-role" 1.0 Aria Scored
        "No deprecated ARIA roles" "Deprecated ARIA roles are used"
        why "Assistive technology may no longer support them; the element then has no role."
        fix "Use the role that replaced it."
    "aria-dialog-name" 7.0 Aria Scored
        "Dialogs have accessible names" "Dialogs have no accessible name"
        why "Without a name screen reader users do not learn the purpose of the dialog."
        fix "Point `aria-labelledby` at the dialog's heading, or add an `aria-label`."
    "aria-hidden-body" 10.0 Aria Scored
        "`<body>` is not hidden with `aria-hidden`" "`<body>` is hidden with `aria-hidden`"
        why "`aria-hidden` on `<body>` hides the whole page from screen readers."
        fix "Remove `aria-hidden` from `<body>`."
    "aria-hidden-focus" 7.0 Aria Scored
        "`aria-hidden` elements contain nothing focusable" "`aria-hidden` elements contain focusable elements"
        why "Keyboard focus can reach elements that a screen reader does not announce."
        fix "Remove elements inside `aria-hidden` from the tab order, or do not hide them."
    "aria-input-field-name" 7.0 Aria Scored
        "ARIA input fields have accessible names" "ARIA input fields have no accessible name"
        why "Without a name screen reader users do not learn what to enter."
        fix "Reference a visible label with `aria-labelledby`, or add an `aria-label`."
    "aria-meter-name" 7.0 Aria Scored
        "Meters have accessible names" "Meters have no accessible name"
        why "Without a name a screen reader announces a value without its meaning."
        fix "Add an `aria-label` that says what is measured."
    "aria-progressbar-name" 7.0 Aria Scored
        "Progress bars have accessible names" "Progress bars have no accessible name"
        why "Without a name screen reader users do not learn what is in progress."
        fix "Add an `aria-label` that names the process."
    "aria-prohibited-attr" 7.0 Aria Scored
        "No prohibited ARIA attributes" "Prohibited ARIA attributes are used"
        why "Assistive technology ignores them, so their information is lost."
        fix "Use a role that allows the attribute, or put the information into text."
    "aria-required-attr" 10.0 Aria Scored
        "ARIA roles have all required attributes" "ARIA roles lack required attributes"
        why "Without them assistive technology cannot announce the state of a control."
        fix "Add the listed attribute, and keep it up to date with a script."
    "aria-required-children" 10.0 Aria Scored
        "ARIA roles contain their required children" "ARIA roles lack their required children"
        why "Roles such as lists and menus depend on their child roles; without them screen readers lose the structure."
        fix "Give the children the required role, or remove the parent's."
    "aria-required-parent" 10.0 Aria Scored
        "ARIA roles are inside their required parents" "ARIA roles are not inside their required parents"
        why "An item outside its parent role is announced without its position and count."
        fix "Move the element into a parent with the required role."
    "aria-roles" 10.0 Aria Scored
        "ARIA roles are valid" "ARIA roles are not valid"
        why "An invalid role is ignored, and the element is announced as plain text."
        fix "Correct the spelling, or use a native element."
    "aria-text" 7.0 Aria Scored
        "`role=text` elements contain nothing focusable" "`role=text` elements contain focusable elements"
        why "The content is read as one text, so links and buttons inside are not announced."
        fix "Remove `role=text`, or move the focusable elements out of it."
    "aria-toggle-field-name" 7.0 Aria Scored
        "ARIA toggle fields have accessible names" "ARIA toggle fields have no accessible name"
        why "Without a name a screen reader announces only the state of a switch or checkbox."
        fix "Give the element text, or an `aria-label`."
    "aria-tooltip-name" 7.0 Aria Scored
        "Tooltips have accessible names" "Tooltips have no accessible name"
        why "Without a name a screen reader cannot read the tooltip."
        fix "Put the text into the element, or add an `aria-label`."
    "aria-treeitem-name" 7.0 Aria Scored
        "Tree items have accessible names" "Tree items have no accessible name"
        why "Without names screen reader users cannot navigate the tree."
        fix "Give each item text, or an `aria-label`."
    "aria-valid-attr-value" 10.0 Aria Scored
        "ARIA attributes have valid values" "ARIA attributes have invalid values"
        why "Assistive technology ignores an attribute with an invalid value."
        fix "Use a value that the attribute allows; referenced ids have to exist on the page."
    "aria-valid-attr" 10.0 Aria Scored
        "ARIA attributes are valid" "ARIA attributes are not valid"
        why "A misspelt attribute has no effect."
        fix "Correct the spelling, or remove it."
    "button-name" 10.0 Names Scored
        "Buttons have accessible names" "Buttons have no accessible name"
        why "Without a name a screen reader announces only \"button\"."
        fix "Add text to the button, or an `aria-label` if it has only an icon."
    "bypass" 7.0 Navigation Informative
        "Ways to skip repeated content" "Ways to skip repeated content"
        why "Keyboard users otherwise have to tab through the whole menu on every page."
        fix "Add a skip link, headings or a `<main>` landmark."
    "color-contrast" 7.0 Contrast Scored
        "Text has sufficient colour contrast" "Text has insufficient colour contrast"
        why "Text with low contrast is hard to read, especially for people with low vision or in sunlight."
        fix "Use a contrast ratio of at least 4.5:1, or 3:1 for large text."
    "definition-list" 7.0 TablesAndLists Scored
        "Definition lists are well formed" "Definition lists are not well formed"
        why "In a malformed `<dl>` a screen reader cannot match terms with their definitions."
        fix "Keep only `<dt>` and `<dd>` groups, `<div>`, `<script>` and `<template>` inside `<dl>`."
    "dlitem" 7.0 TablesAndLists Scored
        "Terms and definitions are inside a `<dl>`" "Terms or definitions are outside a `<dl>`"
        why "Outside a list they are announced as plain text."
        fix "Wrap `<dt>` and `<dd>` in a `<dl>`."
    "document-title" 7.0 Names Scored
        "The document has a `<title>`" "The document has no `<title>`"
        why "Screen readers announce the title first, and it labels the tab and the entry in search results."
        fix "Add a `<title>` that describes the page and names the site."
    "duplicate-id-aria" 10.0 Aria Informative
        "Duplicate ids in ARIA references" "Duplicate ids in ARIA references"
        why "With duplicate ids assistive technology uses the first element, which may be the wrong one."
        fix "Make every id unique."
    "form-field-multiple-labels" 3.0 Names Informative
        "Form fields with multiple labels" "Form fields with multiple labels"
        why "Screen readers differ in whether they announce the first, the last or all labels."
        fix "Keep one `<label>` for each field."
    "frame-title" 7.0 Names Scored
        "Frames have titles" "Frames have no title"
        why "Screen readers announce a frame by its title, so that users can decide whether to enter it."
        fix "Add a `title` that describes the content to `<iframe>` and `<frame>`."
    "heading-order" 3.0 Navigation Scored
        "Heading levels are in sequential order" "Heading levels are skipped"
        why "Screen reader users navigate by headings; skipped levels obscure the structure."
        fix "Choose heading levels by structure, and set their size with CSS."
    "html-has-lang" 7.0 Language Scored
        "`<html>` has a `lang` attribute" "`<html>` has no `lang` attribute"
        why "Screen readers choose the pronunciation by the language of the page."
        fix "Add `lang` to `<html>`, such as `lang=\"en\"`."
    "html-lang-valid" 7.0 Language Scored
        "The `lang` of `<html>` is valid" "The `lang` of `<html>` is not valid"
        why "Screen readers ignore an invalid language and may mispronounce the page."
        fix "Use a language code of BCP 47, such as `de` or `pt-BR`."
    "html-xml-lang-mismatch" 3.0 Language Scored
        "`xml:lang` matches `lang`" "`xml:lang` does not match `lang`"
        why "Which of the two is used for pronunciation depends on the software."
        fix "Use the same language in both, or remove `xml:lang`."
    "image-alt" 10.0 Names Scored
        "Images have alternative text" "Images have no alternative text"
        why "Screen readers and search engines use this text in place of the image."
        fix "Describe the image in `alt`, or set `alt=\"\"` for decorative images."
    "input-button-name" 10.0 Names Scored
        "Input buttons have accessible names" "Input buttons have no accessible name"
        why "Without a name a screen reader announces only \"button\"."
        fix "Set `value`, or an `aria-label`."
    "input-image-alt" 10.0 Names Scored
        "Image buttons have alternative text" "Image buttons have no alternative text"
        why "Without it screen reader users do not learn what the button does."
        fix "Describe in `alt` what the button does."
    "label" 10.0 Names Scored
        "Form fields have labels" "Form fields have no label"
        why "Without a label screen reader users do not learn what to enter, and the clickable area is smaller."
        fix "Associate a `<label>` with each field by `for`, or wrap the field in it."
    "link-in-text-block" 7.0 Contrast Scored
        "Links in text are distinguishable without colour" "Links in text are distinguishable by colour only"
        why "People who do not see the colour difference cannot find the links."
        fix "Underline links in text, or use a contrast ratio of at least 3:1 with the surrounding text."
    "link-name" 7.0 Names Scored
        "Links have accessible names" "Links have no accessible name"
        why "Without a name a screen reader reads the URL."
        fix "Add text to the link, or an `alt` to the image inside it."
    "list" 7.0 TablesAndLists Scored
        "Lists contain only list items" "Lists contain elements other than list items"
        why "Screen readers announce the number of items; other elements break the structure."
        fix "Keep only `<li>`, `<script>` and `<template>` directly inside `<ul>` and `<ol>`."
    "listitem" 7.0 TablesAndLists Scored
        "List items are inside lists" "List items are outside lists"
        why "Outside a list an item is not announced as part of one."
        fix "Wrap `<li>` in `<ul>`, `<ol>` or `<menu>`."
    "meta-refresh" 10.0 GoodHabits Scored
        "No `<meta http-equiv=\"refresh\">`" "The page uses `<meta http-equiv=\"refresh\">`"
        why "An automatic refresh moves the focus back to the top of the page."
        fix "Remove `<meta http-equiv=\"refresh\">`; update the page with a script, or let users refresh it."
    "meta-viewport" 10.0 GoodHabits Scored
        "The viewport allows zooming" "The viewport disables zooming"
        why "People with low vision need to enlarge the page."
        fix "Remove `user-scalable=no`, and set `maximum-scale` to 5 or more, or remove it."
    "object-alt" 7.0 Names Scored
        "Embedded objects have alternative text" "Embedded objects have no alternative text"
        why "Screen readers cannot read the content of an `<object>`."
        fix "Add a `title` or `aria-label`."
    "select-name" 10.0 Names Scored
        "Select elements have labels" "Select elements have no label"
        why "Without a label a screen reader announces the options without their purpose."
        fix "Associate a `<label>` by `for`."
    "skip-link" 3.0 Names Scored
        "Skip links are focusable" "Skip links are not focusable"
        why "Keyboard users rely on skip links to reach the main content quickly."
        fix "Point the link to a focusable element that exists on the page."
    "tabindex" 7.0 Navigation Scored
        "No `tabindex` greater than 0" "Elements have a `tabindex` greater than 0"
        why "A positive `tabindex` makes the tab order differ from the order on the page."
        fix "Use 0, and put the elements into the intended order."
    "target-size" 7.0 GoodHabits Scored
        "Touch targets have sufficient size and spacing" "Touch targets have insufficient size or spacing"
        why "Small targets that are close together are easy to miss."
        fix "Make targets at least 24 by 24 pixels, or leave that much space around them."
    "td-headers-attr" 7.0 TablesAndLists Scored
        "`headers` attributes refer to cells of the same table" "`headers` attributes do not refer to cells of the same table"
        why "Screen readers announce the cell without its header, or with a wrong one."
        fix "Reference the ids of `<th>` cells in the same table."
    "th-has-data-cells" 7.0 TablesAndLists Informative
        "Table headers without data cells" "Table headers without data cells"
        why "A header without data cells misleads screen reader users who navigate by cell."
        fix "Use `<td>` for cells that are not headers, or add the missing cells."
    "valid-lang" 7.0 Language Scored
        "`lang` attributes have valid values" "`lang` attributes have invalid values"
        why "Screen readers pronounce text with an invalid language incorrectly."
        fix "Use language codes of BCP 47 in every `lang` attribute."
    "video-caption" 10.0 AudioAndVideo Informative
        "Captions of videos" "Captions of videos"
        why "People who are deaf, or cannot turn on the sound, need captions to follow the video."
        fix "Add a `<track kind=\"captions\">`."
    "landmark-one-main" 3.0 GoodHabits Scored
        "The page has a main landmark" "The page has no main landmark"
        why "A main landmark lets screen reader users go directly to the content."
        fix "Wrap the content in one `<main>`."
    "autocomplete-valid" 1.0 GoodHabits Scored
        "`autocomplete` has valid values" "`autocomplete` has invalid values"
        why "Browsers can only autofill fields with valid values, which helps people who have difficulty typing."
        fix "Use the values of the HTML standard, such as `email` or `street-address`."
    "presentation-role-conflict" 1.0 GoodHabits Scored
        "Presentational elements are consistent" "Presentational elements are focusable or have ARIA attributes"
        why "Browsers ignore the presentational role in that case, and the element is announced."
        fix "Remove `role=presentation` or `none`, or the conflicting attributes."
    "svg-img-alt" 1.0 GoodHabits Scored
        "SVG images have alternative text" "SVG images have no alternative text"
        why "Without a name an SVG with `role=img` is announced only as an image."
        fix "Add a `<title>` inside the SVG, or an `aria-label`."
    "table-duplicate-name" 0.0 GoodHabits Informative
        "Table captions that repeat the summary" "Table captions that repeat the summary"
        why "A screen reader reads the same text twice."
        fix "Name the table in the caption and explain it in the summary, or remove the summary."
    "empty-heading" 0.0 GoodHabits Informative
        "Empty headings" "Empty headings"
        why "Screen reader users navigate by headings; an empty one is confusing."
        fix "Add text to the heading, or use another element."
    "aria-allowed-role" 0.0 GoodHabits Informative
        "ARIA roles that their elements do not allow" "ARIA roles that their elements do not allow"
        why "A role that conflicts with its element confuses assistive technology."
        fix "Use an element that allows the role, or remove the role."
    "image-redundant-alt" 0.0 Names Informative
        "Redundant alternative text" "Redundant alternative text"
        why "A screen reader reads the same text twice."
        fix "Leave `alt` empty if the adjacent text says the same."
    "identical-links-same-purpose" 0.0 GoodHabits Informative
        "Identical links with different purposes" "Identical links with different purposes"
        why "In a list of links, identical texts with different targets cannot be distinguished."
        fix "Give links with different targets different texts."
    "label-content-name-mismatch" 0.0 Experimental Scored
        "Accessible names contain the visible text" "Accessible names do not contain the visible text"
        why "People who use voice control say the visible text to activate an element."
        fix "Start the `aria-label` with the visible text."
    "table-fake-caption" 0.0 Experimental Scored
        "Tables use `<caption>` for captions" "Tables use merged cells for captions"
        why "Screen readers announce a caption in a cell as data."
        fix "Use `<caption>`."
    "td-has-header" 0.0 Experimental Scored
        "Cells of large tables have headers" "Cells of large tables have no headers"
        why "Screen readers announce headers together with cells; without them values have no context."
        fix "Use `<th>` with `scope` for headers."
}
