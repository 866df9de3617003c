//! What a start of the agent leaves for callers that may come at any moment: exit handlers, fork
//! handlers, the C interface. Leaked, behind one pointer.

use crate::agent::Agent;
use crate::autostart::WholeRun;
use crate::config::Config;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering::*};
use std::sync::{Arc, OnceLock};
use std::time::Instant;
use swipr_os::claim;
use swipr_server::Server;
use swipr_server::listen::{Address, SocketFile};

static INSTANCE: AtomicPtr<Instance> = AtomicPtr::new(null_mut());

/// Of one start.
pub struct Instance {
    /// The child of a fork starts again with it.
    pub config: Config,
    /// The process that started it, by [`claim`]: a child by vfork(2) has its parent's memory. 0:
    /// none.
    process: AtomicU32,
    /// This process is the child of a fork, without execve(2) since.
    is_forked: AtomicBool,
    /// The agent's threads have descriptors of their own, which a forked child does not have.
    pub has_own_table: AtomicBool,
    /// The process waits at its end for its recordings, see `wait_for_recorder`.
    pub waits: AtomicBool,
    /// How long exit(3) waits for a start that is under way.
    pub exit_until: OnceLock<Instant>,
    live: AtomicPtr<Live>,
}

/// What there is once the server listens.
pub struct Live {
    pub agent: Arc<Agent>,
    pub server: Server,
    pub address: Address,
    pub files: Vec<Arc<SocketFile>>,
    /// The recording of the process's whole life, if there is one.
    pub whole: OnceLock<WholeRun>,
    /// The thread that stops it because the process ends; 0: none yet.
    pub ended_by: AtomicU32,
}

impl Instance {
    /// Begins one.
    pub fn begin(config: Config) {
        let is_forked = Instance::get().is_some_and(Instance::is_forked);
        let instance = Instance {
            config,
            process: claim::claim_with_mark().into(),
            is_forked: is_forked.into(),
            has_own_table: false.into(),
            waits: false.into(),
            exit_until: OnceLock::new(),
            live: AtomicPtr::default(),
        };
        INSTANCE.store(Box::into_raw(Box::new(instance)), Release);
    }

    /// The last one that began.
    pub fn get() -> Option<&'static Instance> {
        // SAFETY: null, or leaked and never freed.
        unsafe { INSTANCE.load(Acquire).as_ref() }
    }

    /// Whether this process began it.
    pub fn is_of_this_process(&self) -> bool {
        claim::is_claimed_as(self.process.load(Relaxed))
    }

    pub fn is_forked(&self) -> bool {
        self.is_forked.load(Relaxed)
    }

    pub fn live(&self) -> Option<&'static Live> {
        // SAFETY: null, or leaked and never freed.
        unsafe { self.live.load(Acquire).as_ref() }
    }

    /// The server listens; `None`: it does not.
    pub fn set_live(&self, live: Option<Live>) {
        let live = live.map_or(null_mut(), |live| Box::into_raw(Box::new(live)));
        self.live.store(live, Release);
    }

    /// In the child of a fork: there is no agent. Allocates nothing.
    pub fn forget_in_child(&self) {
        self.process.store(0, Relaxed);
        self.is_forked.store(true, Relaxed);
        self.waits.store(false, Relaxed);
        self.set_live(None);
    }
}
