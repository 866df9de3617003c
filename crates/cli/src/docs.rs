//! What is made of the command line itself: completions and manual pages.

use crate::args::{Cli, Completions, Man};
use crate::error::Error;
use clap::CommandFactory;
use std::path::Path;
use std::process::ExitCode;

/// `swipr completions`.
pub fn completions(arguments: Completions) -> Result<ExitCode, Error> {
    let mut out = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "swipr", &mut out);
    crate::print(&out)?;
    Ok(ExitCode::SUCCESS)
}

/// `swipr man`.
pub fn man(arguments: Man) -> Result<ExitCode, Error> {
    let folder = &arguments.folder;
    let write = |folder: &Path| {
        std::fs::create_dir_all(folder)?;
        clap_mangen::generate_to(Cli::command(), folder)
    };
    write(folder).map_err(|error| {
        Error::new(format!("cannot write into {}: {error}", folder.display()), "choose another folder")
    })?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write;

    /// Every verb and its options, as tables.
    fn tables() -> String {
        let mut out = String::new();
        for verb in Cli::command().get_subcommands() {
            let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(out, "### swipr {}\n\n{about}.\n\n| | | |\n|---|---|---|", verb.get_name());
            for argument in verb.get_arguments().filter(|argument| !argument.is_hide_set()) {
                let mut names: Vec<String> = Vec::new();
                names.extend(argument.get_short().map(|short| format!("`-{short}`")));
                names.extend(argument.get_long().map(|long| format!("`--{long}`")));
                let values: Vec<String> = argument
                    .get_value_names()
                    .into_iter()
                    .flatten()
                    .map(|name| format!("`{name}`"))
                    .collect();
                let takes = argument.get_action().takes_values();
                let values = if takes { values.join(" ").replace('|', "\\|") } else { String::new() };
                let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
                let _ = writeln!(out, "| {} | {values} | {} |", names.join(" "), help.replace('|', "\\|"));
            }
            out.push('\n');
        }
        out
    }

    #[test]
    fn the_verbs_and_options_in_the_documentation_are_those_of_the_command() {
        crate::generated::assert_generated("docs/cli.md", "verbs: generated", &tables());
    }
}
