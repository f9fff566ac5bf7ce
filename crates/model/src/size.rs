//! Sizes in bytes, as people read them.

/// Formats a size in units of 1,024 bytes, as Lighthouse does, with a digit after the point below
/// 10 KiB and two in MiB.
#[must_use]
pub fn size(bytes: f64) -> String {
    const KIB: f64 = 1024.0;
    let kib = bytes / KIB;
    match kib {
        _ if bytes < 999.5 => format!("{bytes:.0} B"),
        ..9.95 => format!("{kib:.1} KiB"),
        ..999.5 => format!("{kib:.0} KiB"),
        _ => format!("{:.2} MiB", kib / KIB),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units_of_1024_bytes() {
        for (bytes, expected) in [
            (0.0, "0 B"),
            (999.0, "999 B"),
            (1_000.0, "1.0 KiB"),
            (9_332.0, "9.1 KiB"),
            (10_235.0, "10 KiB"),
            (186_877.0, "182 KiB"),
            (1_023_487.0, "999 KiB"),
            (1_023_488.0, "0.98 MiB"),
            (5_242_880.0, "5.00 MiB"),
        ] {
            assert_eq!(size(bytes), expected);
        }
    }
}
