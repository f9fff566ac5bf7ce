/// One picture of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PictureId {
    /// The first screen at the end of the visit.
    Final,
    /// The whole page.
    Whole,
    /// A frame of the filmstrip.
    Frame(usize),
    /// The page after a step before the visit.
    Step(usize),
    /// The page after a measured step.
    FlowStep(usize),
}

impl PictureId {
    /// The name in paths and of the member of packed report media.
    pub fn name(self) -> String {
        match self {
            Self::Final => "final".to_owned(),
            Self::Whole => "whole".to_owned(),
            Self::Frame(index) => format!("frame-{index}"),
            Self::Step(index) => format!("step-{index}"),
            Self::FlowStep(index) => format!("flow-{index}"),
        }
    }

    /// Returns the picture with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "final" => Some(Self::Final),
            "whole" => Some(Self::Whole),
            _ => match name.split_once('-')? {
                ("frame", index) => Some(Self::Frame(index.parse().ok()?)),
                ("step", index) => Some(Self::Step(index.parse().ok()?)),
                ("flow", index) => Some(Self::FlowStep(index.parse().ok()?)),
                _ => None,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_id_is_parsed_from_its_own_name() {
        for id in [
            PictureId::Final,
            PictureId::Whole,
            PictureId::Frame(0),
            PictureId::Frame(11),
            PictureId::Step(0),
            PictureId::FlowStep(3),
        ] {
            assert_eq!(PictureId::from_name(&id.name()), Some(id));
        }
        for name in [
            "",
            "frame-",
            "step-x",
            "step",
            "frame--1",
            "../final",
            "frame-1.5",
        ] {
            assert_eq!(PictureId::from_name(name), None, "{name}");
        }
    }
}
