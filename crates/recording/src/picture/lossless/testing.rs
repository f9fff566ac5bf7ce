//! PNG files for tests, which are put together without the encoder.

use std::io::Write;

use flate2::write::ZlibEncoder;
use flate2::{Compression, Crc};

/// The first column and row, and the distances of the columns and the rows, of the parts of
/// interlaced pictures (PNG, 8.1).
const PASSES: [[usize; 4]; 7] = [
    [0, 0, 8, 8],
    [4, 0, 8, 8],
    [0, 4, 4, 8],
    [2, 0, 4, 4],
    [0, 2, 2, 4],
    [1, 0, 2, 2],
    [0, 1, 1, 2],
];

/// The header of a file and its chunks.
#[derive(Clone)]
pub struct TestPng {
    pub width: usize,
    pub height: usize,
    /// The bits of each sample.
    pub depth: usize,
    /// The number of the colour type: 0 for grey, 2 for colours, 3 for a palette, and 4 or 6 for
    /// grey or colours with alpha.
    pub color_type: u8,
    pub is_interlaced: bool,
    /// Chunks before the pixels.
    pub chunks: Vec<([u8; 4], Vec<u8>)>,
}

impl TestPng {
    pub fn new(width: usize, height: usize, color_type: u8, depth: usize) -> Self {
        Self {
            width,
            height,
            depth,
            color_type,
            is_interlaced: false,
            chunks: Vec::new(),
        }
    }

    pub fn interlaced(self) -> Self {
        Self {
            is_interlaced: true,
            ..self
        }
    }

    pub fn chunk(mut self, name: &[u8; 4], content: &[u8]) -> Self {
        self.chunks.push((*name, content.to_vec()));
        self
    }

    /// Returns a file with the samples of each pixel.
    pub fn file(&self, samples: impl Fn(usize, usize) -> Vec<u16>) -> Vec<u8> {
        let mut data = ZlibEncoder::new(Vec::new(), Compression::fast());
        let passes = if self.is_interlaced {
            PASSES.to_vec()
        } else {
            vec![[0, 0, 1, 1]]
        };
        for [first_x, first_y, step_x, step_y] in passes {
            for y in (first_y..self.height).step_by(step_y) {
                let columns = (first_x..self.width).step_by(step_x);
                let samples: Vec<u16> = columns.flat_map(|x| samples(x, y)).collect();
                if !samples.is_empty() {
                    data.write_all(&[&[0][..], &self.packed(&samples)].concat())
                        .unwrap();
                }
            }
        }
        self.with_data(&data.finish().unwrap())
    }

    /// Returns a file with compressed rows.
    pub fn with_data(&self, data: &[u8]) -> Vec<u8> {
        let mut header = Vec::new();
        for side in [self.width, self.height] {
            header.extend(u32::try_from(side).unwrap().to_be_bytes());
        }
        let depth = u8::try_from(self.depth).unwrap();
        header.extend([depth, self.color_type, 0, 0, u8::from(self.is_interlaced)]);
        let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
        add_chunk(&mut file, b"IHDR", &header);
        for (name, content) in &self.chunks {
            add_chunk(&mut file, name, content);
        }
        add_chunk(&mut file, b"IDAT", data);
        add_chunk(&mut file, b"IEND", &[]);
        file
    }

    fn packed(&self, samples: &[u16]) -> Vec<u8> {
        if self.depth == 16 {
            return samples.iter().flat_map(|it| it.to_be_bytes()).collect();
        }
        let bytes = samples.chunks(8 / self.depth).map(|samples| {
            let mut byte = 0;
            for (index, sample) in samples.iter().enumerate() {
                byte |= sample << (8 - self.depth * (index + 1));
            }
            u8::try_from(byte).unwrap()
        });
        bytes.collect()
    }
}

fn add_chunk(file: &mut Vec<u8>, name: &[u8; 4], content: &[u8]) {
    let named = [name, content].concat();
    let mut checksum = Crc::new();
    checksum.update(&named);
    file.extend(u32::try_from(content.len()).unwrap().to_be_bytes());
    file.extend(&named);
    file.extend(checksum.sum().to_be_bytes());
}

/// Returns a photograph: every pixel differs a little from those next to it.
pub fn photograph(width: usize, height: usize) -> Vec<u8> {
    TestPng::new(width, height, 2, 8).file(|x, y| {
        let noise = |seed: usize| (seed.wrapping_mul(2_654_435_761) >> 13 & 15) as u16;
        let at = x + width * y;
        vec![
            (x * 200 / width) as u16 + noise(at),
            (y * 200 / height) as u16 + noise(at + 7),
            100 + noise(at + 99),
        ]
    })
}

/// Returns a drawing of two colours, with stripes one pixel wide.
pub fn stripes(width: usize, height: usize) -> Vec<u8> {
    let palette = [250, 250, 250, 20, 40, 90];
    let png = TestPng::new(width, height, 3, 1).chunk(b"PLTE", &palette);
    png.file(|x, _| vec![(x % 2) as u16])
}
