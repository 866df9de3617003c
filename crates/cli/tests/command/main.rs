//! The command as users have it: built, started, and against real programs.

mod children;
mod containers;
mod convert;
mod convert_pprof;
mod diff;
mod doctor;
mod documents;
mod dump;
mod examples;
#[path = "../../../../tests/generated.rs"]
mod generated;
mod ls;
mod not_preloaded;
mod options;
mod otlp;
mod pages;
mod perf_text;
mod pipelines;
mod push;
mod record;
mod run;
mod served;
mod support;
mod top;
mod unrecorded;
mod weights;
