use proptest::prelude::*;

use super::testing::{TestPng, photograph};
use super::*;

fn decode(png: &[u8]) -> LosslessPicture {
    LosslessPicture::decode(png, MAX_PIXELS).unwrap()
}

fn reason(png: &[u8]) -> String {
    LosslessPicture::decode(png, MAX_PIXELS).err().unwrap()
}

/// Encodes and decodes a picture.
fn copy(picture: &LosslessPicture) -> LosslessPicture {
    decode(&picture.encode().unwrap())
}

/// Returns the byte of the header at which the colour type is, and that of the depth.
fn color_type_and_depth(png: &[u8]) -> (u8, u8) {
    (png[25], png[24])
}

/// Returns the samples of a pixel in a file.
type Samples = fn(usize, usize) -> Vec<u16>;

/// Returns a pixel as it is shown.
type Shown = fn(usize, usize) -> [u8; 4];

/// Returns files of all colour types, with the pixels that they show.
fn all_types() -> Vec<(TestPng, Samples, Shown)> {
    let palette = [10, 20, 30, 200, 0, 0, 0, 150, 0, 0, 0, 250];
    vec![
        (
            TestPng::new(9, 5, 0, 1),
            |x, _| vec![x as u16 % 2],
            |x, _| {
                let gray = 255 * (x as u8 % 2);
                [gray, gray, gray, 255]
            },
        ),
        (
            TestPng::new(9, 5, 0, 4),
            |x, y| vec![(x + y) as u16],
            |x, y| {
                let gray = 17 * (x + y) as u8;
                [gray, gray, gray, 255]
            },
        ),
        (
            TestPng::new(9, 5, 0, 8),
            |x, _| vec![x as u16 * 20],
            |x, _| {
                let gray = 20 * x as u8;
                [gray, gray, gray, 255]
            },
        ),
        (
            TestPng::new(9, 5, 0, 16),
            |x, _| vec![x as u16 * 5000],
            |x, _| {
                let gray = (x * 5000 / 256) as u8;
                [gray, gray, gray, 255]
            },
        ),
        // One level of grey is transparent.
        (
            TestPng::new(9, 5, 0, 8).chunk(b"tRNS", &[0, 40]),
            |x, _| vec![x as u16 * 20],
            |x, _| {
                let gray = 20 * x as u8;
                if x == 2 {
                    [0; 4]
                } else {
                    [gray, gray, gray, 255]
                }
            },
        ),
        (
            TestPng::new(9, 5, 2, 8),
            |x, y| vec![x as u16 * 20, y as u16 * 20, 7],
            |x, y| [20 * x as u8, 20 * y as u8, 7, 255],
        ),
        (
            TestPng::new(9, 5, 2, 16),
            |x, y| vec![x as u16 * 5120, y as u16 * 5120, 1799],
            |x, y| [20 * x as u8, 20 * y as u8, 7, 255],
        ),
        (
            TestPng::new(9, 5, 3, 2)
                .chunk(b"PLTE", &palette)
                .chunk(b"tRNS", &[255, 128, 0]),
            |x, _| vec![x as u16 % 4],
            |x, _| {
                [
                    [10, 20, 30, 255],
                    [200, 0, 0, 128],
                    [0; 4],
                    [0, 0, 250, 255],
                ][x % 4]
            },
        ),
        (
            TestPng::new(9, 5, 4, 8),
            |x, y| vec![x as u16 * 20, y as u16 * 60],
            |x, y| {
                let gray = 20 * x as u8;
                if y == 0 {
                    [0; 4]
                } else {
                    [gray, gray, gray, 60 * y as u8]
                }
            },
        ),
        (
            TestPng::new(9, 5, 4, 16),
            |x, _| vec![x as u16 * 5120, 0x8080],
            |x, _| [20 * x as u8, 20 * x as u8, 20 * x as u8, 128],
        ),
        (
            TestPng::new(9, 5, 6, 8),
            |x, y| vec![x as u16 * 20, y as u16 * 20, 7, 60 + x as u16],
            |x, y| [20 * x as u8, 20 * y as u8, 7, 60 + x as u8],
        ),
        (
            TestPng::new(9, 5, 6, 16),
            |x, y| vec![x as u16 * 5120, y as u16 * 5120, 1799, 0x8080],
            |x, y| [20 * x as u8, 20 * y as u8, 7, 128],
        ),
    ]
}

#[test]
fn pictures_of_all_types_are_the_same_after_encoding() {
    for (png, samples, shown) in all_types() {
        for png in [png.clone(), png.interlaced()] {
            let name = format!(
                "type {} with {} bits, interlaced: {}",
                png.color_type, png.depth, png.is_interlaced
            );
            let picture = decode(&png.file(samples));
            let pixels = (0..5).flat_map(|y| (0..9).map(move |x| shown(x, y)));
            assert!(picture.raster.pixels().iter().copied().eq(pixels), "{name}");
            assert_eq!(copy(&picture).raster, picture.raster, "{name}");
        }
    }
}

