//! Packs bundles as containers, and unpacks those and the gzipped JSON of earlier versions.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::{Deserialize, Serialize};

use crate::container::{Container, ContainerWriter, Limits};
use crate::{
    Artifact, BrowserIdentity, Bundle, FORMAT, MainDocument, PackError, PhaseTiming, gzip_json,
    versioned_json,
};

/// The maximum unpacked size: far above the limits of a visit, far below the memory of a host.
const LIMITS: Limits = Limits {
    member_bytes: 512 << 20,
    total_bytes: 1 << 30,
};

const META: &str = "meta";
const TRACE: &str = "trace";
const LOG: &str = "log";
const SCREENSHOT: &str = "screenshot";
const RECORDING: &str = "recording";
const PROFILE_TRACE: &str = "profile-trace";
/// The prefix of artifacts, before their names.
const ARTIFACT: &str = "artifact/";

/// The encodings of packed evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Encoding {
    /// A [`Container`].
    #[default]
    Container,
    /// Gzipped JSON, for servers that cannot read containers.
    GzipJson,
}

/// The parts of a bundle that an operation uses. Others are neither read nor unpacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BundleParts {
    pub trace: bool,
    pub log: bool,
    pub screenshot: bool,
    /// The names of artifacts; `None` means all.
    pub artifacts: Option<&'static [&'static str]>,
    pub recording: bool,
    pub profile_trace: bool,
}

impl BundleParts {
    pub const ALL: Self = Self {
        trace: true,
        log: true,
        screenshot: true,
        artifacts: None,
        recording: true,
        profile_trace: true,
    };

    /// All that reports are made from.
    pub const EVIDENCE: Self = Self {
        recording: false,
        profile_trace: false,
        ..Self::ALL
    };

    /// The recording of the visit's traffic.
    pub const RECORDING: Self = Self {
        trace: false,
        log: false,
        screenshot: false,
        artifacts: Some(&[]),
        recording: true,
        profile_trace: false,
    };

    /// The trace of the load with a profiler.
    pub const PROFILE_TRACE: Self = Self {
        recording: false,
        profile_trace: true,
        ..Self::RECORDING
    };

    /// Returns whether the member of a packed bundle belongs to these parts.
    pub fn contain(&self, member: &str) -> bool {
        match member {
            META => true,
            TRACE => self.trace,
            LOG => self.log,
            SCREENSHOT => self.screenshot,
            RECORDING => self.recording,
            PROFILE_TRACE => self.profile_trace,
            _ => member
                .strip_prefix(ARTIFACT)
                .is_some_and(|name| self.artifacts.is_none_or(|names| names.contains(&name))),
        }
    }
}

/// The small fields of a bundle, which are one member.
#[derive(Serialize, Deserialize)]
struct Meta {
    format: u32,
    requested_url: String,
    final_url: String,
    document: MainDocument,
    browser: BrowserIdentity,
    #[serde(default)]
    warnings: Vec<String>,
    #[serde(default)]
    timings: Vec<PhaseTiming>,
}

impl Bundle {
    /// Packs the bundle as a container.
    pub fn pack(&self) -> Result<Vec<u8>, PackError> {
        self.pack_as(Encoding::Container)
    }

    /// Packs the bundle in an encoding.
    pub fn pack_as(&self, encoding: Encoding) -> Result<Vec<u8>, PackError> {
        match encoding {
            Encoding::Container => self.write(Vec::new()).map_err(PackError::unreadable),
            Encoding::GzipJson => gzip_json::pack(self),
        }
    }

    /// Writes the bundle as a container, one member after the other, and returns the output.
    pub fn write<W: Write>(&self, output: W) -> io::Result<W> {
        let mut container = ContainerWriter::new(output)?;
        container.add(TRACE, &self.trace)?;
        container.add(LOG, &self.log)?;
        if let Some(screenshot) = &self.screenshot {
            container.add_json(SCREENSHOT, screenshot)?;
        }
        if let Some(recording) = &self.recording {
            container.add(RECORDING, recording)?;
        }
        if let Some(trace) = &self.profile_trace {
            container.add(PROFILE_TRACE, trace)?;
        }
        for (name, artifact) in &self.artifacts {
            container.add_json(&format!("{ARTIFACT}{name}"), artifact)?;
        }
        // At the end, so that reading the index usually reads it as well.
        container.add_json(
            META,
            &Meta {
                format: self.format,
                requested_url: self.requested_url.clone(),
                final_url: self.final_url.clone(),
                document: self.document.clone(),
                browser: self.browser.clone(),
                warnings: self.warnings.clone(),
                timings: self.timings.clone(),
            },
        )?;
        container.finish()
    }

    /// Unpacks a bundle.
    pub fn unpack(bytes: &[u8]) -> Result<Self, PackError> {
        Self::unpack_parts(bytes, BundleParts::ALL)
    }

    /// Unpacks parts of a bundle and leaves others empty. A bundle of an earlier version has no
    /// parts and is unpacked whole.
    pub fn unpack_parts(bytes: &[u8], parts: BundleParts) -> Result<Self, PackError> {
        if !Container::is_container(bytes) {
            return gzip_json::unpack(bytes, FORMAT, LIMITS.total_bytes);
        }
        let container = Container::open(bytes, LIMITS)?;
        let read = |name: &str| {
            if parts.contain(name) {
                container.read(name)
            } else {
                Ok(None)
            }
        };
        let meta = read(META)?.ok_or_else(|| PackError::Unreadable("it has no meta".to_owned()))?;
        let meta: Meta = versioned_json::parse(&meta, FORMAT)?;
        let mut artifacts = BTreeMap::new();
        for member in container.names() {
            if let Some(name) = member.strip_prefix(ARTIFACT)
                && let Some(text) = read(member)?
            {
                let artifact: Artifact =
                    serde_json::from_slice(&text).map_err(PackError::unreadable)?;
                artifacts.insert(name.to_owned(), artifact);
            }
        }
        let screenshot = read(SCREENSHOT)?.map(|text| serde_json::from_slice(&text));
        Ok(Self {
            format: meta.format,
            requested_url: meta.requested_url,
            final_url: meta.final_url,
            document: meta.document,
            browser: meta.browser,
            trace: read(TRACE)?.unwrap_or_default(),
            log: read(LOG)?.unwrap_or_default(),
            screenshot: screenshot.transpose().map_err(PackError::unreadable)?,
            artifacts,
            warnings: meta.warnings,
            timings: meta.timings,
            recording: read(RECORDING)?,
            profile_trace: read(PROFILE_TRACE)?,
        })
    }
}

#[cfg(test)]
mod tests;
