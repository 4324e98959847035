//! Puts requests on a connection in the order they were submitted.

use tokio::{
    io::{AsyncWrite, AsyncWriteExt},
    time::{Instant, sleep_until},
};

use super::{
    error::Fault,
    link::{Link, Next},
};

/// Writes requests until the connection is given up or writing fails; tells which.
///
/// A frame's chunks go to the system as they are, many with one call.
pub(super) async fn run(mut socket: impl AsyncWrite + Unpin, link: &Link) -> Fault {
    loop {
        match link.next(Instant::now()) {
            Next::Write(mut frame) => {
                if let Err(error) = socket.write_all_buf(&mut frame).await {
                    return Fault::Write(error);
                }
                if let Err(error) = socket.flush().await {
                    return Fault::Write(error);
                }
            }
            Next::Muted(until) => sleep_until(until).await,
            Next::Wait => link.writer.notified().await,
            Next::End => return Fault::Retired,
        }
    }
}
