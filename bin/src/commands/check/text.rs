//! The report for people: each fact on one line, whatever the file holds.

use std::io::{self, Write};

use twinlog_engine::config::{EffectiveOption, Fault, Inspection, Origin, in_a_line, printable};

/// Writes the whole report.
pub(super) fn report(
    out: &mut dyn Write,
    file: &str,
    inspection: &Inspection,
    faults: &[Fault],
) -> io::Result<()> {
    for flow in inspection.options() {
        writeln!(out, "flow {}", in_a_line(&flow.flow))?;
        flow.options.iter().try_for_each(|option| line(out, option))?;
        for client in flow.clients.iter().filter(|client| !client.options.is_empty()) {
            writeln!(out, "  {}", client.client)?;
            client.options.iter().try_for_each(|option| line(out, option))?;
        }
        writeln!(out)?;
    }
    list(out, "warnings", inspection.warnings(), |warning| &warning.others)?;
    list(out, "not needed here, without effect", inspection.not_needed(), |_| &[])?;
    list(out, "without effect until their part is built", inspection.later(), |_| &[])?;
    let not_yet = "MirrorMaker 2 does by default, and this version does not do yet";
    list(out, not_yet, inspection.not_yet(), |_| &[])?;
    list(out, "errors", faults, |fault| &fault.others)?;
    let verdict = match faults.len() {
        0 => "can be used".to_owned(),
        1 => "cannot be used: 1 error".to_owned(),
        count => format!("cannot be used: {count} errors"),
    };
    writeln!(out, "{} {verdict}", printable(file))
}

fn line(out: &mut dyn Write, option: &EffectiveOption) -> io::Result<()> {
    let EffectiveOption { name, value, origin, taken_as, without_effect } = option;
    let place = match origin {
        None => "default".to_owned(),
        Some(Origin { key, line }) if key == name => format!("line {line}"),
        Some(Origin { key, line }) => format!("line {line}: {}", in_a_line(key)),
    };
    let note = without_effect.map(|note| format!("; no effect: {note}")).unwrap_or_default();
    let instead = taken_as.as_ref().map(|taken| format!("; taken as {}: {}", taken.value, taken.why));
    let instead = instead.unwrap_or_default();
    // Blanks at an end would not be seen.
    let quote = if value.trim() != &**value || value.is_empty() { "\"" } else { "" };
    let (name, value) = (in_a_line(name), in_a_line(value));
    writeln!(out, "    {name} = {quote}{value}{quote}   ({place}{instead}{note})")
}

/// `others`: further keys of which the same is said, each on a line below.
fn list<T: std::fmt::Display>(
    out: &mut dyn Write,
    title: &str,
    items: &[T],
    others: impl Fn(&T) -> &[Origin],
) -> io::Result<()> {
    if items.is_empty() {
        return Ok(());
    }
    writeln!(out, "{title}")?;
    for item in items {
        writeln!(out, "    {item}")?;
        others(item).iter().try_for_each(|other| writeln!(out, "        {other}"))?;
    }
    writeln!(out)
}
