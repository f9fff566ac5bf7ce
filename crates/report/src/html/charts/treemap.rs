//! The layout of a treemap: rectangles with given areas, as square as possible (Bruls, Huizing and
//! van Wijk, "Squarified Treemaps", 2000).

/// A rectangle of a chart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rectangle {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

/// Divides a rectangle in proportion to the sizes, which are positive and in descending order.
pub(crate) fn tiles(sizes: &[f64], mut rest: Rectangle) -> Vec<Rectangle> {
    let scale = rest.width * rest.height / sizes.iter().sum::<f64>();
    let areas: Vec<f64> = sizes.iter().map(|size| size * scale).collect();
    let mut tiles = Vec::with_capacity(areas.len());
    while tiles.len() < areas.len() {
        let left = &areas[tiles.len()..];
        let side = rest.width.min(rest.height);
        // A row along the shorter side takes tiles while that makes them more square.
        let is_worse = |length: &usize| {
            elongation(&left[..length + 1], side) > elongation(&left[..*length], side)
        };
        let length = (1..left.len()).find(is_worse).unwrap_or(left.len());
        let row = &left[..length];
        let thickness = row.iter().sum::<f64>() / side;
        let mut at = 0.0;
        for area in row {
            let extent = area / thickness;
            tiles.push(if rest.width >= rest.height {
                Rectangle {
                    x: rest.x,
                    y: rest.y + at,
                    width: thickness,
                    height: extent,
                }
            } else {
                Rectangle {
                    x: rest.x + at,
                    y: rest.y,
                    width: extent,
                    height: thickness,
                }
            });
            at += extent;
        }
        if rest.width >= rest.height {
            rest.x += thickness;
            rest.width -= thickness;
        } else {
            rest.y += thickness;
            rest.height -= thickness;
        }
    }
    tiles
}

/// Returns the ratio of the sides of the most elongated tile of a row.
fn elongation(areas: &[f64], side: f64) -> f64 {
    let sum: f64 = areas.iter().sum();
    let largest = areas.iter().copied().fold(0.0, f64::max);
    let smallest = areas.iter().copied().fold(f64::INFINITY, f64::min);
    let squared = side * side;
    (squared * largest / (sum * sum)).max(sum * sum / (squared * smallest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_example_of_the_paper_is_laid_out_like_there() {
        let whole = Rectangle {
            x: 0.0,
            y: 0.0,
            width: 6.0,
            height: 4.0,
        };
        let tiles = tiles(&[6.0, 6.0, 4.0, 3.0, 2.0, 2.0, 1.0], whole);
        let first = Rectangle {
            x: 0.0,
            y: 0.0,
            width: 3.0,
            height: 2.0,
        };
        assert_eq!(tiles[0], first);
        assert_eq!(tiles[1], Rectangle { y: 2.0, ..first });
        let third = tiles[2];
        assert!((third.x - 3.0).abs() < 1e-9 && (third.width - 12.0 / 7.0).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn tiles_have_the_areas_of_their_sizes_and_stay_inside(
            mut sizes in prop::collection::vec(1.0..1e6_f64, 1..60),
        ) {
            sizes.sort_by(|a, b| b.total_cmp(a));
            let whole = Rectangle { x: 10.0, y: 20.0, width: 1000.0, height: 360.0 };
            let scale = 360_000.0 / sizes.iter().sum::<f64>();
            let tiles = tiles(&sizes, whole);
            prop_assert_eq!(tiles.len(), sizes.len());
            for (tile, size) in tiles.iter().zip(&sizes) {
                prop_assert!((tile.width * tile.height - size * scale).abs() < 1e-3);
                prop_assert!(tile.x >= 10.0 - 1e-6 && tile.x + tile.width <= 1010.0 + 1e-6);
                prop_assert!(tile.y >= 20.0 - 1e-6 && tile.y + tile.height <= 380.0 + 1e-6);
            }
        }
    }
}
