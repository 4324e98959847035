//! The report for machines: one JSON object, values whole, secrets masked. `CONFIGURATION.md` tells its shape.

use std::io::{self, Write};

use serde_json::{Map, Value, json};
use twinlog_engine::config::{
    EffectiveOption, Fault, FlowOptions, Inspection, Origin, Warning, is_unprintable,
};

use crate::load::LoadError;

/// Writes the whole report. Flow by flow: a thousand of them may hold one long value each.
pub(super) fn report(
    out: &mut dyn Write,
    file: &str,
    inspection: &Inspection,
    faults: &[Fault],
) -> io::Result<()> {
    let mut object = Members::begin(out)?;
    object.member("file", &json!(file))?;
    object.member("usable", &json!(faults.is_empty()))?;
    object.list("flows", inspection.options().iter().map(flow))?;
    object.list("errors", faults.iter().map(fault))?;
    object.list("warnings", inspection.warnings().iter().map(warning))?;
    object.list("not_needed", inspection.not_needed().iter().map(warning))?;
    object.list("later", inspection.later().iter().map(warning))?;
    object.list("not_yet", inspection.not_yet().iter().map(|words| json!(words)))?;
    object.end()
}

/// The same for a file that could not be read.
pub(super) fn unread(out: &mut dyn Write, file: &str, error: &LoadError) -> io::Result<()> {
    let errors = error.sentences().into_iter().map(|sentence| Fault { reason: sentence, ..Fault::default() });
    report(out, file, &Inspection::default(), &errors.collect::<Vec<_>>())
}

/// An object that is written member by member.
struct Members<'o> {
    out: &'o mut dyn Write,
    separator: &'static str,
}

impl<'o> Members<'o> {
    fn begin(out: &'o mut dyn Write) -> io::Result<Self> {
        write!(out, "{{")?;
        Ok(Self { out, separator: "" })
    }

    fn name(&mut self, name: &str) -> io::Result<()> {
        write!(self.out, "{}\n  \"{name}\": ", self.separator)?;
        self.separator = ",";
        Ok(())
    }

    fn member(&mut self, name: &str, value: &Value) -> io::Result<()> {
        self.name(name)?;
        write!(self.out, "{}", seen(value, ""))
    }

    fn list(&mut self, name: &str, items: impl Iterator<Item = Value>) -> io::Result<()> {
        self.name(name)?;
        write!(self.out, "[")?;
        let mut end = "]";
        for (place, item) in items.enumerate() {
            let comma = if place == 0 { "" } else { "," };
            write!(self.out, "{comma}\n    {}", seen(&item, "    "))?;
            end = "\n  ]";
        }
        write!(self.out, "{end}")
    }

    fn end(self) -> io::Result<()> {
        writeln!(self.out, "\n}}")
    }
}

/// A value as text that also a terminal may get: beyond what JSON asks for, all that steers it is escaped. Such characters
/// stand in strings only.
fn seen(value: &Value, indent: &str) -> String {
    let text = format!("{value:#}");
    let mut seen = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => seen.extend(["\n", indent]),
            c if is_unprintable(c) => {
                let units = c.encode_utf16(&mut [0; 2]).to_vec();
                seen.extend(units.iter().map(|unit| format!("\\u{unit:04x}")));
            }
            c => seen.push(c),
        }
    }
    seen
}

fn fault(fault: &Fault) -> Value {
    told(
        &fault.message(),
        fault.key.as_deref(),
        fault.line,
        fault.value.as_deref(),
        &fault.others,
        &fault.reason,
        &fault.remedy,
    )
}

fn warning(warning: &Warning) -> Value {
    let (key, line) = match &warning.origin {
        Some(Origin { key, line }) => (Some(key.as_str()), Some(*line)),
        None => (None, None),
    };
    told(
        &warning.message(),
        key,
        line,
        warning.value.as_deref(),
        &warning.others,
        &warning.text,
        &warning.remedy,
    )
}

fn told(
    message: &str,
    key: Option<&str>,
    line: Option<usize>,
    value: Option<&str>,
    others: &[Origin],
    reason: &str,
    remedy: &str,
) -> Value {
    let remedy = Some(remedy).filter(|remedy| !remedy.is_empty());
    json!({
        "message": message,
        "key": key,
        "line": line,
        "value": value,
        "others": others.iter().map(place).collect::<Value>(),
        "reason": reason,
        "remedy": remedy,
    })
}

fn place(origin: &Origin) -> Value {
    json!({"key": origin.key, "line": origin.line})
}

fn flow(flow: &FlowOptions) -> Value {
    let clients = flow.clients.iter().map(|client| (client.client.to_owned(), options(&client.options)));
    json!({
        "flow": flow.flow,
        "options": options(&flow.options),
        "clients": clients.collect::<Map<_, _>>(),
    })
}

fn options(options: &[EffectiveOption]) -> Value {
    let option = |option: &EffectiveOption| {
        let EffectiveOption { name, value, origin, taken_as, without_effect } = option;
        let origin = origin.as_ref().map(place);
        json!({
            "name": name,
            "value": &**value,
            "origin": origin,
            "taken_as": taken_as.as_ref().map(|taken| &taken.value),
            "taken_as_reason": taken_as.as_ref().map(|taken| &taken.why),
            "without_effect": without_effect,
        })
    };
    options.iter().map(option).collect()
}
