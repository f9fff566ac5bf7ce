//! Parses selectors.

use super::{Compound, Condition, Place, Selector, Step, Test};

/// The maximum length of a selector.
const MAX_CHARS: usize = 1000;

/// The rest of a selector.
struct Input<'a> {
    rest: &'a str,
}

/// Parses a selector list. The error is the reason why it cannot be used.
pub fn parse(selector: &str) -> Result<Selector, String> {
    if selector.chars().count() > MAX_CHARS {
        return Err(format!("it has more than {MAX_CHARS} characters"));
    }
    let mut input = Input {
        rest: selector.trim(),
    };
    let mut steps = input.alternative()?;
    while input.skip(",") {
        input.skip_blanks();
        steps.extend(input.alternative()?);
    }
    if let Some(c) = input.rest.chars().next() {
        return Err(format!("`{c}` is unexpected"));
    }
    Ok(Selector { steps })
}

impl Input<'_> {
    fn skip(&mut self, text: &str) -> bool {
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Skips blanks and returns whether there were some.
    fn skip_blanks(&mut self) -> bool {
        let length = self.rest.len();
        self.rest = self.rest.trim_start();
        self.rest.len() < length
    }

    fn expect(&mut self, text: &str) -> Result<(), String> {
        if self.skip(text) {
            Ok(())
        } else {
            Err(format!("`{text}` is missing"))
        }
    }

    /// Parses up to a comma or the end.
    fn alternative(&mut self) -> Result<Vec<Step>, String> {
        let mut steps = Vec::new();
        let mut place = Place::Anywhere;
        loop {
            steps.push(Step {
                place,
                compound: self.compound()?,
                is_subject: false,
            });
            let has_blanks = self.skip_blanks();
            place = if self.skip(">") {
                self.skip_blanks();
                Place::Child
            } else if self.rest.is_empty() || self.rest.starts_with(',') {
                break;
            } else if self.rest.starts_with(['+', '~']) {
                return Err("siblings cannot be selected".to_owned());
            } else if has_blanks {
                Place::Descendant
            } else {
                break;
            };
        }
        if let Some(subject) = steps.last_mut() {
            subject.is_subject = true;
        }
        Ok(steps)
    }

    fn compound(&mut self) -> Result<Compound, String> {
        let mut compound = Compound::default();
        let has_star = self.skip("*");
        if !has_star && self.rest.starts_with(is_name_char) {
            compound.name = Some(self.name()?.to_ascii_lowercase());
        }
        let is_named = has_star || compound.name.is_some();
        loop {
            let condition = if self.skip("#") {
                attribute("id", Test::Equals(self.name()?))
            } else if self.skip(".") {
                attribute("class", Test::HasWord(self.name()?))
            } else if self.skip("[") {
                self.attribute()?
            } else if self.skip(":") {
                self.pseudo_class()?
            } else {
                break;
            };
            compound.conditions.push(condition);
        }
        if !is_named && compound.conditions.is_empty() {
            return Err("an element is missing".to_owned());
        }
        Ok(compound)
    }

    /// Parses a name, in which a backslash escapes the next character.
    fn name(&mut self) -> Result<String, String> {
        let mut name = String::new();
        let mut chars = self.rest.char_indices();
        let end = loop {
            match chars.next() {
                Some((_, '\\')) => name.extend(chars.next().map(|(_, c)| c)),
                Some((_, c)) if is_name_char(c) => name.push(c),
                Some((position, _)) => break position,
                None => break self.rest.len(),
            }
        };
        self.rest = &self.rest[end..];
        if name.is_empty() {
            return Err("a name is missing".to_owned());
        }
        Ok(name)
    }

    /// Parses a condition after its opening bracket.
    fn attribute(&mut self) -> Result<Condition, String> {
        self.skip_blanks();
        let name = self.name()?.to_ascii_lowercase();
        self.skip_blanks();
        if self.skip("]") {
            return Ok(attribute(&name, Test::Present));
        }
        let operators = ["=", "~=", "^=", "$=", "*=", "|="];
        let operator = operators.into_iter().find(|text| self.skip(text));
        let test = match operator.ok_or("`]` is missing")? {
            "=" => Test::Equals,
            "~=" => Test::HasWord,
            "^=" => Test::StartsWith,
            "$=" => Test::EndsWith,
            "*=" => Test::Contains,
            _ => Test::StartsWithPart,
        };
        self.skip_blanks();
        let value = self.value()?;
        self.skip_blanks();
        self.expect("]")?;
        Ok(attribute(&name, test(value)))
    }

    /// Parses a value with or without quotes.
    fn value(&mut self) -> Result<String, String> {
        for quote in ["\"", "'"] {
            if self.skip(quote) {
                let end = self.rest.find(quote).ok_or("a quote is missing")?;
                let value = self.rest[..end].to_owned();
                self.rest = &self.rest[end + 1..];
                return Ok(value);
            }
        }
        self.name()
    }

    /// Parses a pseudo-class after its colon.
    fn pseudo_class(&mut self) -> Result<Condition, String> {
        let name = self.name()?;
        let condition = match name.as_str() {
            "first-child" => Condition::NthChild(1),
            "first-of-type" => Condition::NthOfType(1),
            "nth-child" => Condition::NthChild(self.number()?),
            "nth-of-type" => Condition::NthOfType(self.number()?),
            "not" => {
                self.expect("(")?;
                self.skip_blanks();
                let compound = self.compound()?;
                self.skip_blanks();
                self.expect(")")?;
                Condition::Not(compound)
            }
            _ => return Err(format!("`:{name}` is unknown")),
        };
        Ok(condition)
    }

    /// Parses a number in parentheses.
    fn number(&mut self) -> Result<usize, String> {
        self.expect("(")?;
        let end = self.rest.find(')').ok_or("`)` is missing")?;
        let number = self.rest[..end].trim().parse();
        self.rest = &self.rest[end + 1..];
        number.map_err(|_| "the position is not a number".to_owned())
    }
}

fn attribute(name: &str, test: Test) -> Condition {
    Condition::Attribute {
        name: name.to_owned(),
        test,
    }
}

fn is_name_char(c: char) -> bool {
    c.is_alphanumeric() || !c.is_ascii() || "-_\\".contains(c)
}
