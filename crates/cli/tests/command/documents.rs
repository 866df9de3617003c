//! Help, completions, manual pages and `docs/cli.md`.

use crate::support::*;
use swipr_c_tests::directory::Directory;

#[test]
fn shells_read_their_completions_and_the_manual_has_a_page_for_each_verb() {
    for shell in ["bash", "zsh", "fish"] {
        let said = says(["completions", shell]).well();
        assert!(said.out.contains("record") && said.out.contains("doctor"), "{said:?}");
        let directory = Directory::new();
        let file = directory.path().join("completions");
        std::fs::write(&file, &said.out).expect("a file");
        match std::process::Command::new(shell).arg("-n").arg(&file).output() {
            Ok(output) => assert!(output.status.success(), "{shell}: {output:?}"),
            Err(_) => eprintln!("not checked by itself: there is no {shell}"),
        }
    }
    let directory = Directory::new();
    says(["man", &directory.path().display().to_string()]).well();
    for page in ["swipr.1", "swipr-run.1", "swipr-record.1", "swipr-ls.1", "swipr-dump.1", "swipr-doctor.1"] {
        assert!(
            read(&directory.path().join(page)).contains(".SH EXTRA")
                || read(&directory.path().join(page)).contains("Examples"),
            "{page}"
        );
    }
}