#[test]
fn pictures_have_the_fewest_bits_that_lose_nothing() {
    let encoded = |png: &[u8]| color_type_and_depth(&decode(png).encode().unwrap());
    let in_color = TestPng::new(40, 40, 6, 8);
    let two_colors = in_color.file(|x, _| vec![200 * (x as u16 % 2), 3, 4, 255]);
    assert_eq!(encoded(&two_colors), (3, 1));
    let forty_colors = in_color.file(|x, _| vec![5 * x as u16, 3, 4, 255 - x as u16]);
    assert_eq!(encoded(&forty_colors), (3, 8));
    let gray = in_color.file(|x, y| {
        let gray = (x + 4 * y) as u16;
        vec![gray, gray, gray, 255]
    });
    assert_eq!(encoded(&gray), (0, 8));
    let many = in_color.file(|x, y| vec![5 * x as u16, 5 * y as u16, 4, 255]);
    assert_eq!(encoded(&many), (2, 8));
    let many_transparent = in_color.file(|x, y| vec![5 * x as u16, 5 * y as u16, 4, 250]);
    assert_eq!(encoded(&many_transparent), (6, 8));
    let gray_and_alpha = in_color.file(|x, y| {
        let gray = 5 * x as u16;
        vec![gray, gray, gray, 5 + 5 * y as u16]
    });
    assert_eq!(encoded(&gray_and_alpha), (4, 8));
}

#[test]
fn a_picture_shrinks_in_proportion() {
    let mut picture = decode(&photograph(200, 150));
    picture.shrink(50);
    let copy = copy(&picture);
    assert_eq!((copy.width(), copy.raster.height()), (50, 38));
    assert_eq!(copy.raster, picture.raster);
}

#[test]
fn pixels_are_the_means_of_those_that_they_replace() {
    let stripes = TestPng::new(8, 8, 2, 8).file(|x, _| vec![100 + 50 * (x as u16 % 2), 10, 0]);
    let mut picture = decode(&stripes);
    picture.shrink(4);
    assert_eq!(picture.raster.pixels(), [[125, 10, 0, 255]; 16]);
}

#[test]
fn the_colours_of_transparent_pixels_do_not_show() {
    // A transparent pixel is green, and the other red.
    let png = TestPng::new(8, 2, 6, 8).file(|x, _| match x % 2 {
        0 => vec![200, 0, 0, 255],
        _ => vec![0, 255, 0, 0],
    });
    let mut picture = decode(&png);
    picture.shrink(4);
    assert_eq!(copy(&picture).raster.pixels(), [[200, 0, 0, 128]; 4]);
    let mut invisible = decode(&TestPng::new(8, 2, 6, 8).file(|_, _| vec![9, 9, 9, 0]));
    invisible.shrink(4);
    assert_eq!(copy(&invisible).raster.pixels(), [[0; 4]; 4]);
}

#[test]
fn the_width_of_a_picture_is_that_which_is_shown() {
    let turned = TestPng::new(20, 10, 2, 8).chunk(b"eXIf", &exif::tiff(6));
    let mut picture = decode(&turned.file(|x, y| vec![x as u16, y as u16, 0]));
    assert_eq!(picture.width(), 10);
    picture.shrink(5);
    let copy = copy(&picture);
    assert_eq!((copy.width(), copy.raster.width()), (5, 10));
}

#[test]
fn the_meaning_of_colours_stays() {
    let gamma = 45_455_u32.to_be_bytes();
    let profile = {
        use std::io::Write;
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        zlib.write_all(&[7; 1000]).unwrap();
        [&b"name\0\0"[..], &zlib.finish().unwrap()].concat()
    };
    for (name, content) in [(b"gAMA", &gamma[..]), (b"sRGB", &[1]), (b"iCCP", &profile)] {
        let png = TestPng::new(4, 4, 2, 8).chunk(name, content);
        let picture = decode(&png.file(|x, _| vec![60 * x as u16; 3]));
        assert_ne!(picture.color_space, ColorSpace::default());
        assert_eq!(copy(&picture).color_space, picture.color_space);
    }
    // A profile for colours does not fit a picture in grey.
    let png = TestPng::new(40, 40, 2, 8).chunk(b"iCCP", &profile);
    let colored = decode(&png.file(|x, y| vec![(x + 3 * y) as u16; 3]))
        .encode()
        .unwrap();
    assert_eq!(color_type_and_depth(&colored), (3, 8));
    // Nor does one for grey fit a palette.
    let png = TestPng::new(40, 40, 0, 1).chunk(b"iCCP", &profile);
    let gray = decode(&png.file(|x, _| vec![x as u16 % 2]))
        .encode()
        .unwrap();
    assert_eq!(color_type_and_depth(&gray), (0, 8));
}

