//! Keys by name, on a keyboard with the layout of the United States (UI Events KeyboardEvent key
//! and code values).

/// A key as the DevTools protocol describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyDefinition {
    pub key: String,
    pub code: String,
    /// The Windows virtual key code, which pages read as `keyCode`.
    pub key_code: u32,
    /// The text that pressing the key enters.
    pub text: Option<String>,
    /// The bit of a modifier in the DevTools protocol; 0 for other keys.
    pub modifier: u32,
}

/// A key that is pressed while modifiers are held down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyPress {
    pub modifiers: Vec<KeyDefinition>,
    pub key: KeyDefinition,
}

/// Keys with a name: key, code and key code.
const NAMED: [(&str, &str, u32); 31] = [
    ("Enter", "Enter", 13),
    ("Tab", "Tab", 9),
    ("Escape", "Escape", 27),
    ("Backspace", "Backspace", 8),
    ("Delete", "Delete", 46),
    ("Insert", "Insert", 45),
    ("Home", "Home", 36),
    ("End", "End", 35),
    ("PageUp", "PageUp", 33),
    ("PageDown", "PageDown", 34),
    ("ArrowLeft", "ArrowLeft", 37),
    ("ArrowUp", "ArrowUp", 38),
    ("ArrowRight", "ArrowRight", 39),
    ("ArrowDown", "ArrowDown", 40),
    ("Shift", "ShiftLeft", 16),
    ("Control", "ControlLeft", 17),
    ("Alt", "AltLeft", 18),
    ("Meta", "MetaLeft", 91),
    ("CapsLock", "CapsLock", 20),
    ("F1", "F1", 112),
    ("F2", "F2", 113),
    ("F3", "F3", 114),
    ("F4", "F4", 115),
    ("F5", "F5", 116),
    ("F6", "F6", 117),
    ("F7", "F7", 118),
    ("F8", "F8", 119),
    ("F9", "F9", 120),
    ("F10", "F10", 121),
    ("F11", "F11", 122),
    ("F12", "F12", 123),
];

/// Keys of punctuation: the two characters, code and key code.
const PUNCTUATION: [(char, char, &str, u32); 11] = [
    ('-', '_', "Minus", 189),
    ('=', '+', "Equal", 187),
    ('[', '{', "BracketLeft", 219),
    (']', '}', "BracketRight", 221),
    ('\\', '|', "Backslash", 220),
    (';', ':', "Semicolon", 186),
    ('\'', '"', "Quote", 222),
    (',', '<', "Comma", 188),
    ('.', '>', "Period", 190),
    ('/', '?', "Slash", 191),
    ('`', '~', "Backquote", 192),
];

/// The characters of the digits with Shift, from 0.
const SHIFTED_DIGITS: &str = ")!@#$%^&*(";

impl KeyDefinition {
    /// Returns the key with this name, such as `Enter` or `a`.
    pub fn of(name: &str) -> Option<Self> {
        if let Some((key, code, key_code)) = NAMED.iter().find(|(key, ..)| *key == name) {
            return Some(Self {
                key: (*key).to_owned(),
                code: (*code).to_owned(),
                key_code: *key_code,
                text: (*key == "Enter").then(|| "\r".to_owned()),
                modifier: match *key {
                    "Alt" => 1,
                    "Control" => 2,
                    "Meta" => 4,
                    "Shift" => 8,
                    _ => 0,
                },
            });
        }
        let mut characters = name.chars();
        let (character, None) = (characters.next()?, characters.next()) else {
            return (name == "Space").then(|| Self::typed(' ', "Space".to_owned(), 32));
        };
        let upper = character.to_ascii_uppercase();
        let (code, key_code) = if character == ' ' {
            ("Space".to_owned(), 32)
        } else if upper.is_ascii_uppercase() {
            (format!("Key{upper}"), u32::from(upper))
        } else if character.is_ascii_digit() {
            (format!("Digit{character}"), u32::from(character))
        } else if let Some(digit) = SHIFTED_DIGITS.find(character) {
            (format!("Digit{digit}"), u32::from('0') + digit as u32)
        } else {
            let (_, _, code, key_code) = PUNCTUATION
                .iter()
                .find(|(plain, shifted, ..)| [plain, shifted].contains(&&character))?;
            ((*code).to_owned(), *key_code)
        };
        Some(Self::typed(character, code, key_code))
    }

    fn typed(character: char, code: String, key_code: u32) -> Self {
        Self {
            key: character.to_string(),
            code,
            key_code,
            text: Some(character.to_string()),
            modifier: 0,
        }
    }
}

impl KeyPress {
    /// Reads a key with modifiers before it: `Enter`, `Control+a`, `Control+Shift++`.
    pub fn of(text: &str) -> Option<Self> {
        let mut rest = text;
        let mut modifiers = Vec::new();
        while let Some((name, next)) = rest.split_once('+').filter(|(name, _)| !name.is_empty()) {
            let modifier = KeyDefinition::of(name).filter(|key| key.modifier != 0)?;
            modifiers.push(modifier);
            rest = next;
        }
        let key = KeyDefinition::of(rest)?;
        Some(Self { modifiers, key })
    }
}
