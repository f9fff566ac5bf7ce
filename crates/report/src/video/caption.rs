//! The time below each frame of a video, such as "1.2 s".

use super::palette::{DARK, WHITE};

/// Pixels for each dot of a letter.
const SCALE: usize = 2;
/// The columns and rows of a letter.
const COLUMNS: usize = 5;
const ROWS: usize = 7;
/// The space around the text.
const MARGIN: usize = 4;
/// The height of the caption.
pub(super) const HEIGHT: usize = ROWS * SCALE + 2 * MARGIN;

/// The rows of a letter; the highest of five bits is the left column.
fn dots(letter: u8) -> [u8; ROWS] {
    match letter {
        b'0' => [
            0b01110, 0b10001, 0b10011, 0b10101, 0b11001, 0b10001, 0b01110,
        ],
        b'1' => [
            0b00100, 0b01100, 0b00100, 0b00100, 0b00100, 0b00100, 0b01110,
        ],
        b'2' => [
            0b01110, 0b10001, 0b00001, 0b00110, 0b01000, 0b10000, 0b11111,
        ],
        b'3' => [
            0b01110, 0b10001, 0b00001, 0b00110, 0b00001, 0b10001, 0b01110,
        ],
        b'4' => [
            0b00010, 0b00110, 0b01010, 0b10010, 0b11111, 0b00010, 0b00010,
        ],
        b'5' => [
            0b11111, 0b10000, 0b11110, 0b00001, 0b00001, 0b10001, 0b01110,
        ],
        b'6' => [
            0b00110, 0b01000, 0b10000, 0b11110, 0b10001, 0b10001, 0b01110,
        ],
        b'7' => [
            0b11111, 0b00001, 0b00010, 0b00100, 0b01000, 0b01000, 0b01000,
        ],
        b'8' => [
            0b01110, 0b10001, 0b10001, 0b01110, 0b10001, 0b10001, 0b01110,
        ],
        b'9' => [
            0b01110, 0b10001, 0b10001, 0b01111, 0b00001, 0b00010, 0b01100,
        ],
        b'.' => [0, 0, 0, 0, 0, 0b01100, 0b01100],
        b's' => [0, 0, 0b01110, 0b10000, 0b01110, 0b00001, 0b11110],
        _ => [0; ROWS],
    }
}

/// Draws a time into rows of the given width. What does not fit is cut off.
pub(super) fn draw(rows: &mut [u8], width: usize, at_ms: u32) {
    rows.fill(DARK);
    let text = format!("{}.{} s", at_ms / 1000, at_ms % 1000 / 100);
    for (position, letter) in text.bytes().enumerate() {
        let left = MARGIN + position * (COLUMNS + 1) * SCALE;
        for (row, bits) in dots(letter).into_iter().enumerate() {
            for column in (0..COLUMNS).filter(|column| bits >> (COLUMNS - 1 - column) & 1 == 1) {
                for pixel in 0..SCALE * SCALE {
                    let x = left + column * SCALE + pixel % SCALE;
                    let y = MARGIN + row * SCALE + pixel / SCALE;
                    if x < width {
                        rows[y * width + x] = WHITE;
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_drawn_in_seconds_and_cut_off_where_there_is_no_space() {
        const WIDTH: usize = 68;
        let mut rows = vec![0; WIDTH * HEIGHT];
        draw(&mut rows, WIDTH, 1_270);
        let line = |row: usize| -> String {
            let start = (MARGIN + row * SCALE) * WIDTH;
            let dots = rows[start..start + WIDTH]
                .iter()
                .skip(MARGIN)
                .step_by(SCALE);
            dots.map(|index| if *index == WHITE { '#' } else { ' ' })
                .collect()
        };
        let lines: Vec<String> = (0..ROWS)
            .map(|row| line(row).trim_end().to_owned())
            .collect();
        assert_eq!(
            lines,
            [
                "  #          ###",
                " ##         #   #",
                "  #             #        ###",
                "  #           ##        #",
                "  #          #           ###",
                "  #    ##   #               #",
                " ###   ##   #####       ####",
            ]
        );
        let mut narrow = vec![0; 3 * HEIGHT];
        draw(&mut narrow, 3, 3_599_999);
        assert!(narrow.iter().all(|index| *index == DARK));
    }
}