#[test]
fn pictures_with_too_many_pixels_are_not_decoded() {
    let png = photograph(20, 10);
    assert_eq!(
        LosslessPicture::decode(&png, 200).unwrap().pixel_count(),
        200
    );
    let error = LosslessPicture::decode(&png, 199).err().unwrap();
    assert!(error.contains("too many pixels"), "{error}");
    for (width, height) in [(65_000, 65_000), (0x7fff_ffff, 0x7fff_ffff), (70_000, 1)] {
        let bomb = TestPng::new(width, height, 6, 16).with_data(b"");
        assert!(reason(&bomb).contains("too many pixels"));
    }
}

#[test]
fn a_profile_that_grows_without_end_is_not_decoded() {
    use std::io::Write;
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    zlib.write_all(&vec![0; 2 * MAX_PREFACE_BYTES]).unwrap();
    let profile = [&b"name\0\0"[..], &zlib.finish().unwrap()].concat();
    let bomb = TestPng::new(4, 4, 2, 8).chunk(b"iCCP", &profile);
    // Browsers show the picture without it as well.
    let picture = decode(&bomb.file(|_, _| vec![0; 3]));
    assert_eq!(picture.color_space, ColorSpace::default());
}

#[test]
fn animations_are_not_encoded_again() {
    let animated = TestPng::new(4, 4, 2, 8).chunk(b"acTL", &[0, 0, 0, 2, 0, 0, 0, 0]);
    assert_eq!(
        reason(&animated.file(|_, _| vec![0; 3])),
        "it is an animation"
    );
    let hdr = TestPng::new(4, 4, 2, 8).chunk(b"cICP", &[9, 16, 0, 1]);
    assert!(reason(&hdr.file(|_, _| vec![0; 3])).contains("ordinary screens"));
}

#[test]
fn what_is_no_whole_picture_is_explained() {
    let png = photograph(20, 20);
    for bytes in [
        &b""[..],
        b"GIF89a",
        b"\x89PNG\r\n\x1a\n",
        &png[..png.len() / 2],
    ] {
        assert_eq!(reason(bytes), "it cannot be decoded as PNG");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn shrunk_pictures_have_the_width_and_their_proportions(
        (width, height) in (1..60_usize, 1..60_usize),
        max_width in 1..60_usize,
        color_type in prop::sample::select(vec![0_u8, 2, 4, 6]),
        is_interlaced in any::<bool>(),
        seed in any::<u32>(),
    ) {
        let mut png = TestPng::new(width, height, color_type, 8);
        png.is_interlaced = is_interlaced;
        let samples = [1, 0, 3, 0, 2, 0, 4][usize::from(color_type)];
        let noise = |at: usize| {
            u16::from((seed.wrapping_add(at as u32).wrapping_mul(2_654_435_761) >> 24) as u8)
        };
        let file = png.file(|x, y| (0..samples).map(|it| noise(samples * (x + width * y) + it)).collect());
        let original = decode(&file);
        let mut picture = decode(&file);
        if picture.width() > max_width {
            picture.shrink(max_width);
        }
        let shrunk = copy(&picture);
        prop_assert_eq!(&shrunk.raster, &picture.raster);
        let new_width = width.min(max_width);
        prop_assert_eq!(shrunk.width(), new_width);
        let exact_height = height as f64 * new_width as f64 / width as f64;
        prop_assert!((shrunk.raster.height() as f64 - exact_height).abs() < 1.0);
        // No sample is outside of those of the pixels that can be seen.
        for channel in 0..3 {
            let seen = original.raster.pixels().iter().filter(|it| it[3] > 0);
            let range = || seen.clone().map(|it| it[channel]);
            for pixel in shrunk.raster.pixels().iter().filter(|it| it[3] > 0) {
                prop_assert!(range().min() <= Some(pixel[channel]));
                prop_assert!(range().max() >= Some(pixel[channel]));
            }
        }
    }

    #[test]
    fn no_damage_makes_the_decoder_panic(
        damages in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        end in any::<prop::sample::Index>(),
        is_interlaced in any::<bool>(),
    ) {
        let mut png = TestPng::new(24, 24, 3, 4).chunk(b"PLTE", &[9; 12]).chunk(b"tRNS", &[3]);
        png.is_interlaced = is_interlaced;
        let mut file = png.file(|x, y| vec![((x + y) % 4) as u16]);
        for (position, byte) in damages {
            let position = position.index(file.len());
            file[position] = byte;
        }
        let _ = LosslessPicture::decode(&file, MAX_PIXELS);
        let _ = LosslessPicture::decode(&file[..end.index(file.len())], MAX_PIXELS);
    }
}
