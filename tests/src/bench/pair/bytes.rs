//! A source and a sink of bytes without meaning, for a relay that copies them: what a replicator is compared with.

use std::{
    io::Write,
    net::TcpListener,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use anyhow::Result;

use super::inlet::throw_away;

/// Bytes written or thrown away with one call of the system.
const AT_ONCE: usize = 1 << 20;

/// A source that gives each connection so many bytes, and a sink that throws them away unread.
#[derive(Debug)]
pub struct BytePair {
    source: String,
    sink: String,
    taken_bytes: Arc<AtomicU64>,
}

impl BytePair {
    /// Starts both; `each_bytes` go to each connection.
    ///
    /// # Errors
    /// When the system gives no port.
    pub fn start(each_bytes: u64) -> Result<Self> {
        let (source, sink) = (TcpListener::bind("127.0.0.1:0")?, TcpListener::bind("127.0.0.1:0")?);
        let taken_bytes = Arc::new(AtomicU64::new(0));
        let pair = Self {
            source: source.local_addr()?.to_string(),
            sink: sink.local_addr()?.to_string(),
            taken_bytes: Arc::clone(&taken_bytes),
        };
        thread::spawn(move || {
            for mut stream in source.incoming().map_while(Result::ok) {
                thread::spawn(move || {
                    let (bytes, mut left) = (vec![7; AT_ONCE], each_bytes);
                    while left > 0 {
                        let most = usize::try_from(left).unwrap_or(usize::MAX).min(AT_ONCE);
                        // The relay may be gone.
                        let Ok(written) = stream.write(&bytes[..most]) else { return };
                        left -= written as u64;
                    }
                });
            }
        });
        thread::spawn(move || {
            for stream in sink.incoming().map_while(Result::ok) {
                let taken_bytes = Arc::clone(&taken_bytes);
                thread::spawn(move || {
                    let (mut room, mut left) = (vec![0; AT_ONCE], each_bytes);
                    while left > 0 {
                        let most = usize::try_from(left).unwrap_or(usize::MAX).min(AT_ONCE);
                        if throw_away(&stream, &mut room, most).is_err() {
                            return;
                        }
                        left -= most as u64;
                        taken_bytes.fetch_add(most as u64, Ordering::Relaxed);
                    }
                });
            }
        });
        Ok(pair)
    }

    /// Address of the source.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Address of the sink.
    #[must_use]
    pub fn sink(&self) -> &str {
        &self.sink
    }

    /// Bytes that the sink has thrown away.
    #[must_use]
    pub fn taken_bytes(&self) -> u64 {
        self.taken_bytes.load(Ordering::Relaxed)
    }
}
