//! A TCP proxy that counts the bytes which each broker sends to clients, and passes all of them.

use std::{
    io::{self, Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use anyhow::{Context, Result};

use crate::proxy::Route;

/// The counts, by the brokers' order. Its threads end with the test's process.
#[derive(Debug)]
pub struct Tally {
    bootstrap: String,
    sent: Vec<Arc<AtomicU64>>,
}

impl Tally {
    /// Listens on every route.
    ///
    /// # Errors
    /// When an address is taken.
    pub fn start(routes: &[Route]) -> Result<Self> {
        let mut sent = Vec::new();
        for route in routes {
            let listener =
                TcpListener::bind(&route.listen).with_context(|| format!("listen on {}", route.listen))?;
            let count = Arc::new(AtomicU64::new(0));
            sent.push(Arc::clone(&count));
            let broker = route.broker.clone();
            thread::spawn(move || {
                for client in listener.incoming().flatten() {
                    // A broker that is down: the client sees a closed connection.
                    if let Ok(upstream) = TcpStream::connect(&broker) {
                        let _ = pass_both_ways(&client, &upstream, &count);
                    }
                }
            });
        }
        let listens: Vec<&str> = routes.iter().map(|route| route.listen.as_str()).collect();
        Ok(Self { bootstrap: listens.join(","), sent })
    }

    /// Its addresses as a `bootstrap.servers` list.
    #[must_use]
    pub fn bootstrap(&self) -> String {
        self.bootstrap.clone()
    }

    /// Bytes that each broker has sent, the one with id 1 first.
    #[must_use]
    pub fn sent(&self) -> Vec<u64> {
        self.sent.iter().map(|count| count.load(Ordering::Relaxed)).collect()
    }
}

fn pass_both_ways(client: &TcpStream, broker: &TcpStream, sent: &Arc<AtomicU64>) -> io::Result<()> {
    client.set_nodelay(true)?;
    broker.set_nodelay(true)?;
    let ways = [
        (client.try_clone()?, broker.try_clone()?, Arc::new(AtomicU64::new(0))),
        (broker.try_clone()?, client.try_clone()?, Arc::clone(sent)),
    ];
    for (from, to, count) in ways {
        thread::spawn(move || {
            let _ = pass(&from, &to, &count);
            let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
        });
    }
    Ok(())
}

fn pass(mut from: &TcpStream, mut to: &TcpStream, count: &AtomicU64) -> io::Result<()> {
    let mut buffer = vec![0; 64 << 10];
    loop {
        let length = from.read(&mut buffer)?;
        if length == 0 {
            return Ok(());
        }
        to.write_all(&buffer[..length])?;
        count.fetch_add(length as u64, Ordering::Relaxed);
    }
}
