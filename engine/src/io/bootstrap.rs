//! Reads `bootstrap.servers`: which brokers to try first. Pure.
//!
//! Takes what Kafka's clients take (`ClientUtils.parseAndValidateAddresses`): blanks, empty entries, a protocol
//! prefix that says nothing, IPv6 with or without brackets. Names every bad entry, not only the first.

use std::net::Ipv6Addr;

pub use crate::machine::metadata::HostPort;

/// What `bootstrap.servers` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bootstrap {
    /// The brokers to try, in the order typed, each once. Never empty.
    pub servers: Vec<HostPort>,
    /// Things that were taken but deserve a line in the log at start.
    pub notes: Vec<String>,
}

/// Why `bootstrap.servers` cannot be used: all bad entries at once.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BootstrapError {
    /// Nothing but blanks and commas.
    #[error("bootstrap.servers names no broker: give at least one host:port")]
    Empty,
    /// Entries that are no address.
    #[error("bootstrap.servers: {}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    BadEntries(Vec<BadEntry>),
}

/// One entry that is no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{entry}\" {reason}")]
pub struct BadEntry {
    /// The entry as typed.
    pub entry: String,
    /// What is wrong with it, as the rest of a sentence that begins with the entry.
    pub reason: &'static str,
}

impl Bootstrap {
    /// Reads the comma-separated list.
    ///
    /// # Errors
    /// [`BootstrapError`] when no entry is there or any entry is no address.
    pub fn parse(list: &str) -> Result<Self, BootstrapError> {
        let mut servers = Vec::new();
        let mut notes = Vec::new();
        let mut bad = Vec::new();
        if !list.trim().is_empty() && list.split(',').any(|entry| entry.trim().is_empty()) {
            notes.push(
                "bootstrap.servers: an empty entry is left out; MM2 4.3 does not start with one".to_owned(),
            );
        }
        for entry in list.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
            match parse_entry(entry, &mut notes) {
                Ok(server) if servers.contains(&server) => {}
                Ok(server) => servers.push(server),
                Err(reason) => bad.push(BadEntry { entry: entry.to_owned(), reason }),
            }
        }
        if !bad.is_empty() {
            Err(BootstrapError::BadEntries(bad))
        } else if servers.is_empty() {
            Err(BootstrapError::Empty)
        } else {
            Ok(Bootstrap { servers, notes })
        }
    }
}

fn parse_entry(entry: &str, notes: &mut Vec<String>) -> Result<HostPort, &'static str> {
    if let Some(reason) = of_the_list(entry) {
        return Err(reason);
    }
    let address = match entry.split_once("://") {
        Some((protocol, address)) => {
            if protocol.is_empty() || !protocol.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
                return Err("has no protocol before ://");
            }
            notes.push(format!(
                "bootstrap.servers: the prefix of \"{entry}\" says nothing, security.protocol decides"
            ));
            address
        }
        None => entry,
    };
    let (host, port) = split_port(address)?;
    let port = parse_port(port)?;
    let host = if let Some(inner) = host.strip_prefix('[') {
        parse_ipv6(inner.strip_suffix(']').ok_or("has a [ without a ]")?)?
    } else if host.contains(':') {
        let host = parse_ipv6(host).map_err(|reason| match reason {
            NO_IPV6 => "has more than one colon, and is no IPv6 address",
            other => other,
        })?;
        notes.push(format!("bootstrap.servers: \"{entry}\" is read as [{host}]:{port}"));
        host
    } else {
        parse_name(host)?
    };
    Ok(HostPort { host, port })
}

/// What shows that the list was written otherwise than Kafka's clients take it.
fn of_the_list(entry: &str) -> Option<&'static str> {
    if entry.contains(';') {
        Some("holds a semicolon: brokers have commas between")
    } else if entry.contains(['"', '\'']) {
        Some("holds quotes, which are part of the value: leave them out")
    } else if entry.contains(char::is_whitespace) {
        Some("holds a blank or a line break: brokers have commas between")
    } else {
        None
    }
}

