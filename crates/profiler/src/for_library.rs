//! What only the shared library (`agent/`) uses of this crate.

pub mod agent_threads {
    pub use crate::agent_threads::{exit_thread, host_has_one_thread};
}

pub mod config {
    pub use crate::config::{AUTOSTART, Config, ConfigError, Follow, Programs, WaitingFor};
}

#[cfg(feature = "fault-injection")]
pub mod injected {
    pub use crate::injected::{binds_imports, heap_works};
}

pub mod lifecycle {
    pub use crate::lifecycle::{
        LifeError, Paused, Wait, address, before_exit, before_handlers, is_agents_process, is_unseen_child,
        keep_threads_before_limit, pause, pause_if_only_thread, pause_if_thread, settle_before_change, start,
        stop, submit, wait_for_recorder, wake_sampler, watch_handlers,
    };

    pub mod fork {
        pub use crate::lifecycle::fork::{watch, watch_outside};
    }
}

pub mod last_thread {
    pub use crate::last_thread::may_end_unseen;
}

pub mod output {
    pub use crate::output::{Completion, FileOutput, check};
}

pub mod recording {
    pub use crate::stop_time::StopTime;
    pub use swipr_server::recording::{Filter, Length, Request};
}

pub mod registered_frames {
    pub use crate::registered_frames::{forget, record};
}

pub mod thread_start {
    pub use crate::thread_start::{Place, take};
}

pub mod server {
    pub use swipr_server::{regex, title};
}

pub mod signal_exclusion {
    pub use crate::signal_exclusion::{
        Reason, add, begin_outside_sandbox, is_in_sandbox, remove, set_all_in_sandbox, split_stacks,
    };
}
