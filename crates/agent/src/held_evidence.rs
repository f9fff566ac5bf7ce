//! The evidence of judged visits until one of them is chosen.

use std::borrow::Cow;

use plumbline_browser::ProfiledLoad;
use plumbline_bundle::{Bundle, Encoding, FlowRecords, InteractionRecords, Record, StepRecords};
use plumbline_model::media::{Picture, ReportMedia};
use plumbline_model::report::Report;
use plumbline_seam::AuditOutput;
use tokio::task::spawn_blocking;

use crate::AuditFault;

/// The size of traces and logs that an audit holds unpacked while it visits again. Larger evidence
/// is packed at once, because it would occupy memory for the length of a visit.
const MAX_UNPACKED_BYTES: usize = 32_000_000;

/// A judged visit. Its evidence is packed when it is chosen for the report.
#[derive(Debug)]
pub(crate) struct JudgedVisit {
    pub(crate) report: Report,
    pub(crate) evidence: Option<HeldEvidence>,
}

/// The evidence of a visit.
#[derive(Debug)]
pub(crate) enum HeldEvidence {
    Unpacked {
        /// The bundle; `None` if the page was not measured.
        bundle: Option<Box<Bundle>>,
        media: Option<Box<ReportMedia>>,
    },
    Packed {
        bundle: Option<Vec<u8>>,
        media: Option<Vec<u8>>,
    },
}

impl From<Report> for JudgedVisit {
    fn from(report: Report) -> Self {
        Self {
            report,
            evidence: None,
        }
    }
}

impl From<AuditOutput> for JudgedVisit {
    fn from(output: AuditOutput) -> Self {
        Self {
            report: output.report,
            evidence: Some(HeldEvidence::Packed {
                bundle: output.bundle,
                media: output.media,
            }),
        }
    }
}

impl JudgedVisit {
    /// Creates the visit of a page that could not be measured, with the pictures of its steps.
    pub(crate) fn failed(report: Report, steps: StepRecords) -> Self {
        let media = ReportMedia::of_steps(steps);
        Self {
            report,
            evidence: media.map(|media| HeldEvidence::Unpacked {
                bundle: None,
                media: Some(Box::new(media)),
            }),
        }
    }

    /// Adds the inputs that were made after the visit to its report and its bundle.
    pub(crate) async fn with_interactions(
        self,
        records: InteractionRecords,
        encoding: Encoding,
    ) -> Result<Self, AuditFault> {
        let stored = records.clone();
        let mut visit = self
            .with_changed_evidence(encoding, move |bundle, _| {
                stored.store_in(bundle).map_err(AuditFault::of)
            })
            .await?;
        visit.report.responsiveness = Some(Box::new(records.into()));
        Ok(visit)
    }

    /// Adds the steps that were measured after the visit to its report, its bundle and its media.
    pub(crate) async fn with_flow(
        self,
        mut records: FlowRecords,
        encoding: Encoding,
    ) -> Result<Self, AuditFault> {
        let stored = records.clone();
        let pictures = records.take_screenshots().into_iter();
        let pictures: Vec<Option<Picture>> = pictures
            .map(|screenshot| screenshot.map(Picture::from))
            .collect();
        let mut visit = self
            .with_changed_evidence(encoding, move |bundle, media| {
                if let Some(media) = media {
                    media.flow = pictures;
                }
                stored.store_in(bundle).map_err(AuditFault::of)
            })
            .await?;
        visit.report.flow = Some(Box::new(records));
        Ok(visit)
    }

    /// Adds the records of a load with a profiler to its report and its bundle, which also gets the
    /// trace of that load.
    pub(crate) async fn with_profile(
        self,
        profiled: ProfiledLoad,
        encoding: Encoding,
    ) -> Result<Self, AuditFault> {
        let ProfiledLoad { records, trace, .. } = profiled;
        let stored = records.clone();
        let mut visit = self
            .with_changed_evidence(encoding, move |bundle, _| {
                bundle.profile_trace = trace;
                stored.store_in(bundle).map_err(AuditFault::of)
            })
            .await?;
        visit.report.profile = Some(Box::new(records));
        Ok(visit)
    }

