//! `twinlog check FILE`: what a file says, flow by flow, and what is wrong with it. Reaches no cluster.

use std::fmt::Write as _;

use serde_json::{Value, json};
use twinlog_engine::config::{EffectiveOption, FlowOptions, Inspection, Origin, Warning, printable};

use crate::{
    args::{CheckArgs, OutputFormat},
    exit_code::ExitCode,
    load, logging,
};

/// Prints the report and says whether the file can be used.
pub(crate) fn run(args: &CheckArgs) -> ExitCode {
    let inspection = match load::inspection(&args.file) {
        Ok(inspection) => inspection,
        Err(error) => {
            logging::tell(format!("error: {}: {error}\n", args.file.display()).as_bytes());
            return ExitCode::BadConfig;
        }
    };
    let faults = match inspection.result() {
        Ok(()) => Vec::new(),
        Err(errors) => errors.faults().iter().map(ToString::to_string).collect(),
    };
    let report = match args.output {
        OutputFormat::Text => text(&args.file.display().to_string(), &inspection, &faults),
        OutputFormat::Json => format!("{:#}\n", json(&inspection, &faults)),
    };
    logging::print(report.as_bytes());
    if faults.is_empty() { ExitCode::Done } else { ExitCode::BadConfig }
}

fn text(file: &str, inspection: &Inspection, faults: &[String]) -> String {
    let mut report = String::new();
    for flow in inspection.options() {
        let _ = writeln!(report, "flow {}", printable(&flow.flow));
        flow.options.iter().for_each(|option| line(&mut report, option));
        for client in flow.clients.iter().filter(|client| !client.options.is_empty()) {
            let _ = writeln!(report, "  {}", client.client);
            client.options.iter().for_each(|option| line(&mut report, option));
        }
        report.push('\n');
    }
    list(&mut report, "warnings", inspection.warnings());
    list(&mut report, "not needed here, without effect", inspection.not_needed());
    list(&mut report, "without effect until their part is built", inspection.later());
    list(
        &mut report,
        "MirrorMaker 2 does by default, and this version does not do yet",
        inspection.not_yet(),
    );
    list(&mut report, "errors", faults);
    let verdict = match faults.len() {
        0 => "can be used".to_owned(),
        1 => "cannot be used: 1 error".to_owned(),
        count => format!("cannot be used: {count} errors"),
    };
    let _ = writeln!(report, "{file} {verdict}");
    report
}

fn line(report: &mut String, option: &EffectiveOption) {
    let EffectiveOption { name, value, origin, without_effect } = option;
    let place = match origin {
        None => "default".to_owned(),
        Some(Origin { key, line }) if key == name => format!("line {line}"),
        Some(Origin { key, line }) => format!("line {line}: {}", printable(key)),
    };
    let note = without_effect.map(|note| format!("; no effect: {note}")).unwrap_or_default();
    // Blanks at an end would not be seen.
    let quote = if value.trim() != value || value.is_empty() { "\"" } else { "" };
    let name = printable(name);
    let _ = writeln!(report, "    {name} = {quote}{value}{quote}   ({place}{note})");
}

fn list<T: std::fmt::Display>(report: &mut String, title: &str, items: &[T]) {
    if items.is_empty() {
        return;
    }
    let _ = writeln!(report, "{title}");
    for item in items {
        let _ = writeln!(report, "    {item}");
    }
    report.push('\n');
}

fn json(inspection: &Inspection, faults: &[String]) -> Value {
    let warning =
        |warning: &Warning| json!({"origin": warning.origin.as_ref().map(origin), "text": warning.text});
    json!({
        "usable": faults.is_empty(),
        "flows": inspection.options().iter().map(flow).collect::<Vec<_>>(),
        "errors": faults,
        "warnings": inspection.warnings().iter().map(warning).collect::<Vec<_>>(),
        "not_needed": inspection.not_needed().iter().map(origin).collect::<Vec<_>>(),
        "later": inspection.later().iter().map(origin).collect::<Vec<_>>(),
        "not_yet": inspection.not_yet(),
    })
}

fn flow(flow: &FlowOptions) -> Value {
    let clients = flow.clients.iter().map(|client| (client.client.to_owned(), options(&client.options)));
    json!({
        "flow": flow.flow,
        "options": options(&flow.options),
        "clients": clients.collect::<serde_json::Map<_, _>>(),
    })
}

fn options(options: &[EffectiveOption]) -> Value {
    let option = |option: &EffectiveOption| {
        let EffectiveOption { name, value, origin: place, without_effect } = option;
        json!({
            "name": name, "value": value, "origin": place.as_ref().map(origin), "without_effect": without_effect,
        })
    };
    options.iter().map(option).collect()
}

fn origin(origin: &Origin) -> Value {
    json!({"key": origin.key, "line": origin.line})
}
