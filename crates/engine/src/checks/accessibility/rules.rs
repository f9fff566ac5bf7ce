//! THE table of axe-core's rules. Weights and groups are Lighthouse 13.5's
//! (core/config/default-config.js); words are ours.

use super::{Mode, Rule, judge};
use crate::category::Group;
use crate::checks::Check;
use crate::facts::{Artifact, Axe};

macro_rules! rules {
    ($(
        $id:literal $weight:literal $group:ident $mode:ident
        $title_pass:literal $title_fail:literal
        why $why:literal
        fix $fix:literal
    )+) => {
        /// Every rule that is asked of axe-core, in the order of the report.
        pub static RULES: &[Rule] = &[$(Rule {
            weight: $weight,
            group: Group::$group,
            check: Check {
                id: $id,
                title_pass: $title_pass,
                title_fail: $title_fail,
                needs: &[Axe::NAME],
                run: |facts| judge(facts, $id, Mode::$mode),
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
        "Fails when axe-core finds a violation. Not applicable when nothing on the page concerns it."
    };
    (Informs) => {
        "Never: what axe-core finds, or is unsure of, is listed for a person to decide."
    };
}

rules! {
    "accesskeys" 7.0 Navigation Scored
        "Every access key is used once" "An access key is used more than once"
        why "A key that means two things takes people to the wrong one."
        fix "Give each `accesskey` a value of its own, or remove them."
    "aria-allowed-attr" 10.0 Aria Scored
        "ARIA attributes fit their roles" "ARIA attributes do not fit their roles"
        why "An attribute that a role does not know is ignored, or makes a screen reader say nonsense."
        fix "Remove the attribute, or choose the role that it belongs to."
    "aria-command-name" 7.0 Aria Scored
        "Buttons, links and menu items have names" "Buttons, links or menu items have no name"
        why "A screen reader can only say \"button\", which nobody will press."
        fix "Give the element text, or an `aria-label`."
    "aria-conditional-attr" 7.0 Aria Scored
        "ARIA attributes are used as the role allows" "ARIA attributes are used where the role forbids it"
        why "Some attributes count only on certain elements of a role; elsewhere they mislead."
        fix "Remove the attribute, or use the native one, such as `checked`."
    "aria-deprecated-role" 1.0 Aria Scored
        "No deprecated ARIA roles" "Deprecated ARIA roles are used"
        why "Assistive technology stops supporting them, and then the element has no role at all."
        fix "Use the role that replaced it."
    "aria-dialog-name" 7.0 Aria Scored
        "Dialogs have names" "Dialogs have no name"
        why "Whoever cannot see the dialog does not learn what it is about."
        fix "Point `aria-labelledby` at the dialog's heading, or add an `aria-label`."
    "aria-hidden-body" 10.0 Aria Scored
        "The page is not hidden from assistive technology" "The whole page is hidden from assistive technology"
        why "`aria-hidden` on the body makes the page empty for screen readers."
        fix "Remove `aria-hidden` from `<body>`."
    "aria-hidden-focus" 7.0 Aria Scored
        "Hidden elements cannot be focused" "Hidden elements can be focused"
        why "The keyboard lands on something that a screen reader does not announce."
        fix "Take what is inside `aria-hidden` out of the tab order, or do not hide it."
    "aria-input-field-name" 7.0 Aria Scored
        "ARIA input fields have names" "ARIA input fields have no name"
        why "People do not learn what to enter."
        fix "Connect a visible text by `aria-labelledby`, or add an `aria-label`."
    "aria-meter-name" 7.0 Aria Scored
        "Meters have names" "Meters have no name"
        why "A number without a subject says nothing."
        fix "Add an `aria-label` that says what is measured."
    "aria-progressbar-name" 7.0 Aria Scored
        "Progress bars have names" "Progress bars have no name"
        why "Progress of what? Without a name only those who see it know."
        fix "Add an `aria-label` that says what progresses."
    "aria-prohibited-attr" 7.0 Aria Scored
        "No ARIA attributes where they are prohibited" "ARIA attributes are used where they are prohibited"
        why "They are ignored, and what they were to say stays unsaid."
        fix "Give the element a role that may have the attribute, or say it in text."
    "aria-required-attr" 10.0 Aria Scored
        "ARIA roles have all required attributes" "ARIA roles lack required attributes"
        why "Without them a control has no state: is the box ticked or not?"
        fix "Add the attribute that is listed, and keep it up to date by script."
    "aria-required-children" 10.0 Aria Scored
        "ARIA roles contain the children they require" "ARIA roles lack the children they require"
        why "A list without items, a menu without entries: the structure breaks for screen readers."
        fix "Give the children the required role, or remove the parent's."
    "aria-required-parent" 10.0 Aria Scored
        "ARIA roles are inside the parents they require" "ARIA roles lack the parents they require"
        why "An item outside its list loses its place and its count."
        fix "Put the element into a parent with the required role."
    "aria-roles" 10.0 Aria Scored
        "ARIA roles exist" "ARIA roles do not exist"
        why "A role that does not exist is no role; the element is announced as plain text."
        fix "Correct the spelling, or use a native element."
    "aria-text" 7.0 Aria Scored
        "`role=text` contains nothing to focus" "`role=text` contains elements to focus"
        why "Everything inside is read as one text, so that links and buttons vanish."
        fix "Remove `role=text`, or take the focusable elements out of it."
    "aria-toggle-field-name" 7.0 Aria Scored
        "Switches and checkboxes have names" "Switches or checkboxes have no name"
        why "People hear \"on\" or \"off\", but not of what."
        fix "Give the element text, or an `aria-label`."
    "aria-tooltip-name" 7.0 Aria Scored
        "Tooltips have names" "Tooltips have no name"
        why "A tooltip without text explains nothing."
        fix "Put the text into the element, or add an `aria-label`."
    "aria-treeitem-name" 7.0 Aria Scored
        "Tree items have names" "Tree items have no name"
        why "A tree of nameless items cannot be walked."
        fix "Give each item text, or an `aria-label`."
    "aria-valid-attr-value" 10.0 Aria Scored
        "ARIA attributes have valid values" "ARIA attributes have invalid values"
        why "An invalid value is treated as none, and what it was to say is lost."
        fix "Use a value that the attribute allows; ids must exist on the page."
    "aria-valid-attr" 10.0 Aria Scored
        "ARIA attributes exist" "ARIA attributes do not exist"
        why "A misspelt attribute does nothing."
        fix "Correct the spelling, or remove it."
    "button-name" 10.0 Names Scored
        "Buttons have names" "Buttons have no name"
        why "A screen reader can only say \"button\"."
        fix "Put text into the button, or an `aria-label` where there is only an icon."
    "bypass" 7.0 Navigation Informs
        "Repeated content can be skipped" "Repeated content can be skipped"
        why "Without a way past it, keyboard users tab through the whole menu on every page."
        fix "Add a skip link, headings or a `<main>` landmark."
    "color-contrast" 7.0 Contrast Scored
        "Text stands out from its background" "Text does not stand out from its background"
        why "Pale text is hard to read, in sunlight for everybody."
        fix "Reach a contrast of 4.5 to 1, or 3 to 1 for large text."
    "definition-list" 7.0 TablesAndLists Scored
        "Definition lists are well formed" "Definition lists are not well formed"
        why "In a broken `<dl>` a screen reader cannot tell terms from their meanings."
        fix "Keep only `<dt>` and `<dd>` groups, `<div>`, `<script>` and `<template>` inside `<dl>`."
    "dlitem" 7.0 TablesAndLists Scored
        "Terms and definitions are inside a `<dl>`" "Terms or definitions are outside a `<dl>`"
        why "On their own they are read as loose text."
        fix "Wrap `<dt>` and `<dd>` in a `<dl>`."
    "document-title" 7.0 Names Scored
        "The page has a title" "The page has no title"
        why "It is the first thing a screen reader says, the name of the tab, and the headline in search results."
        fix "Add a `<title>` that names page and site."
    "duplicate-id-aria" 10.0 Aria Informs
        "Ids that ARIA refers to are unique" "Ids that ARIA refers to are unique"
        why "A label that could belong to two elements belongs to the first, perhaps the wrong one."
        fix "Make every id unique."
    "form-field-multiple-labels" 3.0 Names Informs
        "No form field has several labels" "No form field has several labels"
        why "Some screen readers say the first, some the last, some all of them."
        fix "Keep one `<label>` for each field."
    "frame-title" 7.0 Names Scored
        "Frames have titles" "Frames have no title"
        why "A screen reader names the frame by its title, so that people can decide whether to enter."
        fix "Add a `title` to `<iframe>` and `<frame>` that says what is inside."
    "heading-order" 3.0 Navigation Scored
        "Headings descend one level at a time" "Headings skip levels"
        why "Headings are the table of contents for those who cannot skim."
        fix "Choose levels by structure and sizes by CSS."
    "html-has-lang" 7.0 Language Scored
        "The page states its language" "The page does not state its language"
        why "A screen reader pronounces by it; with the wrong language nobody understands."
        fix "Add `lang` to `<html>`, such as `lang=\"en\"`."
    "html-lang-valid" 7.0 Language Scored
        "The page's language is valid" "The page's language is not valid"
        why "A language that does not exist is as good as none."
        fix "Use a language code of BCP 47, such as `de` or `pt-BR`."
    "html-xml-lang-mismatch" 3.0 Language Scored
        "`xml:lang` agrees with `lang`" "`xml:lang` contradicts `lang`"
        why "Which of the two is read aloud depends on the software."
        fix "Use the same language in both, or remove `xml:lang`."
    "image-alt" 10.0 Names Scored
        "Images have alternative texts" "Images have no alternative text"
        why "Whoever cannot see the image, and every search engine, has only this text."
        fix "Say in `alt` what the image tells, or leave it empty (`alt=\"\"`) where it only decorates."
    "input-button-name" 10.0 Names Scored
        "Input buttons have names" "Input buttons have no name"
        why "A button without a value is announced as \"button\" and nothing more."
        fix "Set `value`, or an `aria-label`."
    "input-image-alt" 10.0 Names Scored
        "Image buttons have alternative texts" "Image buttons have no alternative text"
        why "Without it nobody knows what pressing will do, unless they see it."
        fix "Say in `alt` what the button does."
    "label" 10.0 Names Scored
        "Form fields have labels" "Form fields have no label"
        why "People do not learn what to enter, and a click on the text does nothing."
        fix "Connect a `<label>` to each field by `for`, or wrap the field in it."
    "link-in-text-block" 7.0 Contrast Scored
        "Links in text are told by more than colour" "Links in text are told by colour alone"
        why "Whoever does not see the colour does not see the link."
        fix "Underline links in text, or reach a contrast of 3 to 1 with the words around."
    "link-name" 7.0 Names Scored
        "Links have names" "Links have no name"
        why "A screen reader reads the address instead, letter by letter."
        fix "Put text into the link, or an `alt` on the image inside it."
    "list" 7.0 TablesAndLists Scored
        "Lists contain only list items" "Lists contain other things than list items"
        why "A screen reader counts the items; anything else breaks the count."
        fix "Keep only `<li>`, `<script>` and `<template>` directly inside `<ul>` and `<ol>`."
    "listitem" 7.0 TablesAndLists Scored
        "List items are inside lists" "List items are outside lists"
        why "On its own an item is not announced as part of a list."
        fix "Wrap `<li>` in `<ul>`, `<ol>` or `<menu>`."
    "meta-refresh" 10.0 GoodHabits Scored
        "The page does not reload itself" "The page reloads itself"
        why "Suddenly the focus is back at the top, in the middle of a sentence."
        fix "Remove `<meta http-equiv=\"refresh\">`; update by script, or let people choose."
    "meta-viewport" 10.0 GoodHabits Scored
        "The page can be zoomed" "The page forbids zooming"
        why "Whoever needs larger text cannot have it."
        fix "Remove `user-scalable=no`, and let `maximum-scale` be 5 or more."
    "object-alt" 7.0 Names Scored
        "Embedded objects have alternative texts" "Embedded objects have no alternative text"
        why "What is inside `<object>` cannot be read aloud."
        fix "Add a `title` or `aria-label`."
    "select-name" 10.0 Names Scored
        "Select boxes have labels" "Select boxes have no label"
        why "People hear the options, but not the question."
        fix "Connect a `<label>` by `for`."
    "skip-link" 3.0 Names Scored
        "Skip links lead somewhere that can be focused" "Skip links lead nowhere"
        why "The shortcut past the menu does not work."
        fix "Point the link at an element that exists on the page."
    "tabindex" 7.0 Navigation Scored
        "No `tabindex` above 0" "A `tabindex` is above 0"
        why "The tab order no longer follows the page, and jumps."
        fix "Use 0 and put elements in the order in which they should be reached."
    "target-size" 7.0 GoodHabits Scored
        "Touch targets are large enough or far enough apart" "Touch targets are too small and too close"
        why "Fingers hit the wrong one."
        fix "Make targets at least 24 by 24 pixels, or leave as much room around them."
    "td-headers-attr" 7.0 TablesAndLists Scored
        "`headers` of cells refer to cells of the same table" "`headers` of cells refer to no cell of the same table"
        why "The cell is announced without its heading, or with a wrong one."
        fix "Let `headers` name ids of `<th>` cells in the same table."
    "th-has-data-cells" 7.0 TablesAndLists Informs
        "Column and row headings describe data cells" "Column and row headings describe data cells"
        why "A heading without cells misleads those who hear the table cell by cell."
        fix "Use `<td>` for cells that are no headings, or add the missing cells."
    "valid-lang" 7.0 Language Scored
        "Languages of parts of the page are valid" "Languages of parts of the page are not valid"
        why "A quotation in another language is read in the wrong one."
        fix "Use language codes of BCP 47 in every `lang`."
    "video-caption" 10.0 AudioAndVideo Informs
        "Videos have captions" "Videos have captions"
        why "Whoever cannot hear, or may not turn on the sound, misses what is said."
        fix "Add a `<track kind=\"captions\">`."
    "landmark-one-main" 3.0 GoodHabits Scored
        "The page has a main landmark" "The page has no main landmark"
        why "It lets people jump straight to the content."
        fix "Wrap the content in one `<main>`."
    "autocomplete-valid" 1.0 GoodHabits Scored
        "`autocomplete` has valid values" "`autocomplete` has invalid values"
        why "Browsers cannot fill in what they do not recognise, and some people cannot type much."
        fix "Use the values of the HTML standard, such as `email` or `street-address`."
    "presentation-role-conflict" 1.0 GoodHabits Scored
        "Elements marked as decoration are decoration" "Elements marked as decoration can be focused or have ARIA attributes"
        why "Browsers then ignore the mark, and the element is announced after all."
        fix "Remove `role=presentation` or `none`, or what contradicts it."
    "svg-img-alt" 1.0 GoodHabits Scored
        "SVG images have alternative texts" "SVG images have no alternative text"
        why "A drawing with `role=img` and no name is announced as an image of nothing."
        fix "Add a `<title>` inside the SVG, or an `aria-label`."
    "table-duplicate-name" 0.0 GoodHabits Informs
        "Tables do not repeat their caption as summary" "Tables do not repeat their caption as summary"
        why "The same words are read twice."
        fix "Let the caption name the table and the summary explain it, or drop the summary."
    "empty-heading" 0.0 GoodHabits Informs
        "Headings have text" "Headings have text"
        why "An empty heading is a gap in the table of contents."
        fix "Put text into the heading, or use another element."
    "aria-allowed-role" 0.0 GoodHabits Informs
        "ARIA roles fit their elements" "ARIA roles fit their elements"
        why "A role that contradicts its element confuses assistive technology."
        fix "Use an element that may have the role, or remove the role."
    "image-redundant-alt" 0.0 Names Informs
        "Alternative texts do not repeat the text beside the image" "Alternative texts do not repeat the text beside the image"
        why "The same words are read twice."
        fix "Leave `alt` empty where the text beside it says the same."
    "identical-links-same-purpose" 0.0 GoodHabits Informs
        "Links with the same text lead to the same place" "Links with the same text lead to the same place"
        why "In a list of links they cannot be told apart."
        fix "Give links to different places different texts."
    "label-content-name-mismatch" 0.0 Experimental Scored
        "Names contain the visible text" "Names differ from the visible text"
        why "Whoever speaks to the computer says what they see, and nothing happens."
        fix "Begin the `aria-label` with the words that are visible."
    "table-fake-caption" 0.0 Experimental Scored
        "Tables use `<caption>` for captions" "Tables use merged cells for captions"
        why "A caption in a cell is read as data."
        fix "Use `<caption>`."
    "td-has-header" 0.0 Experimental Scored
        "Cells of large tables have headings" "Cells of large tables have no headings"
        why "Numbers without row and column names mean nothing when heard."
        fix "Use `<th>` with `scope` for headings."
}
