//! Puts requests on a connection in the order they were submitted, as many as there are with one call of the system.

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
/// Their chunks go to the system as they are.
pub(super) async fn run(mut socket: impl AsyncWrite + Unpin, link: &Link) -> Fault {
    loop {
        match link.next(Instant::now()) {
            Next::Write(mut frames) => {
                if let Err(error) = socket.write_all_buf(&mut frames).await {
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

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        io::{self, IoSlice},
        pin::Pin,
        sync::{Arc, Mutex},
        task::{Context, Poll},
        time::Duration,
    };

    use bytes::Bytes;
    use tokio::sync::Semaphore;
    use twinlog_protocol::versions::Api;

    use super::*;
    use crate::{
        io::{
            error::Peer,
            link::{Expects, Frame},
        },
        machine::metadata::HostPort,
    };

    /// Address and length of each slice of one call.
    type Call = Vec<(usize, usize)>;

    /// Notes all calls; takes at most `at_once` bytes with one.
    struct Sink {
        at_once: usize,
        calls: Arc<Mutex<Vec<Call>>>,
    }

    impl AsyncWrite for Sink {
        fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
        }

        fn poll_write_vectored(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            slices: &[IoSlice<'_>],
        ) -> Poll<io::Result<usize>> {
            let seen = slices.iter().map(|slice| (slice.as_ptr() as usize, slice.len())).collect();
            self.calls.lock().unwrap().push(seen);
            Poll::Ready(Ok(slices.iter().map(|slice| slice.len()).sum::<usize>().min(self.at_once)))
        }

        fn is_write_vectored(&self) -> bool {
            true
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    fn link_with(frames: impl IntoIterator<Item = Frame>) -> Link {
        let server = HostPort::new("broker", 9092);
        let peer = Peer { cluster: Arc::from("west"), node: None, server, address: None };
        let link = Link::new(Arc::new(peer), Duration::from_secs(1), Arc::default());
        let expects = Expects { api: Api::Produce, timeout: Duration::from_secs(1) };
        for frame in frames {
            let room = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
            let pending = link.submit(expects, room, |_| Ok::<Frame, Infallible>(frame));
            drop(pending);
        }
        link
    }

    #[tokio::test(start_paused = true)]
    async fn chunks_go_to_the_system_as_they_are_with_one_call() {
        let (head, body) = (Bytes::from(vec![1; 30]), Bytes::from(vec![2; 5000]));
        let slices = vec![(head.as_ptr() as usize, 30), (body.as_ptr() as usize, 5000)];
        let link = link_with([[head, body].into_iter().collect()]);
        let calls = Arc::default();
        let sink = Sink { at_once: usize::MAX, calls: Arc::clone(&calls) };
        let _never = tokio::time::timeout(Duration::from_secs(1), run(sink, &link)).await;
        assert_eq!(*calls.lock().unwrap(), [slices]);
    }

    #[tokio::test(start_paused = true)]
    async fn batches_that_wait_together_go_with_one_call() {
        let frames = [7, 500, 3].map(|bytes| Bytes::from(vec![1; bytes]));
        let slices = frames.iter().map(|frame| (frame.as_ptr() as usize, frame.len())).collect();
        let link = link_with(frames.map(Frame::from));
        let calls = Arc::default();
        let sink = Sink { at_once: usize::MAX, calls: Arc::clone(&calls) };
        let _never = tokio::time::timeout(Duration::from_secs(1), run(sink, &link)).await;
        let expected: [Call; 1] = [slices];
        assert_eq!(*calls.lock().unwrap(), expected);
    }

    #[tokio::test(start_paused = true)]
    async fn a_partial_write_goes_on_inside_the_chunk() {
        let (head, body) = (Bytes::from(vec![1; 30]), Bytes::from(vec![2; 50]));
        let start = body.as_ptr() as usize;
        let link = link_with([[head, body].into_iter().collect()]);
        let calls = Arc::default();
        let sink = Sink { at_once: 40, calls: Arc::clone(&calls) };
        let _never = tokio::time::timeout(Duration::from_secs(1), run(sink, &link)).await;
        assert_eq!(calls.lock().unwrap()[1], [(start + 10, 40)]);
    }
}
