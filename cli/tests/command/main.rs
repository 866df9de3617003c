//! The command as users have it: built, started, and against real programs.

mod ls;
mod record;
mod run;
mod support;
