//! Relays the bytes of one connection between two sockets, through the emulated network or
//! directly where the line has no limits.

use std::cell::RefCell;
use std::io;

use parking_lot::Mutex;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};

use super::byte_queue::ByteQueue;
use super::emulator::{EmulatedConnection, FlowEvent};
use super::meter::Meter;
use crate::model::Direction;

thread_local! {
    /// Read buffer shared by all connections of a thread, so that idle ones need no memory.
    static BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; BUFFER_BYTES]);
}

const BUFFER_BYTES: usize = 256 * 1024;

/// How a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RelayEnd {
    /// Both sides closed their direction after their last byte.
    Complete,
    /// One side reset the connection; the other side must see a reset as well.
    Reset,
}

/// Relays until both directions have ended: through the emulated `connection`, or directly without
/// one.
pub(super) async fn relay(
    connection: Option<&EmulatedConnection>,
    client: &mut TcpStream,
    server: &mut TcpStream,
    meter: &Meter,
) -> RelayEnd {
    let (client_in, client_out) = client.split();
    let (server_in, server_out) = server.split();
    let Some(connection) = connection else {
        let result = tokio::try_join!(
            copy(Direction::Up, client_in, server_out, meter),
            copy(Direction::Down, server_in, client_out, meter),
        );
        return match result {
            Ok(_) => RelayEnd::Complete,
            Err(_) => RelayEnd::Reset,
        };
    };
    let (up, down) = (Mutex::default(), Mutex::default());
    let (_, up_end, _, down_end) = tokio::join!(
        send(connection, Direction::Up, client_in, &up, meter),
        receive(connection, Direction::Up, server_out, &up),
        send(connection, Direction::Down, server_in, &down, meter),
        receive(connection, Direction::Down, client_out, &down),
    );
    if up_end == RelayEnd::Complete && down_end == RelayEnd::Complete {
        return RelayEnd::Complete;
    }
    RelayEnd::Reset
}

/// Reads only as many bytes as the flow accepts. The rest waits at the source, which thereby
/// experiences the line's speed.
async fn send(
    connection: &EmulatedConnection,
    direction: Direction,
    source: ReadHalf<'_>,
    queue: &Mutex<ByteQueue>,
    meter: &Meter,
) {
    while let Some(capacity) = connection.wait_for_capacity(direction).await {
        let ready = tokio::select! {
            biased;
            () = connection.wait_for_reset() => return,
            ready = source.readable() => ready,
        };
        let result = ready.and_then(|()| {
            BUFFER.with_borrow_mut(|buffer| {
                let max = buffer.len().min(capacity as usize);
                let bytes = source.try_read(&mut buffer[..max])?;
                let mut queue = queue.lock();
                queue.push(&buffer[..bytes]);
                Ok(bytes)
            })
        });
        match result {
            Ok(0) => return connection.close(direction),
            Ok(bytes) => {
                meter.count(direction, bytes as u64);
                connection.send(direction, bytes as u64);
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return connection.reset(direction),
        }
    }
}

async fn receive(
    connection: &EmulatedConnection,
    direction: Direction,
    mut sink: WriteHalf<'_>,
    queue: &Mutex<ByteQueue>,
) -> RelayEnd {
    loop {
        let mut remaining = match connection.next_event(direction).await {
            FlowEvent::Reset => return RelayEnd::Reset,
            FlowEvent::Ended => {
                // This fails if the sink is already closed.
                let _ = sink.shutdown().await;
                return RelayEnd::Complete;
            }
            FlowEvent::Bytes(bytes) => bytes,
        };
        while remaining > 0 {
            let chunk = {
                let mut queue = queue.lock();
                queue.pop(usize::try_from(remaining).unwrap_or(usize::MAX))
            };
            let Some(chunk) = chunk else {
                debug_assert!(false, "more bytes arrived than were sent");
                break;
            };
            if sink.write_all(&chunk).await.is_err() {
                connection.reset(direction.opposite());
                return RelayEnd::Reset;
            }
            remaining -= chunk.len() as u64;
            connection.consumed(direction, chunk.len() as u64);
        }
    }
}

async fn copy(
    direction: Direction,
    source: ReadHalf<'_>,
    mut sink: WriteHalf<'_>,
    meter: &Meter,
) -> io::Result<()> {
    loop {
        source.readable().await?;
        let result = BUFFER.with_borrow_mut(|buffer| {
            let bytes = source.try_read(buffer)?;
            let written = match sink.try_write(&buffer[..bytes]) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => 0,
                other => other?,
            };
            Ok((bytes, buffer[written..bytes].to_vec()))
        });
        let (bytes, rest) = match result {
            Err(e) if io::Error::kind(&e) == io::ErrorKind::WouldBlock => continue,
            other => other?,
        };
        if bytes == 0 {
            let _ = sink.shutdown().await;
            return Ok(());
        }
        meter.count(direction, bytes as u64);
        sink.write_all(&rest).await?;
    }
}
