use super::simulation::{Fetch, Simulation};
use super::{LINES, MS, setup};
use crate::model::{Direction, NetworkModel, Output, Setup};

/// Compares times in milliseconds with those of Linux hosts over the packet-level emulator (kernel
/// 6.18, BBR, one fetch on a new connection, dialling included).
#[test]
fn single_fetches_take_as_long_as_with_linux_over_real_packets() {
    let measured_ms: [(usize, [(u64, f64); 5]); 4] = [
        // Response bytes with header, milliseconds.
        (
            0,
            [
                (14_044, 380.0),
                (30_044, 545.0),
                (100_044, 911.0),
                (300_044, 1925.0),
                (1_000_044, 5465.0),
            ],
        ),
        (
            1,
            [
                (14_044, 355.0),
                (30_044, 568.0),
                (100_044, 874.0),
                (300_044, 1155.0),
                (1_000_044, 2025.0),
            ],
        ),
        (
            2,
            [
                (14_044, 85.0),
                (30_044, 119.0),
                (100_044, 236.0),
                (300_044, 567.0),
                (1_000_044, 1729.0),
            ],
        ),
        (
            3,
            [
                (14_044, 1106.0),
                (30_044, 1572.0),
                (100_044, 3021.0),
                (300_044, 7191.0),
                (1_000_044, 22_714.0),
            ],
        ),
    ];
    for (line, fetches) in measured_ms {
        let (down, up, rtt) = LINES[line];
        for (response, linux_ms) in fetches {
            let simulation = Simulation::new(setup(down, up, rtt));
            let clients = simulation.client(0, vec![Fetch::of(response)]).run();
            let model_ms = clients[0].done_ns.unwrap() as f64 / 1e6;
            let deviation = (model_ms / linux_ms - 1.0).abs();
            assert!(
                deviation < 0.03,
                "{down} kbit/s, {response}: {model_ms} {linux_ms}"
            );
        }
    }
}

#[test]
fn a_connection_costs_a_round_trip() {
    for (down, up, rtt) in LINES {
        let simulation = Simulation::new(setup(down, up, rtt));
        let clients = simulation.client(0, vec![]).run();
        let expected_ms = rtt + 60.0 * 8.0 / up + 60.0 * 8.0 / down;
        assert!((clients[0].connected_ns as f64 / 1e6 - expected_ms).abs() < 0.01);
    }
}

/// Returns the times of five fetches of 60 kB on one connection, with a pause before the last.
fn with_pause_ms(pause_ns: u64) -> Vec<f64> {
    let mut fetches = vec![Fetch::of(60_000); 5];
    fetches[4] = fetches[4].after(pause_ns);
    let simulation = Simulation::new(setup(9000.0, 9000.0, 170.0));
    let times_ms = simulation.client(0, fetches).run().remove(0).durations_ns;
    times_ms.iter().map(|ns| *ns as f64 / 1e6).collect()
}

#[test]
fn a_warm_connection_is_faster_and_does_not_restart_after_a_pause() {
    let times_ms = with_pause_ms(0);
    assert!(times_ms[4] < 0.6 * times_ms[0], "{times_ms:?}");
    let times_ms = with_pause_ms(5000 * MS);
    assert!(times_ms[4] < 1.1 * times_ms[3], "{times_ms:?}");
}

#[test]
fn a_small_fetch_parallel_to_a_large_one_waits_in_the_same_queue_and_no_longer() {
    let simulation = Simulation::new(setup(1638.4, 750.0, 150.0));
    let clients = simulation
        .client(0, vec![Fetch::of(600_000)])
        .client(1000 * MS, vec![Fetch::of(20_000)])
        .run();
    let duration_ms = (clients[1].done_ns.unwrap() - 1000 * MS) as f64 / 1e6;
    // Linux over real packets took 1,485 ms; alone it takes 455.
    assert!((1400.0..1560.0).contains(&duration_ms), "{duration_ms}");
}

/// Sends as much data as a flow accepts.
fn saturate(
    net: &mut NetworkModel,
    until_ns: u64,
    mut output: impl FnMut(&mut NetworkModel, Output),
) -> u64 {
    let id = net.establish(100 * MS);
    let mut sent = 0;
    loop {
        let capacity = net.capacity(id, Direction::Down);
        if capacity > 0 {
            net.write(id, Direction::Down, capacity);
            sent += capacity;
        }
        while let Some(o) = net.next_output() {
            output(net, o);
        }
        match net.next_event_ns() {
            Some(at_ns) if at_ns <= until_ns => net.advance(at_ns),
            _ => return sent,
        }
    }
}

