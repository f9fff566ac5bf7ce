//! Makes the options of a visit from flags and files.

use std::collections::BTreeMap;
use std::path::Path;

use plumbline_seam::{
    BasicAuth, Consent, Cookie, Header, InvalidOption, ReplacementError, Secret, Steps,
    VisitOptions, check_secret_value, without_value,
};
use serde::de::DeserializeOwned;

use crate::args::StateArgs;
use crate::clock::now;
use crate::cookie_jar;
use crate::exit::Exit;

/// Returns the options of a visit if they are valid. Errors contain no value of the state.
pub fn resolve(
    args: StateArgs,
    flow: Option<&Path>,
    allow_error_status: bool,
) -> Result<VisitOptions, Exit> {
    let mut options = match &args.state {
        Some(path) => read_file(path)?,
        None => VisitOptions::default(),
    };
    options.allow_error_status |= allow_error_status;
    let mut state = options.state.take().unwrap_or_default();
    if let Some(path) = &args.cookie_jar {
        let cookies = cookie_jar::parse(&read(path)?, now().0 / 1000);
        let cookies = cookies.map_err(|error| usage(path, &error))?;
        state.cookies.extend(cookies);
    }
    for cookie in &args.cookie {
        let (name, value) = pair(cookie, '=', "--cookie", "NAME=VALUE")?;
        state.cookies.push(Cookie {
            name,
            value,
            ..Cookie::default()
        });
    }
    for header in &args.header {
        let (name, value) = pair(header, ':', "--header", "'NAME: VALUE'")?;
        state.headers.push(Header {
            name: name.trim().to_owned(),
            value: Secret::from(value.expose().trim()),
            origins: Vec::new(),
        });
    }
    for (items, stored, flag) in [
        (
            &args.local_storage,
            &mut state.local_storage,
            "--local-storage",
        ),
        (
            &args.session_storage,
            &mut state.session_storage,
            "--session-storage",
        ),
    ] {
        for item in items {
            let (name, value) = pair(item, '=', flag, "NAME=VALUE")?;
            stored.insert(name, value);
        }
    }
    if let Some(credentials) = &args.basic_auth {
        let (username, password) = pair(credentials, ':', "--basic-auth", "USER:PASSWORD")?;
        state.basic_auth = Some(BasicAuth { username, password });
    }
    if let Some(path) = &args.script {
        state.script = Some(Secret::from(read(path)?));
    }
    state.origins.extend(args.state_origin);
    state.blocked_hosts.extend(args.block_host);
    state.user_agent_suffix = args.user_agent_suffix.or(state.user_agent_suffix.take());
    options.state = (*state != Default::default()).then_some(state);
    let mut expect = options.expect.take().unwrap_or_default();
    for (flag, member) in [
        (args.expect_selector, &mut expect.selector),
        (args.expect_text, &mut expect.text),
        (args.expect_url, &mut expect.url),
        (args.expect_cookie, &mut expect.cookie),
    ] {
        if flag.is_some() {
            *member = flag;
        }
    }
    options.expect = (*expect != Default::default()).then_some(expect);
    if let Some(path) = &args.steps {
        options.steps = Steps::parse(read_file(path)?).map_err(invalid)?;
    }
    if let Some(path) = flow {
        options.flow = Steps::parse_flow(read_file(path)?).map_err(invalid)?;
    }
    options.consent = args.consent.unwrap_or(options.consent);
    options.view = args.view.unwrap_or(options.view);
    options.validate().map_err(invalid)?;
    replace_secrets(&options, |variable| std::env::var(variable).ok())
}

/// Returns an error if something shall be measured after the visits where that is not possible.
pub fn refuse_later_measurements(options: &VisitOptions, what: &str) -> Result<(), Exit> {
    let message = if !options.flow.is_empty() {
        format!("flow: no steps are measured in a {what}; use `plumbline audit`")
    } else if options.profile {
        format!("profile: no functions are profiled in a {what}; use `plumbline audit`")
    } else if !options.interactions.is_none() {
        format!("interactions: no inputs are made in a {what}; use `plumbline audit`")
    } else {
        return Ok(());
    };
    Err(Exit::usage(message))
}

/// Returns an error if an option needs the servers of a page, which are not connected to while a
/// recording is visited.
pub fn refuse_with_recording(options: &VisitOptions) -> Result<(), Exit> {
    refuse_later_measurements(options, "visit of a recording")?;
    let needed = [
        ("steps", !options.steps.is_empty()),
        ("consent", options.consent != Consent::None),
        ("view", !options.view.is_first()),
    ];
    match needed.iter().find(|(_, is_set)| *is_set) {
        Some((name, _)) => Err(Exit::usage(format!(
            "{name}: not possible in a visit of a recording"
        ))),
        None => Ok(()),
    }
}

