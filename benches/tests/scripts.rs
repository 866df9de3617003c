//! The benches that are scripts: their own arithmetic is tested where there is a Python.

use std::process::Command;

#[test]
fn the_scripts_count_shares_chances_and_bars_right() {
    let tests = concat!(env!("CARGO_MANIFEST_DIR"), "/test_arithmetic.py");
    let Ok(done) = Command::new("python3").args(["-B", tests]).output() else {
        return println!("no python3: not tested");
    };
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}