fn split_port(address: &str) -> Result<(&str, &str), &'static str> {
    if address.ends_with(']') || address.parse::<Ipv6Addr>().is_ok_and(|_| !ends_like_a_port(address)) {
        return Err("has no port: write an IPv6 address as [address]:port");
    }
    address.rsplit_once(':').ok_or("has no port")
}

/// `2001:db8::1:9092` is an address by itself too; Kafka's clients take the last group as the port if it is a
/// number, so a bare address without a port is only known by a last group that cannot be one.
fn ends_like_a_port(address: &str) -> bool {
    address.rsplit(':').next().is_some_and(|last| last.len() >= 2 && last.bytes().all(|b| b.is_ascii_digit()))
}

fn parse_port(port: &str) -> Result<u16, &'static str> {
    if port.is_empty() {
        return Err("has no port after the colon");
    }
    if port.contains('/') {
        return Err("has a path after the port: leave it out");
    }
    if !port.bytes().all(|b| b.is_ascii_digit()) {
        return Err("has a port that is no number");
    }
    match port.parse() {
        Ok(0) | Err(_) => Err("has a port outside 1..65535"),
        Ok(port) => Ok(port),
    }
}

fn parse_name(host: &str) -> Result<String, &'static str> {
    if host.is_empty() {
        return Err("has no host before the colon");
    }
    if !host.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_')) {
        return Err("has a host with characters that no name or address has");
    }
    Ok(host.to_ascii_lowercase())
}

const NO_IPV6: &str = "has a malformed IPv6 address";