/// Returns the options with the values of environment variables in place of the placeholders of
/// secrets.
fn replace_secrets(
    options: &VisitOptions,
    read_variable: impl Fn(&str) -> Option<String>,
) -> Result<VisitOptions, Exit> {
    let names = options.secret_names();
    if names.is_empty() {
        return Ok(options.clone());
    }
    let mut values = BTreeMap::new();
    for name in names {
        let variable = secret_variable(&name);
        let value = read_variable(&variable).ok_or_else(|| {
            Exit::usage(format!(
                "{{{{secret.{name}}}}}: set the environment variable {variable} to its value"
            ))
        })?;
        check_secret_value(&value)
            .map_err(|reason| Exit::usage(format!("{variable}: {reason}")))?;
        values.insert(name, Secret::from(value));
    }
    options.with_secrets(&values).map_err(|error| match error {
        ReplacementError::Invalid(error) => invalid(error),
        error @ ReplacementError::Unknown(_) => Exit::usage(error.to_string()),
    })
}

/// Returns the name of the environment variable with a secret: upper case, with underscores in
/// place of dots and hyphens, which variables cannot have.
fn secret_variable(name: &str) -> String {
    let name = name.to_ascii_uppercase().replace(['.', '-'], "_");
    format!("PLUMBLINE_SECRET_{name}")
}

fn invalid(error: InvalidOption) -> Exit {
    let position = error
        .index
        .map_or(String::new(), |index| format!("[{index}]"));
    Exit::usage(format!("{}{position}: {}", error.field, error.reason))
}

fn read_file<T: DeserializeOwned>(path: &Path) -> Result<T, Exit> {
    let text = read(path)?;
    let is_toml = path
        .extension()
        .is_some_and(|extension| extension == "toml");
    // The errors of both parsers would quote the file.
    let options = if is_toml {
        toml::from_str(&text).map_err(|error| without_value(error.message()))
    } else {
        serde_json::from_str(&text).map_err(|error| without_value(&error.to_string()))
    };
    options.map_err(|error| usage(path, &error))
}

fn read(path: &Path) -> Result<String, Exit> {
    std::fs::read_to_string(path).map_err(|error| usage(path, &error.to_string()))
}

fn usage(path: &Path, error: &str) -> Exit {
    Exit::usage(format!("{}: {error}", path.display()))
}

/// Splits the value of a flag at the first separator.
fn pair(text: &str, separator: char, flag: &str, form: &str) -> Result<(String, Secret), Exit> {
    match text.split_once(separator) {
        Some((name, value)) => Ok((name.to_owned(), Secret::from(value))),
        None => Err(Exit::usage(format!("{flag} takes {form}"))),
    }
}

#[cfg(test)]
mod tests {
    use plumbline_seam::View;

    use super::*;

    fn file(name: &str, text: &str) -> (tempfile::TempDir, std::path::PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        (directory, path)
    }

