//! The configuration file of the long-running commands. Its keys are the names of the flags. A
//! setting of the file becomes an argument unless a flag or an environment variable sets it, so
//! that all three are parsed by the same code into the same struct.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, CommandFactory, FromArgMatches};
use toml::Value;

use super::Args;
use crate::exit::Exit;
use crate::suggestion::unknown_id;

/// The flags that cannot be set in a file.
const FLAGS_ONLY: [&str; 4] = ["config", "create-key", "help", "version"];

/// Parses the command line, and the configuration file that it or the environment names. Ends the
/// process if the command line is invalid, or if it asks for help.
pub fn parse(command_line: Vec<OsString>) -> Result<Args, Exit> {
    let lenient = Args::command()
        .ignore_errors(true)
        .try_get_matches_from(&command_line)
        .unwrap_or_else(|error| error.exit());
    let Some((command, path)) = config_path(&lenient) else {
        return Ok(parse_strictly(&command_line).unwrap_or_else(|error| error.exit()));
    };
    // The file may set what is required, but other errors are those of the command line.
    match parse_strictly(&command_line) {
        Err(error) if error.kind() != ErrorKind::MissingRequiredArgument => error.exit(),
        _ => {}
    }
    let text = std::fs::read_to_string(&path)
        .map_err(|error| Exit::usage(format!("{}: {error}", path.display())))?;
    let arguments = to_arguments(&text, &lenient, command)
        .map_err(|error| Exit::usage(format!("{}: {error}", path.display())))?;
    let mut all = command_line;
    // The program and the command come first.
    all.splice(2..2, arguments.into_iter().map(OsString::from));
    match parse_strictly(&all) {
        Err(error) if error.kind() == ErrorKind::MissingRequiredArgument => error.exit(),
        Err(error) => {
            let message = error.render().to_string();
            let line = message.lines().next().unwrap_or_default();
            let line = line.trim_start_matches("error: ");
            Err(Exit::usage(format!("{}: {line}", path.display())))
        }
        Ok(args) => Ok(args),
    }
}

fn parse_strictly(command_line: &[OsString]) -> Result<Args, clap::Error> {
    Args::from_arg_matches(&Args::command().try_get_matches_from(command_line)?)
}

/// Returns the name of the command and the path of its configuration file, if it has one.
fn config_path(matches: &ArgMatches) -> Option<(&str, PathBuf)> {
    let (command, matches) = matches.subcommand()?;
    let path = matches.try_get_one::<PathBuf>("config").ok()??;
    Some((command, path.clone()))
}

/// Converts the settings of a file to arguments, without those that flags or environment variables
/// set.
fn to_arguments(text: &str, matches: &ArgMatches, command: &str) -> Result<Vec<String>, String> {
    let file: toml::Table = toml::from_str(text).map_err(|error| error.to_string())?;
    let mut program = Args::command();
    // Resolves the flattened groups of flags.
    program.build();
    let command_args = program.find_subcommand(command).map(Command::get_arguments);
    let args: Vec<&Arg> = command_args.into_iter().flatten().collect();
    let mut arguments = Vec::new();
    for (key, value) in &file {
        let arg = find(&args, key)?;
        let is_set = matches.subcommand_matches(command).is_some_and(|matches| {
            matches!(
                matches.value_source(arg.get_id().as_str()),
                Some(ValueSource::CommandLine | ValueSource::EnvVariable)
            )
        });
        if !is_set {
            arguments.extend(arguments_of(arg, key, value)?);
        }
    }
    Ok(arguments)
}

/// Returns the argument with this long name or alias.
fn find<'a>(args: &[&'a Arg], key: &str) -> Result<&'a Arg, String> {
    let named = args.iter().filter_map(|arg| Some((arg.get_long()?, *arg)));
    let settings: Vec<(&str, &Arg)> = named
        .filter(|(name, _)| !FLAGS_ONLY.contains(name))
        .collect();
    settings
        .iter()
        .find(|(name, arg)| {
            let aliases = arg.get_all_aliases().unwrap_or_default();
            *name == key || aliases.contains(&key)
        })
        .map(|(_, arg)| *arg)
        .ok_or_else(|| unknown_id("setting", key, settings.iter().map(|(name, _)| *name)))
}

fn arguments_of(arg: &Arg, key: &str, value: &Value) -> Result<Vec<String>, String> {
    match (arg.get_action(), value) {
        (ArgAction::SetTrue, Value::Boolean(true)) => Ok(vec![format!("--{key}")]),
        (ArgAction::SetTrue, Value::Boolean(false)) => Ok(Vec::new()),
        (ArgAction::SetTrue, _) => Err(format!("--{key}: expected true or false")),
        (ArgAction::Append, Value::Array(values)) => {
            let arguments = values.iter().map(|value| argument(key, value));
            arguments.collect()
        }
        (_, value) => Ok(vec![argument(key, value)?]),
    }
}

