use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::to_raw_value;

use crate::{Artifact, Bundle};

/// A record that the bundle of a visit stores as an artifact, beside what the browser gathered.
pub trait Record: Serialize + DeserializeOwned {
    /// The name of the artifact in a bundle.
    const ARTIFACT: &'static str;

    /// Stores the record in the bundle of the visit.
    fn store_in(&self, bundle: &mut Bundle) -> Result<(), serde_json::Error> {
        let artifact = Artifact::Gathered(to_raw_value(self)?);
        bundle.artifacts.insert(Self::ARTIFACT.to_owned(), artifact);
        Ok(())
    }

    /// Returns the record of a bundle; `None` if it is missing or unreadable.
    fn stored_in(bundle: &Bundle) -> Option<Self> {
        match bundle.artifacts.get(Self::ARTIFACT)? {
            Artifact::Gathered(raw) => serde_json::from_str(raw.get()).ok(),
            Artifact::Missing(_) => None,
        }
    }
}
