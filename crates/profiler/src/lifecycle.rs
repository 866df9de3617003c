//! The agent's lifecycle: started by the constructor or by `swipr_start`, started again in a forked
//! child, stopped by `swipr_stop` or at exit. One agent per process.

mod exit;
pub mod fork;
mod fork_timers;
mod instance;
mod listen;
mod pause;
mod phase;

pub use exit::{before_exit, before_handlers, is_agents_process, is_unseen_child, watch_handlers};
pub use pause::{
    Paused, keep_threads_before_limit, pause, pause_if_only_thread, pause_if_thread, settle_before_change,
};

use crate::agent::Agent;
use crate::channel::{Sender, channel};
use crate::config::{Config, Follow};
use crate::stop_time::StopTime;
use crate::{agent_threads, autostart, last_thread, signal_exclusion, thread_data, wait_for_recorder};
use instance::{Instance, Live};
use phase::{Generation, Phase, State};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering::*;
use std::time::{Duration, Instant};
use swipr_os::disabled;
use swipr_os::{descriptors, file_system, loader_lock, log, own_threads, process, signals};
use swipr_server::listen::{Address, Identity, remove_neighbours};
use swipr_server::recording::{Output, Request, StartError};
use swipr_server::wake_server;

/// How long `swipr_start` waits for the server to listen, `swipr_stop` for it to end, and every
/// other call of the C interface for a start that is under way.
const TIMEOUT: Duration = Duration::from_secs(5);
/// How soon the server is interrupted again: it may have been about to wait.
const INTERRUPT_AGAIN: Duration = Duration::from_millis(5);

/// Why the agent did not start or stop.
#[derive(Debug)]
pub enum LifeError {
    /// It runs already, or another thread is just starting or stopping it.
    AlreadyRunning,
    /// It does not run.
    NotRunning,
    /// It cannot listen.
    Listen(String),
    /// It does not start this recording.
    Recording(StartError),
    /// The operating system refused a thread, or did not answer in time.
    Failed(String),
}

impl fmt::Display for LifeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LifeError::AlreadyRunning => write!(f, "swipr is running already in this process"),
            LifeError::NotRunning => write!(f, "swipr is not running; call swipr_start first"),
            LifeError::Listen(reason) | LifeError::Failed(reason) => write!(f, "{reason}"),
            LifeError::Recording(error) => write!(f, "{error}"),
        }
    }
}

/// Whether to wait until the server listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Start and return at once.
    No,
    /// Return when it listens, or cannot.
    Yes,
}

static STATE: State = State::new();

fn live() -> Option<&'static Live> {
    Instance::get().and_then(Instance::live)
}

/// The running agent and where it listens.
fn running() -> Option<(&'static Arc<Agent>, &'static Address)> {
    live().filter(|_| STATE.phase() == Phase::Running).map(|live| (&live.agent, &live.address))
}

/// The same, but waits for an agent that is just being started: callers may come right after the
/// program was loaded, or after a fork.
fn wait_until_started() -> Option<(&'static Arc<Agent>, &'static Address)> {
    STATE.wait_until_started(Instant::now() + TIMEOUT);
    running()
}

/// Where the agent listens. Waits for an agent that is just being started.
pub fn address() -> Option<&'static Address> {
    wait_until_started().map(|(_, address)| address)
}

/// A recording's `stop` was set.
pub fn wake_sampler() {
    if let Some((agent, _)) = running() {
        agent.wake_sampler();
    }
}