    /// Changes the bundle and the media. Packed evidence is unpacked and packed again.
    async fn with_changed_evidence(
        mut self,
        encoding: Encoding,
        change: impl FnOnce(&mut Bundle, Option<&mut ReportMedia>) -> Result<(), AuditFault>
        + Send
        + 'static,
    ) -> Result<Self, AuditFault> {
        self.evidence = match self.evidence {
            Some(HeldEvidence::Unpacked {
                bundle: Some(mut bundle),
                mut media,
            }) => {
                change(&mut bundle, media.as_deref_mut())?;
                let bundle = Some(bundle);
                Some(HeldEvidence::Unpacked { bundle, media })
            }
            Some(HeldEvidence::Packed {
                bundle: Some(packed),
                media: packed_media,
            }) => {
                let task = spawn_blocking(move || {
                    let mut bundle = Bundle::unpack(&packed).map_err(AuditFault::of)?;
                    let media = packed_media.as_deref().map(ReportMedia::unpack);
                    let mut media = media.transpose().map_err(AuditFault::of)?;
                    change(&mut bundle, media.as_mut())?;
                    let media = media.map(|media| media.pack_as(encoding)).transpose();
                    let bundle = bundle.pack_as(encoding).map_err(AuditFault::of)?;
                    Ok((bundle, media.map_err(AuditFault::of)?))
                });
                let (bundle, media) = task.await.map_err(AuditFault::of)??;
                let bundle = Some(bundle);
                Some(HeldEvidence::Packed { bundle, media })
            }
            other => other,
        };
        Ok(self)
    }

    /// Returns the report media without their pictures, if there are any.
    pub(crate) fn media(&self) -> Result<Option<Cow<'_, ReportMedia>>, AuditFault> {
        let media = match &self.evidence {
            Some(HeldEvidence::Unpacked { media, .. }) => media.as_deref().map(Cow::Borrowed),
            Some(HeldEvidence::Packed { media, .. }) => {
                let unpack = ReportMedia::unpack_without_pictures;
                let media = media.as_deref().map(unpack).transpose();
                media.map_err(AuditFault::of)?.map(Cow::Owned)
            }
            None => None,
        };
        Ok(media)
    }

    /// Packs the evidence on a blocking thread.
    pub(crate) async fn pack(self, encoding: Encoding) -> Result<AuditOutput, AuditFault> {
        let Some(evidence) = self.evidence else {
            return Ok(self.report.into());
        };
        let (bundle, media) = evidence.pack(encoding).await?;
        Ok(AuditOutput {
            report: self.report,
            bundle,
            media,
            session: None,
        })
    }

    /// Prepares the visit for being held while up to `visits` are: large evidence is packed.
    pub(crate) async fn hold(
        mut self,
        visits: usize,
        encoding: Encoding,
    ) -> Result<Self, AuditFault> {
        let max_bytes = MAX_UNPACKED_BYTES / visits.max(1);
        self.evidence = match self.evidence {
            Some(evidence) if evidence.unpacked_bytes() > max_bytes => {
                let (bundle, media) = evidence.pack(encoding).await?;
                Some(HeldEvidence::Packed { bundle, media })
            }
            other => other,
        };
        Ok(self)
    }
}

/// A packed bundle and packed report media.
type PackedEvidence = (Option<Vec<u8>>, Option<Vec<u8>>);

impl HeldEvidence {
    /// The size of the largest parts, or 0 if they are packed.
    fn unpacked_bytes(&self) -> usize {
        match self {
            Self::Unpacked { bundle, .. } => bundle
                .as_ref()
                .map_or(0, |bundle| bundle.trace.len() + bundle.log.len()),
            Self::Packed { .. } => 0,
        }
    }

    async fn pack(self, encoding: Encoding) -> Result<PackedEvidence, AuditFault> {
        let (bundle, media) = match self {
            Self::Packed { bundle, media } => return Ok((bundle, media)),
            Self::Unpacked { bundle, media } => (bundle, media),
        };
        let task = spawn_blocking(move || {
            let media = media.map(|media| media.pack_as(encoding)).transpose();
            let bundle = bundle.map(|bundle| bundle.pack_as(encoding)).transpose();
            Ok((
                bundle.map_err(AuditFault::of)?,
                media.map_err(AuditFault::of)?,
            ))
        });
        let packed = task.await;
        packed.unwrap_or_else(|_| Err(AuditFault("packing the evidence panicked".to_owned())))
    }
}
