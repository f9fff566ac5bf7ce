//! `man`: prints the manual page, with the flags of all commands.

use std::io;

use clap::{Command, CommandFactory};
use clap_mangen::Man;

use crate::args::Args;
use crate::exit::Exit;
use crate::standard_output as out;

/// Runs `plumbline man`.
pub fn run() -> Result<Exit, Exit> {
    let mut program = Args::command();
    program.build();
    let page = page(&program).map_err(Exit::failed)?;
    out::document(&page)?;
    Ok(Exit::Done)
}

fn page(program: &Command) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    let man = Man::new(program.clone());
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    write_commands(&mut page, program)?;
    Ok(page)
}

/// Writes a section for each command that has flags of its own.
fn write_commands(page: &mut Vec<u8>, parent: &Command) -> io::Result<()> {
    let visible = parent
        .get_subcommands()
        .filter(|command| !command.is_hide_set() && command.get_name() != "help");
    for command in visible {
        if command.has_subcommands() {
            write_commands(page, command)?;
            continue;
        }
        let title = command.get_bin_name().unwrap_or(command.get_name());
        page.extend_from_slice(format!(".SH \"{}\"\n", title.to_uppercase()).as_bytes());
        let man = Man::new(command.clone());
        // Sections within sections: the title of the command is the section.
        for render in [Man::render_description_section, Man::render_options_section] {
            let mut section = Vec::new();
            render(&man, &mut section)?;
            let text = String::from_utf8_lossy(&section);
            page.extend_from_slice(text.replace(".SH ", ".SS ").as_bytes());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_visible_command_is_described_with_its_flags() {
        let mut program = Args::command();
        program.build();
        let text = String::from_utf8(page(&program).unwrap()).unwrap();
        for expected in [
            "PLUMBLINE AUDIT",
            "PLUMBLINE KEYS CREATE",
            "PLUMBLINE ADMIN AGENTS",
            "starts\\-per\\-minute",
            "mobileSlow4g",
        ] {
            assert!(text.contains(expected), "{expected}");
        }
        assert!(!text.contains("PLUMBLINE ADMIN KEYS"));
    }
}
