use crate::LinkError;

/// What the browser's access line is like. The round trip is the full one; a location's extra
/// distance is already in it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LineProfile {
    /// `None` or 0: no limit.
    pub down_kbps: Option<f64>,
    pub up_kbps: Option<f64>,
    pub rtt_ms: f64,
    /// Of packets, in each direction.
    pub loss_pct: f64,
}

/// A line slower or farther than this is a slip of the pen, not a network.
const MAX_RTT_MS: f64 = 60_000.0;
const MIN_KBPS: f64 = 1.0;
const MAX_LOSS_PCT: f64 = 50.0;

impl LineProfile {
    /// As fast as the machine is.
    pub const UNLIMITED: Self = Self {
        down_kbps: None,
        up_kbps: None,
        rtt_ms: 0.0,
        loss_pct: 0.0,
    };

    /// The same with 0 read as "no limit", or what is wrong with it.
    pub(crate) fn checked(self) -> Result<Self, LinkError> {
        let rate = |name: &str, kbps: Option<f64>| match kbps {
            None => Ok(None),
            Some(0.0) => Ok(None),
            Some(kbps) if kbps.is_finite() && kbps >= MIN_KBPS => Ok(Some(kbps)),
            Some(kbps) => Err(LinkError::Profile(format!(
                "{name} is {kbps}; give at least {MIN_KBPS}, or 0 for no limit"
            ))),
        };
        let within = |name: &str, value: f64, most: f64| {
            if (0.0..=most).contains(&value) {
                return Ok(());
            }
            Err(LinkError::Profile(format!(
                "{name} is {value}; give 0 to {most}"
            )))
        };
        within("rtt_ms", self.rtt_ms, MAX_RTT_MS)?;
        within("loss_pct", self.loss_pct, MAX_LOSS_PCT)?;
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
        assert!(profile.checked().unwrap().is_unlimited());
    }

    #[test]
    fn nonsense_is_refused_by_name() {
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
            let error = profile.checked().expect_err(name).to_string();
            assert!(error.contains(name), "{error}");
        }
    }
}
