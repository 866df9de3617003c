//! The command as users have it: built, started, and against real programs.

mod convert;
mod doctor;
mod documents;
mod dump;
mod ls;
mod record;
mod run;
mod support;
