use super::*;

#[test]
fn an_idle_thread_leaves_two_samples() {
    let mut samples = Vec::new();
    push(&mut samples, [0.0, 5.0, 1.0, 5.0, 0.0]);
    push(&mut samples, [4.0, 9.0, 1.0, 9.0, 1.0]);
    for at in 2..100 {
        push(
            &mut samples,
            [4.0 * f64::from(at), 9.0, 1.0, 9.0, f64::from(at)],
        );
    }
    assert_eq!(samples.len(), 3);
    assert_eq!(samples[2][0], 4.0 * 99.0);
}

#[test]
fn a_sample_contains_the_state_at_the_release_of_the_core() {
    let mut samples = Vec::new();
    record(&mut samples, 0.0, [1_000.0, 900.0, 0.0, 900.0, 0.0]);
    record(
        &mut samples,
        4_000.0,
        [5_000.0, 1_900.0, 3_000.0, 1_900.0, 3_000.0],
    );
    // The core was not occupied since.
    record(
        &mut samples,
        4_000.0,
        [6_000.0, 2_900.0, 3_000.0, 2_900.0, 3_000.0],
    );
    let at_release = [4_000.0, 900.0, 3_000.0, 900.0, 3_000.0];
    assert_eq!(samples.len(), 4);
    assert_eq!(samples[1], at_release);
}

#[test]
fn time_of_the_pacer_does_not_count_as_lost() {
    let samples = vec![[0.0; 5], [100.0, 25.0, 75.0, 25.0, 60.0]];
    let pacing = Pacing {
        main_threads: BTreeMap::from([(1, samples)]),
        ..Pacing::default()
    };
    assert_eq!(pacing.lost_share(), 0.15);
    assert_eq!(Pacing::default().lost_share(), 0.0);
}

#[test]
fn the_pacer_does_not_throttle_if_chromium_does() {
    let by_chromium = PacerLoop::new(Throttle::ByChromium { rate: 4.0 });
    assert_eq!(by_chromium.pacing.rate, None);
    assert_eq!(PacerLoop::new(Throttle::NONE).pacing.rate, Some(1.0));
}

#[test]
fn only_the_chosen_method_throttles() {
    let paced = Throttle::Paced {
        rate: 4.0,
        nominal: CorePace::default(),
    };
    assert_eq!((paced.rate_by_chromium(), paced.paced().0), (1.0, 4.0));
    let by_chromium = Throttle::ByChromium { rate: 4.0 };
    assert_eq!(
        (by_chromium.rate_by_chromium(), by_chromium.paced().0),
        (4.0, 1.0)
    );
}
