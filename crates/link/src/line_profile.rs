use crate::LinkError;

/// Properties of the browser's access line. The round trip time includes the extra distance of a
/// location.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LineProfile {
    /// Rate towards the browser; `None` or 0 means no limit.
    pub down_kbps: Option<f64>,
    /// Rate from the browser; `None` or 0 means no limit.
    pub up_kbps: Option<f64>,
    pub rtt_ms: f64,
    /// Percentage of packets lost in each direction.
    pub loss_pct: f64,
}

// A line with a longer round trip, a lower rate or a higher loss than this is a typing error.
const MAX_RTT_MS: f64 = 60_000.0;
const MIN_KBPS: f64 = 1.0;
const MAX_LOSS_PCT: f64 = 50.0;

impl LineProfile {
    /// A line without limits: as fast as the machine.
    pub const UNLIMITED: Self = Self {
        down_kbps: None,
        up_kbps: None,
        rtt_ms: 0.0,
        loss_pct: 0.0,
    };

    /// Returns the profile with rates of 0 replaced by `None`, or an error that names the invalid
    /// value.
    pub(crate) fn validated(self) -> Result<Self, LinkError> {
        let rate = |name: &str, kbps: Option<f64>| match kbps {
            None => Ok(None),
            Some(0.0) => Ok(None),
            Some(kbps) if kbps.is_finite() && kbps >= MIN_KBPS => Ok(Some(kbps)),
            Some(kbps) => Err(LinkError::Profile(format!(
                "{name} is {kbps}; it must be at least {MIN_KBPS}, or 0 for no limit"
            ))),
        };
        let check_range = |name: &str, value: f64, max: f64| {
            if (0.0..=max).contains(&value) {
                return Ok(());
            }
            Err(LinkError::Profile(format!(
                "{name} is {value}; it must be from 0 to {max}"
            )))
        };
        check_range("rtt_ms", self.rtt_ms, MAX_RTT_MS)?;
        check_range("loss_pct", self.loss_pct, MAX_LOSS_PCT)?;
        Ok(Self {
            down_kbps: rate("down_kbps", self.down_kbps)?,
            up_kbps: rate("up_kbps", self.up_kbps)?,
            ..self
        })
    }

    pub(crate) fn is_unlimited(&self) -> bool {
        *self == Self::UNLIMITED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_means_no_limit() {
        let profile = LineProfile {
            down_kbps: Some(0.0),
            ..LineProfile::UNLIMITED
        };
        assert!(profile.validated().unwrap().is_unlimited());
    }

    #[test]
    fn an_invalid_value_is_an_error_that_names_it() {
        let base = LineProfile::UNLIMITED;
        let cases = [
            (
                LineProfile {
                    down_kbps: Some(-1.0),
                    ..base
                },
                "down_kbps",
            ),
            (
                LineProfile {
                    up_kbps: Some(f64::NAN),
                    ..base
                },
                "up_kbps",
            ),
            (
                LineProfile {
                    up_kbps: Some(f64::INFINITY),
                    ..base
                },
                "up_kbps",
            ),
            (
                LineProfile {
                    rtt_ms: -1.0,
                    ..base
                },
                "rtt_ms",
            ),
            (
                LineProfile {
                    rtt_ms: f64::NAN,
                    ..base
                },
                "rtt_ms",
            ),
            (
                LineProfile {
                    rtt_ms: 1e9,
                    ..base
                },
                "rtt_ms",
            ),
            (
                LineProfile {
                    loss_pct: 100.0,
                    ..base
                },
                "loss_pct",
            ),
        ];
        for (profile, name) in cases {
            let error = profile.validated().expect_err(name).to_string();
            assert!(error.contains(name), "{error}");
        }
    }
}