fn argument(key: &str, value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(format!("--{key}={text}")),
        Value::Integer(number) => Ok(format!("--{key}={number}")),
        Value::Boolean(flag) => Ok(format!("--{key}={flag}")),
        other => {
            let kind = other.type_str();
            Err(format!("--{key}: unexpected value of the type {kind}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Command as Subcommand, ServeArgs};

    fn serve(file: &str, flags: &[&str]) -> Result<Box<ServeArgs>, String> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("plumbline.toml");
        std::fs::write(&path, file).unwrap();
        let mut line: Vec<OsString> = vec!["plumbline".into(), "serve".into()];
        line.extend(["--config".into(), path.into_os_string()]);
        line.extend(flags.iter().map(OsString::from));
        match parse(line) {
            Ok(Args {
                command: Subcommand::Serve(args),
            }) => Ok(args),
            Ok(other) => Err(format!("{other:?}")),
            Err(Exit::Usage(message)) => Err(message),
            Err(other) => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn a_flag_takes_precedence_over_the_file() {
        let file = "slots = 3\nvisits = 2\nallow-target = [\"10.1.2.3\", \"10.1.2.4\"]\n\
                    no-sandbox = true\nbehind-proxy = false\nsimulate-locations = false\n";
        let args = serve(file, &["--slots", "5", "--allow-target", "10.9.9.9"]).unwrap();
        assert_eq!((args.slots, args.visits), (Some(5), Some(2)));
        assert_eq!(args.targets.allow_target, ["10.9.9.9"]);
        assert!(args.browser.no_sandbox);
        assert!(!args.behind_proxy);
        assert_eq!(args.simulate_locations, Some(false));
        let args = serve(file, &[]).unwrap();
        assert_eq!(args.slots, Some(3));
        assert_eq!(args.targets.allow_target, ["10.1.2.3", "10.1.2.4"]);
    }

    #[test]
    fn the_location_has_two_names() {
        for key in ["location", "agent-location"] {
            let args = serve(&format!("{key} = \"us-tx\"\n"), &[]).unwrap();
            assert_eq!(args.agent_location.as_deref(), Some("us-tx"));
        }
    }

    #[test]
    fn every_flag_of_serve_is_a_key_of_the_file() {
        let mut program = Args::command();
        program.build();
        let serve_command = program.find_subcommand("serve").unwrap();
        let mut count = 0;
        for arg in serve_command.get_arguments() {
            let name = arg.get_long().unwrap();
            if FLAGS_ONLY.contains(&name) {
                continue;
            }
            count += 1;
            let message = serve(&format!("{name} = 1979-05-27\n"), &[]).unwrap_err();
            assert!(message.contains(&format!("--{name}: ")), "{message}");
        }
        assert_eq!(count, 41);
    }

    #[test]
    fn unknown_keys_and_invalid_values_are_refused_with_the_name_of_the_flag() {
        for (file, expected) in [
            (
                "slot = 1\n",
                "unknown setting `slot` (did you mean `slots`?)",
            ),
            ("create-key = 1\n", "unknown setting `create-key`"),
            (
                "slots = \"many\"\n",
                "invalid value 'many' for '--slots <N>'",
            ),
            ("lease-seconds = 0\n", "'--lease-seconds <SECONDS>'"),
            (
                "slots = [1, 2]\n",
                "--slots: unexpected value of the type array",
            ),
            ("no-sandbox = 1\n", "--no-sandbox: expected true or false"),
            ("slots = \n", "TOML parse error at line 1"),
        ] {
            let message = serve(file, &[]).unwrap_err();
            assert!(message.contains("plumbline.toml: "), "{message}");
            assert!(message.contains(expected), "{message}");
        }
    }

    #[test]
    fn the_file_can_set_what_an_agent_requires() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("agent.toml");
        let file = "server = \"https://example.com\"\ntoken = \"t\"\nagent-location = \"us-tx\"\n";
        std::fs::write(&path, file).unwrap();
        let mut line: Vec<OsString> = vec!["plumbline".into(), "agent".into()];
        line.extend(["--config".into(), path.into_os_string()]);
        let Subcommand::Agent(args) = parse(line).unwrap().command else {
            panic!("not the agent");
        };
        assert_eq!(args.server, "https://example.com");
        assert_eq!(args.agent_location, "us-tx");
    }
}
