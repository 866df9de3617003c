//! Functions at which a stack is complete, whatever the words behind them look like: no function
//! called them on that stack. A walk cannot see that where their unwind information is missing, or
//! describes the stack from which they switched.

/// What the kernel starts; what clone(2) returns to; what begins a stack of its own, or switches to
/// another one and continues there.
const NAMES: [&str; 14] = [
    "_start",
    "_dl_start_user",
    "__clone",
    // Boost.Context
    "make_fcontext",
    // Go: its assembly has no unwind information in C's part (crosscall), and its own changes
    // stacks.
    "crosscall_amd64",
    "crosscall1",
    "runtime.rt0_go",
    "runtime.mstart",
    "runtime.goexit",
    "runtime.mcall",
    "runtime.morestack",
    // Erlang's emulator: its compiled code keeps frame pointers, the first of which is 0.
    "global::process_main",
    "erts_beamasm:normal_exit/0",
    "erts_beamasm:normal_exit/0-CodeInfoPrologue",
];

/// What the C library returns to behind a signal handler.
const SIGNAL_RETURN: [&str; 2] = ["__restore_rt", "__kernel_rt_sigreturn"];

/// What Go's linker adds to the names of its assembly.
const GO_ASSEMBLY: &str = ".abi0";

/// Whether a stack ends at a function of this name, which called the next one further in.
pub fn is_first(name: &str) -> bool {
    NAMES.contains(&name.strip_suffix(GO_ASSEMBLY).unwrap_or(name))
}

/// Whether the frame further out than one of this name was interrupted, and not left by a call.
pub fn is_signal_return(name: &str) -> bool {
    SIGNAL_RETURN.contains(&name)
}