/// Starts the agent. With [`Wait::Yes`] it first waits for an agent that is just being started, so
/// that this one runs when [`LifeError::AlreadyRunning`] is returned.
pub fn start(config: Config, wait: Wait) -> Result<(), LifeError> {
    let deadline = Instant::now() + TIMEOUT;
    if wait == Wait::Yes {
        STATE.wait_until_started(deadline);
    }
    if let Some(reason) = disabled::message() {
        return Err(LifeError::Failed(reason));
    }
    if !process::may_read_clocks() {
        return Err(LifeError::Failed("this process may not read the time stamp counter".into()));
    }
    // It knows one table of descriptors: the program's output would go through the agent's.
    if let Some(emulator) = process::emulator() {
        return Err(LifeError::Failed(format!("{} runs this process", emulator.display())));
    }
    let generation = STATE.begin().ok_or(LifeError::AlreadyRunning)?;
    log::find_stderr();
    config.log.keep();
    fork::watch(|| true);
    loader_lock::find();
    exit::watch();
    if config.life_file.is_some() {
        exit::watch_handlers();
    }
    disabled::on_disable(&(wake_threads as fn()));
    last_thread::watch_if_first(&(wake as fn()));
    swipr_os::swift::find_demangler();
    swipr_os::stdio::find_streams();
    // It is hidden once the program has many keys.
    thread_data::of_first_key();
    Instance::begin(config.clone());
    agent_threads::reserve();
    let (report, reported) = channel(1);
    let identity = Identity::of_this_process(); // here: the server thread has another name
    let started = agent_threads::start("server", move || serve(generation, &identity, &report));
    if let Err(error) = started {
        STATE.change(generation, Phase::Starting, Phase::Idle);
        return Err(LifeError::Failed(format!("cannot start the server thread: {error}")));
    }
    if wait == Wait::No {
        return Ok(());
    }
    match reported.receive(deadline.saturating_duration_since(Instant::now())) {
        Ok(result) => result,
        Err(_) => Err(LifeError::Failed("the server did not come up in time".into())),
    }
}

/// The server thread's body.
fn serve(generation: Generation, identity: &Identity, report: &Sender<Result<(), LifeError>>) {
    let Some(instance) = Instance::get() else { return };
    instance.has_own_table.store(descriptors::unshare_fds(), Relaxed);
    file_system::unshare();
    match listen::listen(instance, identity) {
        Ok((live, event_loop)) => {
            let file = live.files.first().cloned();
            instance.set_live(Some(live));
            if !STATE.change(generation, Phase::Starting, Phase::Running) {
                instance.set_live(None);
                drop(event_loop);
                STATE.change(generation, Phase::GivenUp, Phase::Idle);
                let _ = report.send(Err(LifeError::NotRunning));
                return;
            }
            let _ = report.send(Ok(()));
            if let Some(file) = file {
                remove_neighbours(file.path());
            }
            if let Some(live) = instance.live()
                && let Some(whole) = autostart::begin(&live.agent, &instance.config)
            {
                let _ = live.whole.set(whole);
            }
            // A panic disables the agent. Unwinding closes its sockets and removes their files.
            disabled::contained(|| event_loop.run());
            // If this fails, a thread waits in `stop` and changes the phase, or has changed it
            // and the next start has started.
            STATE.change(generation, Phase::Running, Phase::Idle);
        }
        Err(error) => {
            // Only if logging is on: with a fixed place, every child of the host would write
            // this to the host's stderr.
            instance.config.log.line(format_args!("not profiled: {error}"));
            let _ = STATE.change(generation, Phase::Starting, Phase::Idle)
                || STATE.change(generation, Phase::GivenUp, Phase::Idle);
            let _ = report.send(Err(error));
        }
    }
}

/// Stops the agent: ends its recordings, removes its socket, ends its threads.
pub fn stop() -> Result<(), LifeError> {
    stop_until(Instant::now() + TIMEOUT)
}

