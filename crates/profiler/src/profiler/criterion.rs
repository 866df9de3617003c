//! The profiler that criterion calls around each benchmark, for `cargo bench -- --profile-time 10`.

use super::report::find_format;
use super::{Builder, Profiler};
use std::fs::File;
use std::io;
use std::path::Path;

/// Records each benchmark into criterion's folder for it: `profile.html`, or what
/// [`BenchProfiler::format`] says.
#[derive(Debug)]
pub struct BenchProfiler {
    builder: Builder,
    format: String,
    running: Option<Profiler>,
}

impl BenchProfiler {
    /// With these rate, mode and threads.
    pub fn new(builder: Builder) -> BenchProfiler {
        BenchProfiler { builder, format: "html".to_owned(), running: None }
    }

    /// In another format: `svg`, `pprof`, … (see `docs/formats.md`).
    pub fn format(mut self, name: &str) -> BenchProfiler {
        self.format = name.to_owned();
        self
    }

    fn write(&self, profiler: Profiler, folder: &Path) -> io::Result<()> {
        let report = profiler.stop().map_err(io::Error::other)?;
        let format = find_format(&self.format).map_err(io::Error::other)?;
        std::fs::create_dir_all(folder)?;
        report.write(format.name, &mut File::create(folder.join(format!("profile.{}", format.suffix)))?)
    }
}

impl criterion::profiler::Profiler for BenchProfiler {
    fn start_profiling(&mut self, benchmark: &str, _: &Path) {
        // A wrong format is reported before the time is spent.
        match find_format(&self.format).and_then(|_| self.builder.clone().start()) {
            Ok(profiler) => self.running = Some(profiler),
            Err(error) => eprintln!("swipr: {benchmark} is not profiled: {error}"),
        }
    }

    fn stop_profiling(&mut self, benchmark: &str, folder: &Path) {
        let Some(profiler) = self.running.take() else { return };
        if let Err(error) = self.write(profiler, folder) {
            eprintln!("swipr: {benchmark} has no profile: {error}");
        }
    }
}
