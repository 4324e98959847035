//! Java's spelling of regular expressions, written as our engine spells it.
//!
//! What both read alike passes. What only Java knows is rewritten. What Java refuses is refused: MM2 would not start
//! with it. Classes are ASCII where Java's are.
//!
//! # References
//! `java.util.regex.Pattern` (JDK 17): `sequence`, `atom`, `closure`, `clazz`, `range`, `escape`, `group0`.

use std::iter::Peekable;
use std::str::Chars;

/// Blanks within a line, line ends, and any white space, as the inside of a class.
const BLANKS: &str = " \\t";
const LINE_ENDS: &str = "\\n\\x0B\\x0C\\r";
const WHITE_SPACE: &str = " \\t\\n\\x0B\\x0C\\r";

/// `\p{…}` with a name of Java's own, as the inside of a class.
const PROPERTIES: &[(&str, &str)] = &[
    ("ASCII", "\\x00-\\x7F"),
    ("Alnum", "0-9A-Za-z"),
    ("Alpha", "A-Za-z"),
    ("Blank", BLANKS),
    ("Cntrl", "\\x00-\\x1F\\x7F"),
    ("Digit", "0-9"),
    ("Graph", "!-~"),
    ("Lower", "a-z"),
    ("Print", " -~"),
    ("Punct", "!-/:-@\\[-`{-~"),
    ("Space", WHITE_SPACE),
    ("Upper", "A-Z"),
    ("XDigit", "0-9A-Fa-f"),
    ("javaAlphabetic", "\\p{Alphabetic}"),
    ("javaDigit", "\\p{Nd}"),
    ("javaLetter", "\\p{L}"),
    ("javaLetterOrDigit", "\\p{L}\\p{Nd}"),
    ("javaLowerCase", "\\p{Lowercase}"),
    ("javaUpperCase", "\\p{Uppercase}"),
    ("javaWhitespace", " \\t\\n\\x0B\\x0C\\r\\x1C-\\x1F"),
];

/// Classes within classes: nobody writes three.
const CLASSES_MAX: usize = 50;

const UNCLOSED: &str = "a class has no `]`";

/// Writes a Java pattern for the engine.
///
/// # Errors
/// Why Java does not take it, or what of it has no counterpart here.
pub(super) fn translate(pattern: &str) -> Result<String, String> {
    let mut translator =
        Translator { rest: pattern.chars().peekable(), out: String::new(), has_atom: false, classes: 0 };
    translator.sequence()?;
    Ok(translator.out)
}

struct Translator<'p> {
    rest: Peekable<Chars<'p>>,
    out: String,
    /// Whether a quantifier has something to repeat.
    has_atom: bool,
    /// Classes that are open.
    classes: usize,
}

/// What an escape stands for.
enum Escaped {
    Literal(char),
    /// The inside of a class, and whether it is negated.
    Set(String, bool),
    /// A text of the engine's that stands for no character.
    Other(String),
    /// Up to `\E` everything is literal.
    Quoted(String),
}

