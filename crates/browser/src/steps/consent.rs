//! Answers the dialogs of common consent managers.
//!
//! The selectors are facts about the managers, from their documentation, from the public rules of
//! DuckDuckGo's autoconsent (github.com/duckduckgo/autoconsent, `rules/autoconsent`) and from the
//! tests of sites that use them. Only managers whose dialog is answered by one click are listed: a
//! refusal that needs several pages of settings is not tried.

use std::time::{Duration, Instant};

use plumbline_bundle::StepRecord;
use plumbline_seam::{Consent, Selectors, Step};
use serde_json::json;

use super::error::StepError;
use super::{Runner, waiting};
use crate::VisitEvent;
use crate::page::VisitError;
use crate::plan::VisitPlan;
use crate::visit::Observer;

/// Maximum time to wait for a dialog.
const DIALOG_DEADLINE: Duration = Duration::from_secs(15);
/// Time to wait for a dialog when the page is loaded and its network is idle.
const DIALOG_AFTER_IDLE: Duration = Duration::from_secs(3);
const CLICK_DEADLINE: Duration = Duration::from_secs(10);
/// Number of frames that are searched for a dialog besides the page.
const MAX_FRAMES: u32 = 6;

/// The buttons of a consent manager, as CSS selectors that are searched for in open shadow roots.
struct Preset {
    manager: &'static str,
    accept: &'static str,
    reject: &'static str,
}

const PRESETS: [Preset; 18] = [
    Preset {
        manager: "OneTrust",
        accept: "#onetrust-accept-btn-handler",
        reject: "#onetrust-reject-all-handler",
    },
    Preset {
        manager: "Cookiebot",
        accept: "#CybotCookiebotDialogBodyLevelButtonLevelOptinAllowAll, \
                 #CybotCookiebotDialogBodyButtonAccept",
        reject: "#CybotCookiebotDialogBodyButtonDecline",
    },
    Preset {
        manager: "Usercentrics",
        accept: "[data-testid='uc-accept-all-button'], #uc-btn-accept-banner, \
                 button#accept.uc-accept-button",
        reject: "[data-testid='uc-deny-all-button'], #uc-btn-deny-banner, \
                 button#deny.uc-deny-button",
    },
    Preset {
        manager: "Didomi",
        accept: "#didomi-notice-agree-button",
        reject: "#didomi-notice-disagree-button, .didomi-continue-without-agreeing",
    },
    Preset {
        manager: "InMobi Choice (Quantcast)",
        accept: ".qc-cmp2-summary-buttons > button[mode='primary']",
        reject: "#disagree-btn, \
                 .qc-cmp2-summary-buttons > button[mode='secondary']:nth-of-type(2)",
    },
    Preset {
        manager: "TrustArc",
        accept: "#truste-consent-button",
        reject: "#truste-consent-required",
    },
    Preset {
        manager: "CookieYes",
        accept: ".cky-consent-container [data-cky-tag='accept-button']",
        reject: ".cky-consent-container [data-cky-tag='reject-button']",
    },
    Preset {
        manager: "Complianz",
        accept: ".cmplz-cookiebanner .cmplz-accept",
        reject: ".cmplz-cookiebanner .cmplz-deny",
    },
    Preset {
        manager: "Klaro",
        accept: ".klaro .cm-btn-accept-all, .klaro .cookie-notice .cm-btn-success",
        reject: ".klaro .cm-btn-decline, .klaro .cn-decline",
    },
    Preset {
        manager: "Osano",
        accept: ".osano-cm-accept-all",
        reject: ".osano-cm-denyAll",
    },
    Preset {
        manager: "consentmanager",
        accept: "#cmpwelcomebtnyes a, .cmpboxbtnyes",
        reject: "#cmpwelcomebtnno a, .cmpboxbtnno",
    },
    // In a frame of its own.
    Preset {
        manager: "Sourcepoint",
        accept: "button.sp_choice_type_11",
        reject: "button.sp_choice_type_13",
    },
    Preset {
        manager: "Google consent messages",
        accept: ".fc-consent-root .fc-cta-consent",
        reject: ".fc-consent-root .fc-cta-do-not-consent",
    },
    Preset {
        manager: "iubenda",
        accept: ".iubenda-cs-accept-btn",
        reject: ".iubenda-cs-reject-btn",
    },
    Preset {
        manager: "CookieFirst",
        accept: "[data-cookiefirst-action='accept']",
        reject: "[data-cookiefirst-action='reject']",
    },
    Preset {
        manager: "Axeptio",
        accept: "#axeptio_btn_acceptAll",
        reject: "#axeptio_btn_dismiss",
    },
    Preset {
        manager: "CookieScript",
        accept: "#cookiescript_accept",
        reject: "#cookiescript_reject",
    },
    Preset {
        manager: "Termly",
        accept: "[data-tid='banner-accept']",
        reject: "[data-tid='banner-decline']",
    },
];

impl Preset {
    /// Returns the button for a choice; `None` if there is nothing to choose.
    fn button(&self, consent: Consent) -> Option<&'static str> {
        match consent {
            Consent::None => None,
            Consent::Accept => Some(self.accept),
            Consent::Reject => Some(self.reject),
        }
    }
}