fn stop_until(deadline: Instant) -> Result<(), LifeError> {
    STATE.wait_until_started(deadline);
    let generation = STATE.begin_stop().ok_or(LifeError::NotRunning)?;
    let live = live().ok_or(LifeError::NotRunning)?;
    live.agent.stop();
    // The server sees the stop when the connection opens, or at the latest when it closes.
    let connection = wake_server::connect(&live.address);
    live.server.stop();
    // A process without a free descriptor cannot connect to itself, nor one of another user than
    // it had when the socket was made.
    while connection.is_err() && !live.server.wait(INTERRUPT_AGAIN) && Instant::now() < deadline {
        own_threads::ids().for_each(signals::interrupt);
    }
    drop(connection);
    if !live.server.wait(deadline.saturating_duration_since(Instant::now())) {
        return Err(LifeError::Failed("the server did not end in time; swipr stays off".into()));
    }
    if !live.agent.has_ended(deadline.saturating_duration_since(Instant::now())) {
        return Err(LifeError::Failed("the sampler did not end in time; swipr stays off".into()));
    }
    live.agent.give_back();
    STATE.change(generation, Phase::Stopping, Phase::Idle);
    Ok(())
}

/// Has the server start a recording, see `Agent::submit`.
pub fn submit(request: Request, output: Box<dyn Output>, stop: Arc<StopTime>) -> Result<(), LifeError> {
    let (agent, _) = wait_until_started().ok_or(LifeError::NotRunning)?;
    agent.submit(request, output, stop).map_err(LifeError::Recording)?;
    exit::leave_to_program();
    wake();
    Ok(())
}

/// Wakes the agent's threads after the agent was disabled. Called in places where nothing may
/// allocate or wait.
fn wake_threads() {
    if let Some(live) = live() {
        live.agent.wake_all();
        live.server.wake();
    }
}

/// The agent was started. If this process is to be recorded from its beginning: waits until a
/// recording samples, or none can.
pub fn wait_for_recorder() {
    let Some(instance) = Instance::get() else { return };
    if let Some(recorder) =
        instance.config.waiting_recorder.filter(|recorder| recorder.is_meant(process::parent()))
    {
        instance.waits.store(true, Relaxed);
        wait_for_recorder::at_start(recorder.recorder(), || is_sampling() || !is_there());
    }
}

fn is_sampling() -> bool {
    running().is_some_and(|(agent, _)| agent.has_swept())
}

/// Whether there is an agent, or one that starts.
fn is_there() -> bool {
    matches!(STATE.phase(), Phase::Starting | Phase::Running)
}

/// Wakes the server thread, if there is one.
fn wake() {
    if let Some((_, address)) = running()
        && wake_server::connect(address).is_err()
    {
        own_threads::ids().for_each(signals::interrupt);
    }
}

/// In the child of a fork: starts a new agent if the parent had one and there `can_be` one. Does
/// not touch the old one.
pub fn restart_in_child(can_be: bool) {
    let ran = STATE.end_in_child();
    // There, a wrong system call ends the process, also that of closing a descriptor.
    let is_in_sandbox = signal_exclusion::is_in_sandbox();
    if let Some(instance) = Instance::get() {
        let shares_table = !is_in_sandbox && !instance.has_own_table.load(Relaxed);
        if let Some(live) = instance.live().filter(|_| shares_table) {
            live.server.close_in_child();
        }
        instance.forget_in_child();
    }
    // In a sandbox the agent's threads would be killed for their system calls, and the child with
    // them.
    if ran && can_be && !is_in_sandbox && start_again(|config| config.follow == Follow::All) {
        wait_for_recorder();
    }
}

/// Logs a line, if that is wanted.
fn log_line(text: &str) {
    if let Some(instance) = Instance::get() {
        instance.config.log.line(text);
    }
}

/// Starts with the configuration that there was, if it is one that `is_wanted`. The child of a fork
/// may find its parent at the main place, however that was chosen.
fn start_again(is_wanted: impl Fn(&Config) -> bool) -> bool {
    let Some(instance) = Instance::get() else { return false };
    if !is_wanted(&instance.config) || disabled::is_disabled() {
        return false;
    }
    let main_is_inherited = instance.config.main_is_inherited || instance.is_forked();
    start(Config { main_is_inherited, ..instance.config.clone() }, Wait::No).is_ok()
}
