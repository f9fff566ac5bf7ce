use proptest::prelude::*;

use super::testing::picture;
use super::*;

/// Returns the root of the mean squared difference of two pictures of the same size.
fn difference(a: &Picture, b: &Picture) -> f64 {
    let (width, height) = (a.pixels.width(), a.pixels.height());
    assert_eq!((width, height), (b.pixels.width(), b.pixels.height()));
    let mut sum = 0.0;
    for y in 0..height {
        for x in 0..width {
            for (a, b) in a.pixels.at(x, y).into_iter().zip(b.pixels.at(x, y)) {
                sum += (f64::from(a) - f64::from(b)).powi(2);
            }
        }
    }
    (sum / (3 * width * height) as f64).sqrt()
}

#[test]
fn a_picture_is_nearly_the_same_after_encoding() {
    for (width, height) in [(1, 1), (16, 16), (17, 33), (200, 150)] {
        let colored = picture(width, height);
        let gray = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
        let gray = gray.flat_map(|(x, y)| [colored.pixels.at(x, y)[0]; 3]);
        let gray = Picture {
            pixels: Pixels::new(width, height, gray.collect()).unwrap(),
            orientation: 1,
            profile: None,
        };
        let decoded = Picture::decode(&gray.encode(95), MAX_PIXELS).unwrap();
        let difference = difference(&gray, &decoded);
        assert!(difference < 2.5, "{width} × {height}: {difference}");
    }
}

/// Half the resolution of colours alone makes a difference of 3.0 in this picture.
#[test]
fn colours_are_nearly_the_same_after_encoding() {
    let original = picture(200, 150);
    let decoded = Picture::decode(&original.encode(95), MAX_PIXELS).unwrap();
    let difference = difference(&original, &decoded);
    assert!(difference < 3.5, "{difference}");
}

#[test]
fn less_quality_takes_fewer_bytes() {
    let original = picture(200, 150);
    let sizes: Vec<usize> = [95, 80, 50, 20]
        .map(|it| original.encode(it).len())
        .to_vec();
    assert!(sizes.is_sorted_by(|a, b| a > b), "{sizes:?}");
}

#[test]
fn the_quality_of_a_file_is_estimated() {
    let original = picture(20, 20);
    for quality in [10, 50, 75, 90, 100] {
        assert_eq!(quality_of(&original.encode(quality)), Some(quality));
    }
    assert_eq!(quality_of(b"\xff\xd8\xff"), None);
}

#[test]
fn a_picture_shrinks_in_proportion() {
    let mut shrunk = picture(200, 150);
    shrunk.shrink(50);
    let decoded = Picture::decode(&shrunk.encode(90), MAX_PIXELS).unwrap();
    assert_eq!((decoded.width(), decoded.pixels.height()), (50, 38));
    let flat = Pixels::new(7, 5, vec![90; 7 * 5 * 3]).unwrap().shrunk(3);
    assert!((0..3).all(|x| flat.at(x, 1) == [90; 3]));
}

#[test]
fn the_width_of_a_picture_is_that_which_is_shown() {
    let mut turned = picture(200, 100);
    turned.orientation = 6;
    assert_eq!(turned.width(), 100);
    turned.shrink(50);
    assert_eq!((turned.width(), turned.pixels.width()), (50, 100));
}

#[test]
fn pictures_with_too_many_pixels_are_not_decoded() {
    let jpeg = picture(20, 10).encode(80);
    assert_eq!(Picture::decode(&jpeg, 200).unwrap().pixel_count(), 200);
    let error = Picture::decode(&jpeg, 199).err().unwrap();
    assert!(error.contains("too many pixels"), "{error}");
}

#[test]
fn orientation_and_colours_stay() {
    let mut original = picture(20, 10);
    original.orientation = 6;
    original.profile = Some(vec![7; 100_000]);
    let decoded = Picture::decode(&original.encode(80), MAX_PIXELS).unwrap();
    assert_eq!(decoded.orientation, 6);
    assert_eq!(decoded.profile, original.profile);
}

#[test]
fn what_is_no_picture_is_explained() {
    for bytes in [&b""[..], b"GIF89a", b"\xff\xd8\xff\xd9"] {
        let error = Picture::decode(bytes, MAX_PIXELS).err().unwrap();
        assert!(
            error.contains("JPEG") || error.contains("colours"),
            "{error}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn noise_survives_encoding(
        (width, height) in (1..40_usize, 1..40_usize),
        seed in any::<u32>(),
        quality in 1..=100_u8,
    ) {
        let noise = |at: usize| (seed.wrapping_add(at as u32).wrapping_mul(2_654_435_761) >> 24) as u8;
        let pixels = Pixels::new(width, height, (0..3 * width * height).map(noise).collect());
        let original = Picture { pixels: pixels.unwrap(), orientation: 1, profile: None };
        let decoded = Picture::decode(&original.encode(quality), MAX_PIXELS).unwrap();
        prop_assert_eq!(decoded.width(), width);
    }

    #[test]
    fn no_damage_makes_the_decoder_panic(
        damages in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        end in any::<prop::sample::Index>(),
    ) {
        let mut jpeg = picture(24, 24).encode(70);
        for (position, byte) in damages {
            let position = position.index(jpeg.len());
            jpeg[position] = byte;
        }
        let _ = Picture::decode(&jpeg, MAX_PIXELS);
        let _ = Picture::decode(&jpeg[..end.index(jpeg.len())], MAX_PIXELS);
        quality_of(&jpeg);
    }
}
