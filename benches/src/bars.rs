//! The figures that have a bar, handed to `benches/all`: a line each in the file that [`FIGURES`]
//! names.

use std::fs::OpenOptions;
use std::io::Write;

/// Environment variable: the file that figures are added to; unset, they are only in the tables.
pub const FIGURES: &str = "SWIPR_BENCH_FIGURES";

/// Adds a figure: what it is called in `benches/bars.py`, its value, and its spread in words. What
/// is not a number was not measured.
pub fn figure(name: &str, value: f64, spread: &str) {
    let Some(path) = std::env::var_os(FIGURES).filter(|_| !value.is_nan()) else { return };
    let line = format!("{name}\t{value}\t{spread}\n");
    let written = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&path)
        .and_then(|mut file| file.write_all(line.as_bytes()));
    if let Err(error) = written {
        eprintln!("cannot add to {}: {error}", path.display());
    }
}
