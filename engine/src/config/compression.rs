//! In which codec records are written: `compression.type`, a key of twinlog's own. MM2's producers have one of that name.

use twinlog_protocol::batch::Compression;

use super::error::Fault;
use super::resolve::Resolver;
use super::warning::Warning;

const KEY: &str = "compression.type";
const CODECS: [(&str, Compression); 5] = [
    ("none", Compression::None),
    ("gzip", Compression::Gzip),
    ("snappy", Compression::Snappy),
    ("lz4", Compression::Lz4),
    ("zstd", Compression::Zstd),
];

/// Reads the codec; none where every batch keeps its own.
pub(super) fn read(resolver: &mut Resolver<'_>) -> Option<Compression> {
    let entry = resolver.find(KEY)?;
    let word = entry.value.trim();
    if word.eq_ignore_ascii_case("keep") {
        return None;
    }
    let codec = CODECS.iter().find(|(name, _)| word.eq_ignore_ascii_case(name)).map(|(_, codec)| *codec);
    if codec.is_some() {
        let text = "batches in another codec are unpacked and packed anew, which takes processor time and memory: without \
                    the key no record is copied in memory (zero copy)";
        resolver.warn_of(Warning::of(entry, text));
    } else {
        let remedy = "write `keep`, `none`, `gzip`, `snappy`, `lz4` or `zstd`";
        resolver.fault(Fault::of(entry, "not a codec").remedy(remedy));
    }
    codec
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::MirrorConfig;

    const BASE: &str = "clusters=west,east\nwest.bootstrap.servers=w:1\neast.bootstrap.servers=e:1\n\
        west->east.enabled=true\n";

    #[test]
    fn batches_get_the_codec_of_the_flow_and_what_it_costs_is_told() {
        for (text, codec) in [
            ("", None),
            ("compression.type = keep", None),
            ("compression.type = zstd", Some(Compression::Zstd)),
            ("compression.type = zstd\nwest->east.compression.type = None", Some(Compression::None)),
            ("compression.type = zstd\nwest->east.compression.type = keep", None),
            // Of MM2's producers.
            ("east.producer.compression.type = zstd", None),
            ("west->east.producer.override.compression.type = gzip", None),
        ] {
            let config = MirrorConfig::from_properties(format!("{BASE}{text}\n").as_bytes()).unwrap();
            assert_eq!(config.flows()[0].compression, codec, "{text}");
            let is_told = |warning: &&Warning| warning.text.contains("zero copy");
            let told = config.warnings().iter().filter(is_told).count();
            assert_eq!(told, usize::from(codec.is_some()), "{text}");
            assert_eq!(config.not_needed().len(), usize::from(text.contains("producer")), "{text}");
        }
    }
}
