//! What documents show and these tests do not run, each with the reason.

/// Why it is not run.
pub enum Why {
    /// It is run by another test or gate: this file has this text.
    Elsewhere { file: &'static str, text: &'static str },
    /// It cannot be run in a test.
    Never(&'static str),
}

use Why::{Elsewhere, Never};

/// A page, the beginning of what it shows, and why that is not run.
pub type Exception = (&'static str, &'static str, Why);

const NAME: Why = Never("names a program, is no command");
const MINUTES: Why = Never("takes minutes, of a machine that does nothing else");
const OTHERS: Why = Never("is another profiler's, which may not be installed or allowed");
const CI: &str = ".ci/run";
const NIGHTLY: &str = ".ci/nightly";

#[rustfmt::skip]
pub const EXCEPTIONS: &[Exception] = &[
    ("README.md", "loader-scripts/demo.sh", Elsewhere { file: "c-tests/tests/loader_scripts.rs", text: "join(\"demo.sh\")" }),
    ("README.md", "cargo test", Elsewhere { file: CI, text: "bash -c \"$test_command\"" }),
    ("README.md", "cargo build --release", Elsewhere { file: NIGHTLY, text: "cargo build --release -p libswipr -p swipr-cli" }),
    ("README.md", "packages/build", Elsewhere { file: CI, text: "packages/build " }),
    ("README.md", "go tool pprof", NAME),
    ("ARCHITECTURE.md", "LD_PRELOAD=libswipr.so ./app", Never("has no path: it tells how things hang together")),
    ("ARCHITECTURE.md", "cargo fuzz", NAME),
    ("ARCHITECTURE.md", "cargo test -p swipr-layers", Elsewhere { file: CI, text: "bash -c \"$test_command\"" }),
    ("docs/accuracy.md", "benches/all", MINUTES),
    ("docs/cli.md", "cargo build --release", Elsewhere { file: NIGHTLY, text: "cargo build --release -p libswipr -p swipr-cli" }),
    ("docs/cli.md", "go tool pprof", NAME),
    ("docs/cli.md", "py-spy", OTHERS),
    ("docs/comparison.md", "perf record", OTHERS),
    ("docs/comparison.md", "perf script", NAME),
    ("docs/comparison.md", "CPUPROFILE=", OTHERS),
    ("docs/containers.md", "docker exec", NAME),
    ("docs/continuous.md", "benches/", MINUTES),
    ("docs/containers.md", "kubectl exec", NAME),
    ("docs/decisions/0005-packages.md", "cargo build --release", Elsewhere { file: NIGHTLY, text: "cargo build --release" }),
    ("docs/formats.md", "go tool pprof", NAME),
    ("docs/formats.md", "google-pprof", Elsewhere { file: "c-tests/tests/viewers.rs", text: "Command::new(\"google-pprof\")" }),
    ("docs/http.md", "go tool pprof", NAME),
    ("docs/limits.md", "benches/", MINUTES),
    ("docs/performance.md", "benches/", MINUTES),
    ("docs/quick-start.md", "go tool pprof", NAME),
    ("docs/rust.md", "cargo run -p swipr --release --example profile_part", Elsewhere { file: "crates/profiler/tests/profiler.rs", text: "example(\"profile_part\"" }),
    ("docs/rust.md", "cargo bench --bench primes", Elsewhere { file: CI, text: "--bench primes" }),
    ("docs/safety.md", "cargo test -p swipr-c-tests", Elsewhere { file: CI, text: "bash -c \"$test_command\"" }),
    ("docs/swift.md", "swipr-sample-conv", Elsewhere { file: "crates/cli/tests/command/pipelines.rs", text: "swipr-sample-conv" }),
    ("docs/symbols.md", "node --perf", Elsewhere { file: "c-tests/tests/runtimes.rs", text: "--perf-prof" }),
    ("docs/symbols.md", "python -X perf", Elsewhere { file: "c-tests/tests/runtimes.rs", text: "-Xperf_jit" }),
    ("docs/symbols.md", "benches/verify/symbols", MINUTES),
    ("docs/troubleshooting.md", "strip --strip-debug", NAME),
    ("docs/verification.md", "cargo test", Elsewhere { file: CI, text: "bash -c \"$test_command\"" }),
    ("docs/verification.md", "SWIPR_TEST_LIBRARY=", Elsewhere { file: CI, text: "export SWIPR_TEST_LIBRARY=" }),
    ("docs/verification.md", "benches/", MINUTES),
];

/// The exception for a piece of code, if there is one.
pub fn of(page: &str, text: &str) -> Option<&'static Exception> {
    EXCEPTIONS.iter().find(|(of, begins, _)| *of == page && text.starts_with(begins))
}