/// A dialog of a known manager.
struct Dialog {
    manager: &'static str,
    button: &'static str,
    /// The frame with the dialog, as in a step.
    frame: Vec<u32>,
}

impl Runner<'_> {
    /// Opens the page and answers its consent dialog. Reports the manager of the dialog, or that
    /// there is none of a known manager, which is not a failure.
    pub(super) async fn answer_consent(
        &mut self,
        plan: &VisitPlan,
        observer: &Observer<'_>,
    ) -> Result<(), VisitError> {
        let place = "Opening the page for consent".to_owned();
        self.run(&Step::goto(&plan.url), place, plan, observer)
            .await?;
        let started_at = Instant::now();
        let answer = match self.find_dialog(plan.consent).await {
            Ok(Some(dialog)) => self
                .click_dialog(&dialog, plan)
                .await
                .map(|()| Some(dialog)),
            Ok(None) => Ok(None),
            Err(error) => Err(error),
        };
        let (dialog, error) = match answer {
            Ok(dialog) => (dialog, None),
            Err(StepError::Visit(error)) => return Err(error),
            Err(StepError::Failed(reason)) => (None, Some(reason)),
            Err(StepError::Unresponsive) => (None, Some("the page did not respond".to_owned())),
        };
        let manager = dialog.as_ref().map(|dialog| dialog.manager);
        let choice = plan.consent.as_str();
        let record = StepRecord {
            title: match manager {
                Some(manager) => format!("{choice} in the consent dialog of {manager}"),
                None => format!("{choice} consent: no dialog of a known manager"),
            },
            url: self.page.final_url().to_owned(),
            ms: started_at.elapsed().as_secs_f64() * 1000.0,
            screenshot: self.take_screenshot(true).await,
            error,
        };
        self.page.check_size()?;
        observer(VisitEvent::StepEnded(&record));
        observer(VisitEvent::ConsentEnded { manager });
        Ok(())
    }

    /// Waits for a dialog of a known manager, also in a frame of the page.
    async fn find_dialog(&mut self, consent: Consent) -> Result<Option<Dialog>, StepError> {
        let buttons: Vec<&str> = PRESETS.iter().filter_map(|p| p.button(consent)).collect();
        let mut deadline = Instant::now() + DIALOG_DEADLINE;
        let mut is_idle = false;
        loop {
            for frame in std::iter::once(Vec::new()).chain((0..MAX_FRAMES).map(|n| vec![n])) {
                match self.visible_button(&frame, &buttons, deadline).await? {
                    Frame::Missing => break,
                    Frame::Without => {}
                    Frame::With(index) => {
                        return Ok(PRESETS.get(index).zip(buttons.get(index)).map(
                            |(preset, button)| Dialog {
                                manager: preset.manager,
                                button,
                                frame,
                            },
                        ));
                    }
                }
            }
            if !is_idle && waiting::is_idle(&self.page) {
                is_idle = true;
                deadline = deadline.min(Instant::now() + DIALOG_AFTER_IDLE);
            }
            if !waiting::next_check(&mut self.page, deadline).await? {
                return Ok(None);
            }
        }
    }

    async fn visible_button(
        &mut self,
        frame: &[u32],
        buttons: &[&str],
        deadline: Instant,
    ) -> Result<Frame, StepError> {
        let document = match self.scope(frame, deadline).await {
            Ok(Some(scope)) => scope.document,
            Ok(None) => return Ok(Frame::Missing),
            // A document is being replaced.
            Err(StepError::Failed(_)) => return Ok(Frame::Without),
            Err(error) => return Err(error),
        };
        let function = include_str!("visible-button.js");
        let index = self.value_of::<i64>(&document, function, json!([buttons]), deadline);
        match index.await {
            Ok(index) => Ok(usize::try_from(index).map_or(Frame::Without, Frame::With)),
            Err(StepError::Failed(_)) => Ok(Frame::Without),
            Err(error) => Err(error),
        }
    }

    async fn click_dialog(&mut self, dialog: &Dialog, plan: &VisitPlan) -> Result<(), StepError> {
        let selectors = Selectors(vec![vec![format!("pierce/{}", dialog.button)]]);
        let step = Step::click(selectors, dialog.frame.clone());
        let deadline = Instant::now() + CLICK_DEADLINE;
        self.act(&step, plan, deadline).await?;
        waiting::until_idle(&mut self.page, Instant::now() + super::SETTLE_DEADLINE).await?;
        Ok(())
    }
}

/// The result of searching a frame.
enum Frame {
    /// There is no such frame.
    Missing,
    Without,
    /// The button with this index is visible.
    With(usize),
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_manager_is_listed_once_with_two_different_buttons() {
        let managers: BTreeSet<_> = PRESETS.iter().map(|preset| preset.manager).collect();
        assert_eq!(managers.len(), PRESETS.len());
        for preset in &PRESETS {
            assert_ne!(preset.accept, preset.reject);
            assert_eq!(preset.button(Consent::None), None);
            assert_eq!(preset.button(Consent::Reject), Some(preset.reject));
        }
    }
}
