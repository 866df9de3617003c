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