#[test]
fn a_reader_that_never_reads_limits_what_is_read_from_the_server() {
    for (down, up, rtt) in LINES {
        let mut net = NetworkModel::new(setup(down, up, rtt));
        let mut delivered = 0;
        let sent = saturate(&mut net, 600_000 * MS, |_, output| {
            if let Output::Delivered(_, _, bytes) = output {
                delivered += bytes;
            }
        });
        assert!(delivered > 500_000, "{delivered}");
        assert!(sent < 2_000_000, "{sent}");
    }
}

/// Window updates are lost too on a line that loses every third packet.
#[test]
fn a_reader_that_pauses_often_receives_everything_over_a_lossy_line() {
    let mut net = NetworkModel::new(Setup {
        loss_share: 0.3,
        ..setup(5000.0, 1000.0, 28.0)
    });
    let (mut unread, mut read) = (0, 0);
    let sent = saturate(&mut net, 3_600_000 * MS, |net, output| {
        if let Output::Delivered(id, direction, bytes) = output {
            unread += bytes;
            // The window is closed except for the last hundred bytes.
            if unread > 575_500 && read < 3_000_000 {
                net.consumed(id, direction, unread);
                read += std::mem::take(&mut unread);
            }
        }
    });
    assert!(read >= 3_000_000, "{read} of {sent}");
}

#[test]
fn a_closed_flow_ends_after_its_last_byte_and_the_other_continues() {
    let mut net = NetworkModel::new(setup(5000.0, 1000.0, 28.0));
    let id = net.establish(28 * MS);
    net.write(id, Direction::Up, 5000);
    net.close(id, Direction::Up);
    net.advance(1000 * MS);
    let outputs: Vec<Output> = std::iter::from_fn(|| net.next_output()).collect();
    let up: u64 = outputs
        .iter()
        .map(|o| match o {
            Output::Delivered(_, Direction::Up, bytes) => *bytes,
            _ => 0,
        })
        .sum();
    assert_eq!(up, 5000);
    assert_eq!(outputs.last(), Some(&Output::Ended(id, Direction::Up)));
    assert_eq!(net.capacity(id, Direction::Up), 0);
    net.write(id, Direction::Down, 100);
    net.advance(2000 * MS);
    let down = std::iter::from_fn(|| net.next_output());
    assert!(
        down.into_iter()
            .any(|o| o == Output::Delivered(id, Direction::Down, 100))
    );
}

#[test]
fn a_reset_arrives_after_earlier_bytes_and_ends_both_flows() {
    let mut net = NetworkModel::new(setup(5000.0, 1000.0, 28.0));
    let id = net.establish(28 * MS);
    net.write(id, Direction::Down, 3000);
    net.reset(id, Direction::Down);
    net.advance(1000 * MS);
    let outputs: Vec<Output> = std::iter::from_fn(|| net.next_output()).collect();
    let reset = outputs
        .iter()
        .position(|o| *o == Output::Reset(id, Direction::Down));
    let delivered: u64 = outputs[..reset.unwrap()]
        .iter()
        .map(|o| match o {
            Output::Delivered(_, _, bytes) => *bytes,
            _ => 0,
        })
        .sum();
    assert_eq!(delivered, 3000);
    net.write(id, Direction::Up, 1000);
    net.advance(2000 * MS);
    assert!(std::iter::from_fn(|| net.next_output()).all(|o| !matches!(o, Output::Delivered(..))));
}

#[test]
fn a_lost_message_is_repeated_until_it_arrives() {
    let mut net = NetworkModel::new(Setup {
        loss_share: 0.5,
        ..setup(5000.0, 1000.0, 28.0)
    });
    (0..50).for_each(|tag| net.message(Direction::Up, 60, tag));
    net.advance(600_000 * MS);
    let mut arrived: Vec<Output> = std::iter::from_fn(|| net.next_output()).collect();
    assert_eq!(arrived[0], Output::Message(0), "the first was not lost");
    arrived.sort_by_key(|o| match o {
        Output::Message(tag) => *tag,
        _ => u64::MAX,
    });
    let all: Vec<Output> = (0..50).map(Output::Message).collect();
    assert_eq!(arrived, all);
}

#[test]
fn a_late_wakeup_does_not_delay_later_events() {
    let line = setup(1638.4, 750.0, 150.0);
    let run = |step_ns: u64| {
        let mut net = NetworkModel::new(line.clone());
        let id = net.establish(150 * MS);
        let capacity = net.capacity(id, Direction::Down);
        net.write(id, Direction::Down, capacity);
        let mut delivered = 0;
        for now_ns in (0..=500 * MS).step_by(step_ns as usize) {
            net.advance(now_ns);
            while let Some(output) = net.next_output() {
                if let Output::Delivered(_, _, bytes) = output {
                    delivered += bytes;
                }
            }
        }
        delivered
    };
    assert_eq!(run(500 * MS), run(MS / 10));
}
