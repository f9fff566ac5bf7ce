//! Relays the bytes of one connection between two sockets, through the emulated network or
//! directly where the line has no limits.

use std::cell::RefCell;
use std::io;
use std::net::Shutdown;
use std::pin::pin;
use std::time::Instant;

use parking_lot::Mutex;
use socket2::SockRef;
use tokio::net::TcpStream;

use super::byte_queue::ByteQueue;
use super::dial::Dialed;
use super::emulator::{EmulatedConnection, FlowEvent};
use super::meter::Meter;
use super::server_time::ServerTime;
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
    client: &TcpStream,
    dialed: &Dialed,
    meter: &Meter,
) -> RelayEnd {
    let server = &dialed.stream;
    let Some(connection) = connection else {
        let result = tokio::try_join!(
            copy(Direction::Up, client, server, meter),
            copy(Direction::Down, server, client, meter),
        );
        return match result {
            Ok(_) => RelayEnd::Complete,
            Err(_) => RelayEnd::Reset,
        };
    };
    let (up, down) = (Mutex::default(), Mutex::default());
    let server_time = ServerTime::new(connection.clock(), dialed.arrivals.clone());
    let (_, up_end, _, down_end) = tokio::join!(
        send_up(connection, client, server, &server_time, &up, meter),
        receive_up(connection, server, &server_time, &up),
        send_down(connection, server, &server_time, &down, meter),
        receive_down(connection, client, &down),
    );
    if up_end == RelayEnd::Complete && down_end == RelayEnd::Complete {
        return RelayEnd::Complete;
    }
    RelayEnd::Reset
}

