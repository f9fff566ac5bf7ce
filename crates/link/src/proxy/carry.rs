//! Moves the bytes of one connection between two sockets: over the wire, or straight across where
//! the line has no limits.

use std::cell::RefCell;
use std::io;
use std::sync::{Mutex, PoisonError};

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};

use super::bytes_in_order::BytesInOrder;
use super::meter::Meter;
use super::wire::{Arrived, Carrier};
use crate::model::Way;

thread_local! {
    /// One for all connections of a thread, so that idle ones cost nothing.
    static SCRATCH: RefCell<Vec<u8>> = RefCell::new(vec![0; SCRATCH_BYTES]);
}

const SCRATCH_BYTES: usize = 256 * 1024;

/// How a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// Both sides said all they had to say.
    Complete,
    /// One side gave up; the other is to hear of it in the same way.
    Broken,
}

pub(super) async fn over_the_wire(
    carrier: &Carrier,
    client: &mut TcpStream,
    server: &mut TcpStream,
    meter: &Meter,
) -> Ending {
    let (client_in, client_out) = client.split();
    let (server_in, server_out) = server.split();
    let (up, down) = (Mutex::default(), Mutex::default());
    let (_, up_ended, _, down_ended) = tokio::join!(
        give(carrier, Way::Up, client_in, &up, meter),
        take(carrier, Way::Up, server_out, &up),
        give(carrier, Way::Down, server_in, &down, meter),
        take(carrier, Way::Down, client_out, &down),
    );
    if up_ended == Ending::Complete && down_ended == Ending::Complete {
        return Ending::Complete;
    }
    Ending::Broken
}

/// Reads as much as the flow wants, no more: what it does not want yet waits at the source, which
/// feels the line's pace.
async fn give(
    carrier: &Carrier,
    way: Way,
    source: ReadHalf<'_>,
    pipe: &Mutex<BytesInOrder>,
    meter: &Meter,
) {
    while let Some(room) = carrier.room(way).await {
        let ready = tokio::select! {
            biased;
            () = carrier.broken() => return,
            ready = source.readable() => ready,
        };
        let read = ready.and_then(|()| {
            SCRATCH.with_borrow_mut(|scratch| {
                let most = scratch.len().min(room as usize);
                let bytes = source.try_read(&mut scratch[..most])?;
                let mut pipe = pipe.lock().unwrap_or_else(PoisonError::into_inner);
                pipe.push(&scratch[..bytes]);
                Ok(bytes)
            })
        });
        match read {
            Ok(0) => return carrier.close(way),
            Ok(bytes) => {
                meter.count(way, bytes as u64);
                carrier.offer(way, bytes as u64);
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return carrier.reset(way),
        }
    }
}

async fn take(
    carrier: &Carrier,
    way: Way,
    mut sink: WriteHalf<'_>,
    pipe: &Mutex<BytesInOrder>,
) -> Ending {
    loop {
        let mut left = match carrier.arrived(way).await {
            Arrived::Reset => return Ending::Broken,
            Arrived::Ended => {
                // A sink that is gone already needs no goodbye.
                let _ = sink.shutdown().await;
                return Ending::Complete;
            }
            Arrived::Bytes(bytes) => bytes,
        };
        while left > 0 {
            let piece = {
                let mut pipe = pipe.lock().unwrap_or_else(PoisonError::into_inner);
                pipe.pop(usize::try_from(left).unwrap_or(usize::MAX))
            };
            let Some(piece) = piece else {
                debug_assert!(false, "more arrived than was sent");
                break;
            };
            if sink.write_all(&piece).await.is_err() {
                carrier.reset(way.back());
                return Ending::Broken;
            }
            left -= piece.len() as u64;
            carrier.consumed(way, piece.len() as u64);
        }
    }
}

pub(super) async fn straight_across(
    client: &mut TcpStream,
    server: &mut TcpStream,
    meter: &Meter,
) -> Ending {
    let (client_in, client_out) = client.split();
    let (server_in, server_out) = server.split();
    let moved = tokio::try_join!(
        pass(Way::Up, client_in, server_out, meter),
        pass(Way::Down, server_in, client_out, meter),
    );
    match moved {
        Ok(_) => Ending::Complete,
        Err(_) => Ending::Broken,
    }
}

async fn pass(
    way: Way,
    source: ReadHalf<'_>,
    mut sink: WriteHalf<'_>,
    meter: &Meter,
) -> io::Result<()> {
    loop {
        source.readable().await?;
        let moved = SCRATCH.with_borrow_mut(|scratch| {
            let bytes = source.try_read(scratch)?;
            let written = match sink.try_write(&scratch[..bytes]) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => 0,
                other => other?,
            };
            Ok((bytes, scratch[written..bytes].to_vec()))
        });
        let (bytes, rest) = match moved {
            Err(e) if io::Error::kind(&e) == io::ErrorKind::WouldBlock => continue,
            other => other?,
        };
        if bytes == 0 {
            let _ = sink.shutdown().await;
            return Ok(());
        }
        meter.count(way, bytes as u64);
        sink.write_all(&rest).await?;
    }
}
