//! Which pictures were candidates for the largest paint.

use serde::Deserialize;

use crate::event::Event;

/// From the whole trace, with their times.
#[derive(Debug, Clone, Default)]
pub struct LargestImages(Vec<(f64, String)>);

#[derive(Deserialize)]
struct Args {
    data: Image,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Image {
    image_url: String,
}

impl LargestImages {
    pub(crate) fn see(&mut self, event: &Event) {
        if event.name == "LargestImagePaint::Candidate"
            && let Some(Args { data }) = event.args::<Args>()
        {
            self.0.push((event.ts_us, data.image_url));
        }
    }

    /// The address of the picture that was painted at this time; none where it was text.
    pub fn painted_at(&self, ts_us: f64) -> Option<&str> {
        // Times that went through a subtraction: equal to within a tenth of a microsecond.
        let same = |(us, _): &&(f64, String)| (us - ts_us).abs() < 0.1;
        self.0.iter().find(same).map(|(_, url)| url.as_str())
    }
}