/// Sends what the browser sends. Reads only as many bytes as the flow accepts: the rest waits in
/// the browser, which thereby experiences the line's speed.
async fn send_up(
    connection: &EmulatedConnection,
    client: &TcpStream,
    server: &TcpStream,
    server_time: &ServerTime,
    queue: &Mutex<ByteQueue>,
    meter: &Meter,
) {
    let direction = Direction::Up;
    while let Some(capacity) = connection.wait_for_capacity(direction).await {
        let Some(ready) = readable(connection, client).await else {
            return;
        };
        let result = ready.and_then(|()| {
            read(client, capacity, |bytes| {
                let forwarded = if server_time.may_forward(bytes.len()) {
                    // What cannot be written now is written when it has arrived.
                    server.try_write(bytes).unwrap_or_default()
                } else {
                    0
                };
                if forwarded > 0 {
                    server_time.forwarded(forwarded);
                }
                if forwarded < bytes.len() {
                    queue.lock().push(&bytes[forwarded..]);
                    server_time.queued(bytes.len() - forwarded);
                }
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

/// Receives at the server what the browser has sent.
async fn receive_up(
    connection: &EmulatedConnection,
    server: &TcpStream,
    server_time: &ServerTime,
    queue: &Mutex<ByteQueue>,
) -> RelayEnd {
    let direction = Direction::Up;
    loop {
        let bytes = match connection.next_event(direction).await {
            FlowEvent::Reset => return RelayEnd::Reset,
            FlowEvent::Ended => return shut_down(server),
            FlowEvent::Bytes(bytes) => bytes,
        };
        let known = server_time.arrived(bytes);
        connection.consumed(direction, known);
        let result = write(connection, direction, server, queue, bytes - known).await;
        if result.is_err() {
            connection.reset(direction.opposite());
            return RelayEnd::Reset;
        }
        server_time.written(bytes - known);
    }
}

/// Sends what the server sends. Reads only as many bytes as the flow accepts: the rest waits at the
/// server, which thereby experiences the line's speed.
async fn send_down(
    connection: &EmulatedConnection,
    server: &TcpStream,
    server_time: &ServerTime,
    queue: &Mutex<ByteQueue>,
    meter: &Meter,
) {
    let direction = Direction::Down;
    let read_into_queue = |capacity| read(server, capacity, |bytes| queue.lock().push(bytes));
    // When bytes came while others were held back.
    let mut came_at = None;
    while let Some(capacity) = connection.wait_for_capacity(direction).await {
        let mut result = read_into_queue(capacity);
        if is_would_block(&result) {
            server_time.wait();
            while is_would_block(&result) {
                match readable(connection, server).await {
                    None => return,
                    Some(Err(e)) => result = Err(e),
                    Some(Ok(())) => result = read_into_queue(capacity),
                }
            }
            came_at = Some(Instant::now());
        }
        match came_at.take() {
            Some(time) => came_at = hold(connection, server, server_time, time).await,
            None => server_time.read_at_once(),
        }
        match result {
            Ok(0) => return connection.close(direction),
            Ok(bytes) => {
                meter.count(direction, bytes as u64);
                connection.send(direction, bytes as u64);
            }
            Err(_) => return connection.reset(direction),
        }
    }
}

/// Holds bytes back until they have been sent in page time. Returns when others came meanwhile: a
/// control frame can come before an answer, and must not hide how long that took.
async fn hold(
    connection: &EmulatedConnection,
    server: &TcpStream,
    server_time: &ServerTime,
    came_at: Instant,
) -> Option<Instant> {
    let mut byte = [0];
    let mut held = pin!(async {
        tokio::select! {
            biased;
            () = connection.wait_for_reset() => {}
            () = server_time.hold(came_at) => {}
        }
    });
    tokio::select! {
        biased;
        () = &mut held => return None,
        // A socket that was read stays readable until a read finds it empty.
        _ = server.peek(&mut byte) => {}
    }
    let next_came_at = Instant::now();
    held.await;
    Some(next_came_at)
}

/// Receives in the browser what the server has sent.
async fn receive_down(
    connection: &EmulatedConnection,
    client: &TcpStream,
    queue: &Mutex<ByteQueue>,
) -> RelayEnd {
    let direction = Direction::Down;
    loop {
        let bytes = match connection.next_event(direction).await {
            FlowEvent::Reset => return RelayEnd::Reset,
            FlowEvent::Ended => return shut_down(client),
            FlowEvent::Bytes(bytes) => bytes,
        };
        let result = write(connection, direction, client, queue, bytes).await;
        if result.is_err() {
            connection.reset(direction.opposite());
            return RelayEnd::Reset;
        }
    }
}

/// Waits until a socket can be read. Returns `None` if the connection was reset.
async fn readable(connection: &EmulatedConnection, source: &TcpStream) -> Option<io::Result<()>> {
    tokio::select! {
        biased;
        () = connection.wait_for_reset() => None,
        ready = source.readable() => Some(ready),
    }
}

/// Reads at most `capacity` bytes and passes them on.
fn read(source: &TcpStream, capacity: u64, take: impl FnOnce(&[u8])) -> io::Result<usize> {
    BUFFER.with_borrow_mut(|buffer| {
        let max = buffer.len().min(capacity as usize);
        let bytes = source.try_read(&mut buffer[..max])?;
        take(&buffer[..bytes]);
        Ok(bytes)
    })
}

fn is_would_block(result: &io::Result<usize>) -> bool {
    matches!(result, Err(e) if e.kind() == io::ErrorKind::WouldBlock)
}

/// Writes bytes of the queue.
async fn write(
    connection: &EmulatedConnection,
    direction: Direction,
    sink: &TcpStream,
    queue: &Mutex<ByteQueue>,
    mut bytes: u64,
) -> io::Result<()> {
    while bytes > 0 {
        let chunk = {
            let mut queue = queue.lock();
            queue.pop(usize::try_from(bytes).unwrap_or(usize::MAX))
        };
        let Some(chunk) = chunk else {
            debug_assert!(false, "more bytes arrived than were sent");
            break;
        };
        write_all(sink, &chunk).await?;
        bytes -= chunk.len() as u64;
        connection.consumed(direction, chunk.len() as u64);
    }
    Ok(())
}

async fn write_all(sink: &TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match sink.try_write(bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => sink.writable().await?,
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Ends the direction towards a socket.
fn shut_down(sink: &TcpStream) -> RelayEnd {
    // This fails if the sink is already closed.
    let _ = SockRef::from(sink).shutdown(Shutdown::Write);
    RelayEnd::Complete
}

async fn copy(
    direction: Direction,
    source: &TcpStream,
    sink: &TcpStream,
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
            shut_down(sink);
            return Ok(());
        }
        meter.count(direction, bytes as u64);
        write_all(sink, &rest).await?;
    }
}
