//! Recordings written in every format and read back by the programs people use, or
//! compared with golden files.

mod cases;
mod diff;
mod golden;
mod hostile;
mod json;
mod languages;
mod list;
mod perf;
mod pprof;
mod weights;