    #[test]
    fn options_that_need_servers_are_refused_with_a_recording() {
        let refused = |text: &str| {
            let options: VisitOptions = serde_json::from_str(text).unwrap();
            refuse_with_recording(&options).err()
        };
        assert!(refused("{}").is_none());
        assert!(refused(r#"{"quick": true}"#).is_none());
        for text in [
            r#"{"steps": [{"type": "goto", "url": "https://a.test/"}]}"#,
            r#"{"flow": [{"type": "click", "selector": "a"}]}"#,
            r#"{"interactions": true}"#,
            r#"{"profile": true}"#,
            r#"{"consent": "accept"}"#,
            r#"{"view": "repeat"}"#,
        ] {
            assert!(matches!(refused(text), Some(Exit::Usage(_))), "{text}");
        }
    }

    fn message(result: Result<VisitOptions, Exit>) -> String {
        match result {
            Err(Exit::Usage(message)) => message,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn flags_add_to_the_file_in_json_and_toml() {
        let toml = "[state]\nuserAgentSuffix = \"Lab\"\n[[state.cookies]]\nname = \"a\"\nvalue = \"1\"\n\
                    [expect]\nselector = \"#a\"\n";
        let json = r##"{"state":{"userAgentSuffix":"Lab","cookies":[{"name":"a","value":"1"}]},
                       "expect":{"selector":"#a"}}"##;
        for (name, text) in [("state.toml", toml), ("state.json", json)] {
            let (_directory, path) = file(name, text);
            let args = StateArgs {
                state: Some(path),
                cookie: vec!["b=2=3".to_owned()],
                header: vec!["X-Token:  t:1 ".to_owned()],
                basic_auth: Some("ada:love:lace".to_owned()),
                local_storage: vec!["k=v".to_owned()],
                expect_url: Some("*".to_owned()),
                ..StateArgs::default()
            };
            let options = resolve(args, None, true).unwrap();
            assert!(options.allow_error_status);
            let state = options.state.unwrap();
            let cookies: Vec<_> = state
                .cookies
                .iter()
                .map(|c| (c.name.as_str(), c.value.expose()))
                .collect();
            assert_eq!(cookies, [("a", "1"), ("b", "2=3")]);
            assert_eq!(state.headers[0].value.expose(), "t:1");
            let credentials = state.basic_auth.unwrap();
            assert_eq!(
                (credentials.username.as_str(), credentials.password.expose()),
                ("ada", "love:lace")
            );
            assert_eq!(state.local_storage["k"].expose(), "v");
            assert_eq!(state.user_agent_suffix.as_deref(), Some("Lab"));
            let expect = options.expect.unwrap();
            assert_eq!(expect.selector.as_deref(), Some("#a"));
            assert_eq!(expect.url.as_deref(), Some("*"));
        }
        assert!(
            resolve(StateArgs::default(), None, false)
                .unwrap()
                .is_default()
        );
    }

    #[test]
    fn steps_are_read_as_a_list_a_recording_or_toml() {
        let fill = r##"{"type":"fill","selector":"#a","value":"canary"}"##;
        let toml = "[[steps]]\ntype = \"fill\"\nselector = \"#a\"\nvalue = \"canary\"\n";
        for (name, text) in [
            ("steps.json", format!("[{fill}]")),
            ("steps.json", format!(r#"{{"title":"a","steps":[{fill}]}}"#)),
            ("steps.toml", toml.to_owned()),
        ] {
            let (_directory, path) = file(name, &text);
            let args = StateArgs {
                steps: Some(path),
                ..StateArgs::default()
            };
            let titles = resolve(args, None, false).unwrap().steps.titles();
            assert_eq!(titles, ["fill in `#a`"]);
        }
        let (_directory, path) = file("state.toml", toml);
        let args = StateArgs {
            state: Some(path),
            ..StateArgs::default()
        };
        assert_eq!(resolve(args, None, false).unwrap().steps.titles().len(), 1);
        let custom = r#"[{"type":"close"},{"type":"customStep","name":"n"}]"#;
        let (_directory, path) = file("steps.json", custom);
        let args = StateArgs {
            steps: Some(path),
            ..StateArgs::default()
        };
        let error = message(resolve(args, None, false));
        assert!(error.starts_with("steps[0]: "), "{error}");
        let (_directory, path) = file(
            "state.json",
            r#"{"steps":[{"type":"fill","value":"canary"}]}"#,
        );
        let args = StateArgs {
            state: Some(path),
            ..StateArgs::default()
        };
        let error = message(resolve(args, None, false));
        assert!(
            error.contains("steps[0]: ") && !error.contains("canary"),
            "{error}"
        );
    }

    #[test]
    fn the_view_is_a_flag_or_a_member_of_the_file() {
        let (_directory, path) = file("state.toml", "view = \"repeat\"\n");
        let args = StateArgs {
            state: Some(path),
            ..StateArgs::default()
        };
        assert_eq!(resolve(args, None, false).unwrap().view, View::Repeat);
        let args = StateArgs {
            view: Some(View::After("shop".to_owned())),
            ..StateArgs::default()
        };
        assert!(message(resolve(args, None, false)).starts_with("view: "));
    }

    #[test]
    fn secrets_are_read_from_the_environment() {
        let options =
            r#"{"state":{"headers":[{"name":"A","value":"Bearer {{secret.api-token.1}}"}]}}"#;
        let options: VisitOptions = serde_json::from_str(options).unwrap();
        let read = |variable: &str| {
            assert_eq!(variable, "PLUMBLINE_SECRET_API_TOKEN_1");
            Some("canary-1".to_owned())
        };
        let replaced = replace_secrets(&options, read).unwrap();
        let state = replaced.state.unwrap();
        assert_eq!(state.headers[0].value.expose(), "Bearer canary-1");
        assert_eq!(replaced.secrets, [Secret::from("canary-1")]);
        for (value, expected) in [
            (
                None,
                "set the environment variable PLUMBLINE_SECRET_API_TOKEN_1",
            ),
            (
                Some("canary"),
                "PLUMBLINE_SECRET_API_TOKEN_1: The value of a secret has",
            ),
            (
                Some("canary-\n1"),
                "state.headers[0]: The value of a header",
            ),
        ] {
            let result = replace_secrets(&options, |_| value.map(str::to_owned));
            let error = message(result);
            assert!(
                error.contains(expected) && !error.contains("canary"),
                "{error}"
            );
        }
        // Without placeholders, no variable is read.
        replace_secrets(&VisitOptions::default(), |_| panic!("no secret")).unwrap();
    }

    #[test]
    fn an_error_names_the_member_and_quotes_no_value() {
        for (name, text) in [
            ("a.toml", "[state]\nscript = [\"canary\"]"),
            ("a.toml", "[state\nscript = \"canary\""),
            ("a.json", r#"{"state":{"cookies":"canary"}}"#),
            ("a.json", r#"{"state":{"script":"canary"}"#),
        ] {
            let (_directory, path) = file(name, text);
            let args = StateArgs {
                state: Some(path),
                ..StateArgs::default()
            };
            let message = message(resolve(args, None, false));
            assert!(
                message.contains(name) && !message.contains("canary"),
                "{message}"
            );
        }
        let args = StateArgs {
            header: vec!["Host: canary".to_owned()],
            ..StateArgs::default()
        };
        let error = message(resolve(args, None, false));
        assert!(
            error.starts_with("state.headers[0]: ") && !error.contains("canary"),
            "{error}"
        );
        let args = StateArgs {
            cookie: vec!["canary".to_owned()],
            ..StateArgs::default()
        };
        assert_eq!(
            message(resolve(args, None, false)),
            "--cookie takes NAME=VALUE"
        );
    }
}