impl Translator<'_> {
    fn sequence(&mut self) -> Result<(), String> {
        while let Some(next) = self.rest.next() {
            match next {
                '\\' => self.escape_in_sequence()?,
                '[' => {
                    self.class()?;
                    self.has_atom = true;
                }
                '(' => self.group()?,
                '|' => self.plain('|', false),
                '{' => self.counted()?,
                '*' | '+' | '?' if !self.has_atom => return Err(format!("`{next}` has nothing to repeat")),
                '*' | '+' | '?' => self.quantifier(&next.to_string()),
                // Never special outside of a class in Java.
                ']' | '}' | '#' | '&' | '~' | '-' => self.literal(next),
                _ => self.plain(next, true),
            }
        }
        Ok(())
    }

    fn plain(&mut self, next: char, is_atom: bool) {
        self.out.push(next);
        self.has_atom = is_atom;
    }

    fn literal(&mut self, next: char) {
        push_literal(&mut self.out, next);
        self.has_atom = true;
    }

    /// A quantifier with what makes it lazy or possessive. Java repeats nothing twice.
    fn quantifier(&mut self, text: &str) {
        self.out.push_str(text);
        if let Some(kind) = self.rest.next_if(|next| matches!(next, '?' | '+')) {
            self.out.push(kind);
        }
        self.has_atom = false;
    }

    /// `{n}`, `{n,}`, `{n,m}`; anything else behind a brace is an error in Java.
    fn counted(&mut self) -> Result<(), String> {
        let mut count = String::new();
        while let Some(next) = self.rest.next_if(|next| next.is_ascii_digit() || *next == ',') {
            count.push(next);
        }
        let (least, most) = count.split_once(',').map_or((count.as_str(), None), |(l, m)| (l, Some(m)));
        let number = |text: &str| text.parse::<u32>().ok();
        let is_count =
            number(least).is_some() && most.is_none_or(|most| most.is_empty() || number(most).is_some());
        if !is_count || self.rest.next() != Some('}') {
            return Err("`{` begins no count such as {2}".to_owned());
        }
        if most.and_then(number).is_some_and(|most| Some(most) < number(least)) {
            return Err(format!("`{{{count}}}` counts down"));
        }
        if self.has_atom {
            self.quantifier(&format!("{{{count}}}"));
        }
        // With nothing before it Java repeats nothing, that many times.
        Ok(())
    }

    /// What follows `(`: kinds of groups pass, of flags those that the engine has.
    fn group(&mut self) -> Result<(), String> {
        self.plain('(', false);
        if self.rest.next_if_eq(&'?').is_none() {
            return Ok(());
        }
        self.out.push('?');
        let mut flags = String::new();
        while let Some(flag) = self.rest.next_if(|next| next.is_ascii_alphabetic() || *next == '-') {
            match flag {
                'i' | 'm' | 's' | 'x' | '-' => flags.push(flag),
                // Line ends, and Unicode for case and classes: nothing that names have.
                'd' | 'u' | 'U' => {}
                _ => return Err(format!("`(?{flag}` is no kind of group")),
            }
        }
        let flags = flags.trim_end_matches('-');
        self.out.push_str(flags);
        if self.rest.peek() == Some(&')') && flags.is_empty() {
            self.out.push(':');
        }
        if self.rest.next_if_eq(&'<').is_some() {
            self.out.push('<');
            let behind = self.rest.next_if(|next| matches!(next, '=' | '!'));
            self.out.extend(behind);
        } else {
            let kind = self.rest.next_if(|next| matches!(next, ':' | '=' | '!' | '>'));
            self.out.extend(kind);
        }
        Ok(())
    }

    fn escape_in_sequence(&mut self) -> Result<(), String> {
        match self.escape(false)? {
            Escaped::Literal(next) => self.literal(next),
            Escaped::Set(inside, negated) => {
                self.out.push_str(&class_of(&inside, negated));
                self.has_atom = true;
            }
            Escaped::Other(text) => {
                self.out.push_str(&text);
                self.has_atom = true;
            }
            Escaped::Quoted(text) => text.chars().for_each(|next| self.literal(next)),
        }
        Ok(())
    }

    /// A class, behind its `[`.
    fn class(&mut self) -> Result<(), String> {
        self.classes += 1;
        if self.classes > CLASSES_MAX {
            return Err(format!("more than {CLASSES_MAX} classes lie in one another"));
        }
        self.out.push('[');
        self.out.extend(self.rest.next_if_eq(&'^'));
        let mut is_empty = true;
        loop {
            match self.rest.next().ok_or(UNCLOSED)? {
                ']' if !is_empty => {
                    self.out.push(']');
                    self.classes -= 1;
                    return Ok(());
                }
                '[' => self.class()?,
                '&' if self.rest.peek() == Some(&'&') => {
                    while self.rest.next_if_eq(&'&').is_some() {}
                    if is_empty {
                        continue;
                    }
                    self.out.push_str("&&");
                }
                '\\' => match self.escape(true)? {
                    Escaped::Literal(next) => self.range(next)?,
                    Escaped::Set(inside, false) => self.out.push_str(&inside),
                    Escaped::Set(inside, true) => self.out.push_str(&class_of(&inside, true)),
                    Escaped::Quoted(text) => text.chars().for_each(|next| push_literal(&mut self.out, next)),
                    Escaped::Other(text) => return Err(format!("`{text}` cannot stand in a class")),
                },
                next => self.range(next)?,
            }
            is_empty = false;
        }
    }

    /// A character of a class, and the end of the range that it begins, if it does.
    fn range(&mut self, first: char) -> Result<(), String> {
        push_literal(&mut self.out, first);
        let mut ahead = self.rest.clone();
        let begins_range = ahead.next() == Some('-') && !matches!(ahead.next(), None | Some(']' | '['));
        if !begins_range {
            if first == ':' {
                // A range of one: the engine reads `[:alpha:]` as POSIX does, Java as five letters and a colon.
                self.out.push_str("-\\x3A");
            }
            return Ok(());
        }
        self.rest.next();
        let last = match self.rest.next() {
            Some('\\') => match self.escape(true)? {
                Escaped::Literal(last) => last,
                _ => return Err(format!("the range from `{first}` ends in no character")),
            },
            Some(last) => last,
            None => return Err(UNCLOSED.to_owned()),
        };
        if last < first {
            return Err(format!("the range `{first}-{last}` runs backwards"));
        }
        self.out.push('-');
        push_literal(&mut self.out, last);
        Ok(())
    }

    /// What stands behind a backslash.
    fn escape(&mut self, in_class: bool) -> Result<Escaped, String> {
        let next = self.rest.next().ok_or("a backslash at the end escapes nothing")?;
        let set = |inside: &str, negated| Ok(Escaped::Set(inside.to_owned(), negated));
        let other = |text: &str| Ok(Escaped::Other(text.to_owned()));
        match next {
            'Q' => Ok(Escaped::Quoted(self.quoted())),
            'd' | 'D' => set("0-9", next == 'D'),
            'h' | 'H' => set(BLANKS, next == 'H'),
            's' | 'S' => set(WHITE_SPACE, next == 'S'),
            'v' | 'V' => set(LINE_ENDS, next == 'V'),
            'w' | 'W' => set("0-9A-Z_a-z", next == 'W'),
            'p' | 'P' => self.property(next == 'P'),
            '0' => self.octal(),
            'x' => self.hexadecimal(),
            'u' => self.digits(4).and_then(character).map(Escaped::Literal),
            'c' => {
                let control = self.rest.next().ok_or("`\\c` names no character")?;
                character(u32::from(control) ^ 64).map(Escaped::Literal)
            }
            'a' => Ok(Escaped::Literal('\u{7}')),
            'e' => Ok(Escaped::Literal('\u{1B}')),
            'f' => Ok(Escaped::Literal('\u{C}')),
            'n' => Ok(Escaped::Literal('\n')),
            'r' => Ok(Escaped::Literal('\r')),
            't' => Ok(Escaped::Literal('\t')),
            'R' if !in_class => other("(?:\\r\\n|[\\n\\x0B\\x0C\\r])"),
            'Z' | 'z' if !in_class => other("\\z"),
            'A' | 'B' | 'G' | 'b' | 'k' | '1'..='9' if !in_class => other(&format!("\\{next}")),
            _ if next.is_ascii_alphanumeric() => Err(format!("`\\{next}` is no escape that is known here")),
            _ => Ok(Escaped::Literal(next)),
        }
    }

    fn quoted(&mut self) -> String {
        let mut text = String::new();
        while let Some(next) = self.rest.next() {
            if next == '\\' && self.rest.next_if_eq(&'E').is_some() {
                break;
            }
            text.push(next);
        }
        text
    }

    fn property(&mut self, negated: bool) -> Result<Escaped, String> {
        let name: String = match self.rest.next() {
            Some('{') => self.until_brace(),
            Some(category) => category.to_string(),
            None => return Err("`\\p` names no property".to_owned()),
        };
        let known = PROPERTIES.iter().find(|(known, _)| *known == name);
        let inside = match known {
            Some((_, inside)) => (*inside).to_owned(),
            // Categories and scripts by Java's long or short name; the engine says which it does not know.
            None => format!("\\p{{{}}}", name.strip_prefix("Is").unwrap_or(&name)),
        };
        Ok(Escaped::Set(inside, negated))
    }

    fn until_brace(&mut self) -> String {
        self.rest.by_ref().take_while(|next| *next != '}').collect()
    }

    fn octal(&mut self) -> Result<Escaped, String> {
        let mut value = 0;
        let mut digits = 0;
        while digits < 3 && value * 8 < 256 {
            let Some(digit) = self.rest.next_if(|next| ('0'..='7').contains(next)) else { break };
            value = value * 8 + digit.to_digit(8).unwrap_or(0);
            digits += 1;
        }
        if digits == 0 {
            return Err("`\\0` is followed by no octal number".to_owned());
        }
        character(value).map(Escaped::Literal)
    }

    fn hexadecimal(&mut self) -> Result<Escaped, String> {
        if self.rest.next_if_eq(&'{').is_none() {
            return self.digits(2).and_then(character).map(Escaped::Literal);
        }
        let text = self.until_brace();
        let value = u32::from_str_radix(&text, 16).map_err(|_| format!("`\\x{{{text}}}` is no number"))?;
        character(value).map(Escaped::Literal)
    }

    /// A number of exactly so many hexadecimal digits.
    fn digits(&mut self, count: usize) -> Result<u32, String> {
        let text: String = self.rest.by_ref().take(count).collect();
        let is_number = text.len() == count && text.chars().all(|digit| digit.is_ascii_hexdigit());
        let value = u32::from_str_radix(&text, 16).ok().filter(|_| is_number);
        value.ok_or_else(|| format!("`{text}` are not {count} hexadecimal digits"))
    }
}

fn character(value: u32) -> Result<char, String> {
    char::from_u32(value).ok_or_else(|| format!("{value:#x} is no character"))
}

fn class_of(inside: &str, negated: bool) -> String {
    format!("[{}{inside}]", if negated { "^" } else { "" })
}

/// A character that stands for itself, in a class or outside.
fn push_literal(out: &mut String, next: char) {
    if next.is_ascii_alphanumeric() || next == '_' || !next.is_ascii() {
        out.push(next);
    } else {
        out.push_str(&format!("\\x{:02X}", u32::from(next)));
    }
}
