//! What the verbs take that are made of the command line itself.

use clap::Args;
use std::path::PathBuf;

/// `swipr completions`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  swipr completions bash > ~/.local/share/bash-completion/completions/swipr
  swipr completions zsh > ~/.zfunc/_swipr
  swipr completions fish > ~/.config/fish/completions/swipr.fish")]
pub struct Completions {
    /// The shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

/// `swipr man`.
#[derive(Debug, Args)]
pub struct Man {
    /// The folder to write swipr.1, swipr-run.1 and the others to
    #[arg(value_name = "FOLDER")]
    pub folder: PathBuf,
}
