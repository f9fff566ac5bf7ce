//! Data that is small to send and large to unpack.

use std::io::Write;
use std::sync::OnceLock;

use flate2::write::ZlibEncoder;
use flate2::{Compress, Compression, Crc, FlushCompress};

/// The head of a gzip stream without a name and a time.
pub const GZIP_HEAD: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];

const MEGABYTE: usize = 1 << 20;
/// A picture of this width and height takes 1 GB when it is unpacked to 4 bytes a pixel.
const GIANT_PX: u32 = 16_000;

/// A piece of a deflate stream that ends at a whole byte and refers to nothing before itself, so
/// that it can be sent any number of times.
fn piece(bytes: &[u8]) -> Vec<u8> {
    let mut compress = Compress::new(Compression::best(), false);
    let mut packed = Vec::with_capacity(bytes.len() + 1024);
    compress
        .compress_vec(bytes, &mut packed, FlushCompress::Full)
        .expect("memory can be compressed");
    packed
}

/// About a kilobyte.
pub fn megabyte_of_spaces() -> &'static [u8] {
    static PIECE: OnceLock<Vec<u8>> = OnceLock::new();
    PIECE.get_or_init(|| piece(&[b' '; MEGABYTE]))
}

/// The head of the inner stream of one that is packed twice.
pub fn gzip_head_packed() -> &'static [u8] {
    static PIECE: OnceLock<Vec<u8>> = OnceLock::new();
    PIECE.get_or_init(|| piece(&GZIP_HEAD))
}

/// A few kilobytes.
pub fn gigabyte_packed_twice() -> &'static [u8] {
    static PIECE: OnceLock<Vec<u8>> = OnceLock::new();
    PIECE.get_or_init(|| piece(&megabyte_of_spaces().repeat(1024)))
}

/// A PNG of one bit per pixel, all black.
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
            pixels.write_all(&line).expect("memory can be compressed");
        }
        let pixels = pixels.finish().expect("memory can be compressed");
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
