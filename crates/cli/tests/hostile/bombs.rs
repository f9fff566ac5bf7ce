//! Data that is small to send and large to unpack.

use std::io::Write;
use std::sync::OnceLock;

use flate2::write::ZlibEncoder;
use flate2::{Compress, Compression, Crc, FlushCompress};

/// The head of a gzip stream without a name and a time.
pub const GZIP_HEAD: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];

/// The head of a zstd frame with a window of 128 KiB and no size (RFC 8878, 3.1.1).
pub const ZSTD_HEAD: [u8; 6] = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x38];
/// A zstd block that repeats one space 131,072 times (RFC 8878, 3.1.1.2).
pub const ZSTD_SPACES: [u8; 4] = [0x02, 0x00, 0x10, b' '];

/// A brotli stream with a window of 64 KiB that begins with 64 spaces and continues at a byte
/// boundary (RFC 7932, 9.1 and 9.2).
pub const BROTLI_HEAD: [u8; 10] = [0xf0, 0x03, 0x00, 0x80, 0x04, 0x48, 0x3c, 0x13, 0x48, 0x1a];
/// Brotli meta-blocks that repeat a space 1,048,576 times and end at a byte boundary.
#[rustfmt::skip]
pub const BROTLI_SPACES: [u8; 97] = [
    0xfa, 0xff, 0x0f, 0x00, 0x24, 0x00, 0xe2, 0xb0, 0x00, 0x74, 0xef, 0x03, 0xf4, 0xff, 0x1f, 0x00,
    0x48, 0x00, 0xc4, 0x61, 0x01, 0xe8, 0xde, 0x07, 0xe8, 0xff, 0x3f, 0x00, 0x90, 0x00, 0x88, 0xc3,
    0x02, 0xd0, 0xbd, 0x0f, 0xd0, 0xff, 0x7f, 0x00, 0x20, 0x01, 0x10, 0x87, 0x05, 0xa0, 0x7b, 0x1f,
    0xa0, 0xff, 0xff, 0x00, 0x40, 0x02, 0x20, 0x0e, 0x0b, 0x40, 0xf7, 0x3e, 0x40, 0xff, 0xff, 0x01,
    0x80, 0x04, 0x40, 0x1c, 0x16, 0x80, 0xee, 0x7d, 0x80, 0xfe, 0xff, 0x03, 0x00, 0x09, 0x80, 0x38,
    0x2c, 0x00, 0xdd, 0xfb, 0x00, 0xfd, 0xff, 0x07, 0x00, 0x12, 0x00, 0x71, 0x58, 0x00, 0xba, 0xf7,
    0x01,
];

const MEGABYTE: usize = 1 << 20;
/// The width and height of an image that takes 1 GB at 4 bytes per pixel.
const GIANT_PX: u32 = 16_000;

/// Returns a part of a deflate stream that ends at a byte boundary and does not refer to earlier
/// parts, so that it can be repeated.
fn piece(bytes: &[u8]) -> Vec<u8> {
    let mut compress = Compress::new(Compression::best(), false);
    let mut packed = Vec::with_capacity(bytes.len() + 1024);
    compress
        .compress_vec(bytes, &mut packed, FlushCompress::Full)
        .expect("compression into memory succeeds");
    packed
}

/// Returns about a kilobyte that unpacks to a megabyte.
pub fn megabyte_of_spaces() -> &'static [u8] {
    static PIECE: OnceLock<Vec<u8>> = OnceLock::new();
    PIECE.get_or_init(|| piece(&[b' '; MEGABYTE]))
}

/// Returns the head of the inner stream of a twice-packed stream.
pub fn gzip_head_packed() -> &'static [u8] {
    static PIECE: OnceLock<Vec<u8>> = OnceLock::new();
    PIECE.get_or_init(|| piece(&GZIP_HEAD))
}

/// Returns a few kilobytes that unpack to a gigabyte.
pub fn gigabyte_packed_twice() -> &'static [u8] {
    static PIECE: OnceLock<Vec<u8>> = OnceLock::new();
    PIECE.get_or_init(|| piece(&megabyte_of_spaces().repeat(1024)))
}

/// Returns a black PNG of one bit per pixel.
pub fn giant_png() -> &'static [u8] {
    static PNG: OnceLock<Vec<u8>> = OnceLock::new();
    PNG.get_or_init(|| {
        let mut head = Vec::new();
        head.extend(GIANT_PX.to_be_bytes());
        head.extend(GIANT_PX.to_be_bytes());
        // One bit, grayscale, and the only methods of packing, filtering and interlacing.
        head.extend([1, 0, 0, 0, 0]);
        // A filter's number, then the pixels.
        let line = vec![0; 1 + GIANT_PX as usize / 8];
        let mut pixels = ZlibEncoder::new(Vec::new(), Compression::fast());
        for _ in 0..GIANT_PX {
            pixels
                .write_all(&line)
                .expect("compression into memory succeeds");
        }
        let pixels = pixels.finish().expect("compression into memory succeeds");
        let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
        for (kind, data) in [(b"IHDR", head), (b"IDAT", pixels), (b"IEND", Vec::new())] {
            let mut crc = Crc::new();
            crc.update(kind);
            crc.update(&data);
            png.extend((data.len() as u32).to_be_bytes());
            png.extend(kind);
            png.extend(&data);
            png.extend(crc.sum().to_be_bytes());
        }
        png
    })
}
