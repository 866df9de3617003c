//! Parts of pages that tests make from the code's lists. Tests of several crates compile this file.

use std::path::Path;
use std::sync::Mutex;

/// Compares a part of a page of this repository, between `<!-- MARK -->` and `<!-- end -->`, with
/// the expected text. With `SWIPR_BLESS=1` writes it.
pub(crate) fn assert_generated(page: &str, mark: &str, expected: &str) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(page);
    let text = std::fs::read_to_string(&file).expect(page);
    let mark = format!("<!-- {mark} -->\n");
    let (before, rest) = text.split_once(&mark).expect("where the part begins");
    let (found, after) = rest.split_once("<!-- end -->").expect("where it ends");
    if std::env::var_os("SWIPR_BLESS").is_some() {
        let text = format!("{before}{mark}{expected}<!-- end -->{after}");
        std::fs::write(file, text).expect(page);
    } else {
        assert_eq!(found, expected, "{page} is not up to date; SWIPR_BLESS=1 rewrites it");
    }
}