/// An IPv6 address in its shortest form, with its zone (RFC 6874 writes the zone after `%25`).
fn parse_ipv6(host: &str) -> Result<String, &'static str> {
    let (address, zone) = match host.split_once('%') {
        Some((address, zone)) => (address, Some(zone.strip_prefix("25").unwrap_or(zone))),
        None => (host, None),
    };
    let address: Ipv6Addr = address.parse().map_err(|_| NO_IPV6)?;
    match zone {
        None => Ok(address.to_string()),
        Some("") => Err("has an IPv6 zone without a name"),
        Some(zone) => Ok(format!("{address}%{zone}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn servers(list: &str) -> Vec<String> {
        let bootstrap = Bootstrap::parse(list).unwrap_or_else(|e| panic!("{list}: {e}"));
        bootstrap.servers.iter().map(ToString::to_string).collect()
    }

    fn reason(list: &str) -> String {
        Bootstrap::parse(list).expect_err(list).to_string()
    }

    #[test]
    fn names_and_addresses() {
        assert_eq!(servers("kafka-1.example_x.com:9092"), ["kafka-1.example_x.com:9092"]);
        assert_eq!(servers("10.0.0.1:1,[2001:DB8:0::1]:65535"), ["10.0.0.1:1", "[2001:db8::1]:65535"]);
    }

    #[test]
    fn blanks_empty_entries_and_a_trailing_comma() {
        assert_eq!(servers("  a:1 , ,\tb:2\n,"), ["a:1", "b:2"]);
    }

    #[test]
    fn upper_case_and_duplicates_are_one_server() {
        assert_eq!(servers("Kafka:9092,kafka:9092,[::1]:9092,[0:0::1]:9092"), ["kafka:9092", "[::1]:9092"]);
    }

    #[test]
    fn ipv6_zones() {
        assert_eq!(servers("[fe80::1%25lo]:9092"), ["[fe80::1%lo]:9092"]);
        assert_eq!(servers("[fe80::1%eth0]:9092"), ["[fe80::1%eth0]:9092"]);
        assert!(reason("[fe80::1%25]:9092").contains("zone without a name"));
    }

    #[test]
    fn a_protocol_prefix_is_taken_and_noted() {
        let bootstrap = Bootstrap::parse("PLAINTEXT://a:1").unwrap();
        assert_eq!(bootstrap.servers, [HostPort::new("a", 1)]);
        assert_eq!(bootstrap.notes.len(), 1);
        assert!(bootstrap.notes[0].contains("PLAINTEXT://a:1"));
        assert!(reason("://a:1").contains("no protocol"));
    }

    #[test]
    fn bare_ipv6_with_a_port_is_read_like_kafka_does() {
        assert_eq!(servers("2001:db8::1:9092"), ["[2001:db8::1]:9092"]);
        assert_eq!(Bootstrap::parse("::1:9092").unwrap().notes.len(), 1);
    }

    #[test]
    fn every_bad_entry_is_named_with_its_reason() {
        let all = reason("a,b:,c:x,d:0,e:65536,:1,f g:1,[::1]:1,[::1:1,[zz]:1,h&:1");
        for expected in [
            "\"a\" has no port",
            "\"b:\" has no port after the colon",
            "\"c:x\" has a port that is no number",
            "\"d:0\" has a port outside",
            "\"e:65536\" has a port outside",
            "\":1\" has no host",
            "\"f g:1\" holds a blank",
            "\"h&:1\" has a host with characters",
            "\"[::1:1\" has a [ without a ]",
            "\"[zz]:1\" has a malformed IPv6",
        ] {
            assert!(all.contains(expected), "{expected} not in: {all}");
        }
        assert!(!all.contains("\"[::1]:1\""));
    }

    #[test]
    fn what_people_write_is_told_as_what_it_is() {
        for (list, expected) in [
            ("a1:9092;a2:9092", "\"a1:9092;a2:9092\" holds a semicolon: brokers have commas between"),
            ("a1:9092; a2:9092", "holds a semicolon"),
            (
                "a1:9092 a2:9092",
                "\"a1:9092 a2:9092\" holds a blank or a line break: brokers have commas between",
            ),
            ("a1:9092\na2:9092", "holds a blank or a line break"),
            ("a : 9092", "holds a blank"),
            ("\"a:1,b:1\"", "\"\"a:1\" holds quotes, which are part of the value: leave them out"),
            ("a", "\"a\" has no port"),
            ("PLAINTEXT://a", "\"PLAINTEXT://a\" has no port"),
            ("http://a:9092/", "has a path after the port: leave it out"),
            ("a:9092/kafka", "has a path after the port"),
            ("a:0", "has a port outside 1..65535"),
            ("a:99999", "has a port outside 1..65535"),
            ("a:-1", "has a port that is no number"),
            ("a:9092:b:9092", "has more than one colon, and is no IPv6 address"),
            ("9092", "has no port"),
            ("[a:1", "has a [ without a ]"),
        ] {
            let told = reason(list);
            assert!(told.contains(expected), "{list:?}: {told}");
        }
        for list in ["a:1,b:1", " a:1 ,\n b:1 ", "PLAINTEXT://a:1,http://b:1", "a:1,b:1,"] {
            assert_eq!(servers(list), ["a:1", "b:1"], "{list:?}");
        }
    }

    #[test]
    fn an_empty_entry_is_noted() {
        for list in ["a:1,", ",a:1", "a:1, ,b:1"] {
            let notes = Bootstrap::parse(list).unwrap().notes;
            assert!(notes.len() == 1 && notes[0].contains("an empty entry is left out"), "{list}: {notes:?}");
        }
        assert_eq!(Bootstrap::parse("a:1").unwrap().notes, [""; 0]);
    }

    #[test]
    fn ipv6_without_a_port() {
        for list in ["[::1]", "fe80::abcd", "::1"] {
            assert!(
                reason(list).contains("has no port: write an IPv6 address as [address]:port"),
                "{}",
                reason(list)
            );
        }
    }

    #[test]
    fn nothing_but_commas() {
        assert_eq!(Bootstrap::parse(" ,, "), Err(BootstrapError::Empty));
        assert_eq!(Bootstrap::parse(""), Err(BootstrapError::Empty));
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_answered_and_what_is_taken_reads_the_same_again(list in ".{0,60}") {
            if let Ok(first) = Bootstrap::parse(&list) {
                let typed = first.servers.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
                proptest::prop_assert_eq!(Bootstrap::parse(&typed).unwrap().servers, first.servers);
            }
        }
    }
}
