//! `swipr top`: what a process is doing, live: functions with their own and their total CPU time,
//! and what waits beside that, threads with their states, a flame graph. Two recordings are made:
//! one of CPU time, one by the clock on the wall. Samples come all the time; the picture changes
//! once in a while, or with a key.

mod aggregate;
mod draw;
mod flame;
mod hang_up;
mod keys;

use crate::args::Top;
use crate::error::{Error, Exit};
use crate::event::OwnedSample;
use crate::find::{self, Found};
use crate::process::Process;
use crate::record::progress::is_dumb;
use crate::record::source::{Message, Running, Source};
use crate::shape::{Files, Shape};
use crate::signals::{self, Signal, Signals};
use aggregate::{Aggregate, Counting};
use keys::{Act, TopView};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use ratatui::crossterm::{execute, terminal};
use std::io::{IsTerminal, stdout};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::time::{Duration, Instant};

/// Batches that may wait to be counted.
const BATCHES: usize = 256;
/// States of threads are looked at so often at most: their CPU time does not depend on it.
const MAX_WALL_HZ: u32 = 50;
/// How long a key is waited for before samples are counted.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// How long after the beginning a whole period can be shown, besides its own time; and how often
/// the picture changes until then, at least.
const SETTLES: Duration = Duration::from_secs(3);
const FIRST_DELAY: Duration = Duration::from_millis(500);

/// What is shown, and how.
#[derive(Debug)]
pub(crate) struct Screen {
    title: String,
    /// `None`: it cannot be seen from here.
    process: Option<Process>,
    aggregate: Aggregate,
    view: TopView,
    /// Whether waiting and blocked time is shown.
    waits: bool,
    lines: bool,
    paused: bool,
    help: bool,
    /// Why no more samples come, if so.
    over: Option<String>,
    /// Being typed.
    typing: bool,
    filter: String,
    sort: keys::Sort,
    scroll: usize,
    /// What was lost; none as long as that is not known.
    losses: Option<(u64, u64)>,
}

/// Runs the verb.
pub fn top(arguments: Top) -> Result<ExitCode, Error> {
    let signals = Signals::take()?;
    let found = find::one(&arguments.target.text())?;
    let is_dumb = is_dumb();
    if is_dumb || !stdout().is_terminal() {
        return Err(Error::new(
            if is_dumb {
                "top needs a terminal with a screen (TERM is dumb)"
            } else {
                "top needs a terminal"
            },
            "`swipr dump` shows the stacks once; over kubectl exec give it -t",
        )
        .exit(Exit::Usage));
    }
    if let Some(signal) = signals::wait_for_foreground(&signals) {
        signals::end_by(signal.number);
    }
    let wall_hz = arguments.rate.min(MAX_WALL_HZ);
    let (cpu, of_cpu) = record(&found, &arguments, arguments.rate, "cpu")?;
    let (wall, of_wall) = record(&found, &arguments, wall_hz, "wall")?;
    let mut screen = Screen {
        title: format!("{} ({})", found.name(), found.pid()),
        process: found.process,
        aggregate: Aggregate::new(Duration::from_secs(1) / wall_hz, arguments.delay),
        view: TopView::Functions,
        waits: true,
        lines: false,
        paused: false,
        help: false,
        over: None,
        typing: false,
        filter: String::new(),
        sort: keys::Sort::Own,
        scroll: 0,
        losses: None,
    };
    hang_up::watch()?;
    let ended = show(&mut screen, &wall, [&of_cpu, &of_wall], arguments.delay, &signals);
    cpu.stop(Duration::ZERO);
    wall.stop(Duration::ZERO);
    let ended = ended.map_err(|error| {
        Error::new(format!("the terminal failed: {error}"), "try another terminal, or `swipr dump`")
    })?;
    match ended {
        Some(signal) => signals::end_by(signal.number),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// Starts one of the two recordings.
fn record(
    found: &Found,
    arguments: &Top,
    hz: u32,
    mode: &str,
) -> Result<(Running, Receiver<Message>), Error> {
    let seconds = crate::args::LONGEST.as_secs();
    let mut query = format!("seconds={seconds}&hz={hz}&mode={mode}");
    if let Some(regex) = &arguments.thread_name {
        query.push_str(&format!("&threads={}", crate::args::percent(regex)));
    }
    query.push_str(arguments.frames.query());
    let files = if arguments.full_filenames { Files::Paths } else { Files::Names };
    let source = Source {
        id: 0,
        client: found.client.clone(),
        before: found.status.clone(),
        query,
        shape: Arc::new(Shape::default().files(files)),
        root: None,
    };
    let (sender, messages) = sync_channel(BATCHES);
    let connection = found.client.clone().waiting().connect()?;
    Ok((source.start(connection, sender)?, messages))
}

/// The terminal as it was, whatever happens.
struct Restore;

impl Drop for Restore {
    fn drop(&mut self) {
        // The terminal may be gone.
        let _ = signals::unstopped(ratatui::try_restore);
    }
}

/// Until a key ends it, or a signal.
fn show(
    screen: &mut Screen,
    running: &Running,
    [of_cpu, of_wall]: [&Receiver<Message>; 2],
    delay: Duration,
    signals: &Signals,
) -> std::io::Result<Option<Signal>> {
    let mut terminal = ratatui::try_init()?;
    let _restore = Restore;
    execute!(stdout(), terminal::SetTitle("swipr top"))?;
    let began = Instant::now();
    let mut next = began;
    loop {
        if let Some(signal) = signals.ending() {
            return Ok(Some(signal));
        }
        let mut changed = false;
        if event::poll(POLL_INTERVAL)? {
            match event::read()? {
                Event::Key(key) if key.kind != KeyEventKind::Release => match keys::press(screen, key) {
                    Act::Quit => return Ok(None),
                    Act::Go => changed = true,
                    Act::Suspend => {
                        suspend(&mut terminal, signals)?;
                        changed = true;
                    }
                },
                Event::Resize(..) => changed = true,
                _ => {}
            }
        }
        let now = began.elapsed();
        let counting = if screen.paused { Counting::Paused } else { Counting::On };
        take(screen, of_cpu, |aggregate, sample| aggregate.take_cpu(sample, now, counting));
        take(screen, of_wall, |aggregate, sample| aggregate.take_wall(sample, now, counting));
        if Instant::now() >= next {
            // Until there is a whole period.
            let is_young = now < delay + SETTLES;
            next = Instant::now() + if is_young { delay.min(FIRST_DELAY) } else { delay };
            let losses = running.losses();
            let lost = (losses.dropped, losses.late);
            screen.losses = (losses.uncounted == 0).then_some(lost);
            match counting {
                Counting::On => screen.aggregate.turn(now),
                Counting::Paused => screen.aggregate.forget(now),
            }
            changed = true;
        }
        if changed {
            terminal.draw(|frame| draw::draw(frame, screen))?;
        }
    }
}

/// Gives the terminal back to the shell, until that continues this process.
fn suspend(terminal: &mut DefaultTerminal, signals: &Signals) -> std::io::Result<()> {
    let _ = ratatui::try_restore();
    signals::suspend();
    // The shell's `kill %1`: the terminal is not ours.
    if let Some(signal) = signals.ending().or_else(|| signals::wait_for_foreground(signals)) {
        signals::end_by(signal.number);
    }
    terminal::enable_raw_mode()?;
    execute!(stdout(), terminal::EnterAlternateScreen)?;
    terminal.clear()
}

/// Takes what has come.
fn take(screen: &mut Screen, messages: &Receiver<Message>, count: impl Fn(&mut Aggregate, OwnedSample)) {
    loop {
        match messages.try_recv() {
            Ok(Message::Samples(samples)) => {
                samples.into_iter().for_each(|sample| count(&mut screen.aggregate, sample));
            }
            Ok(Message::Ended(_, ended)) => {
                let how = if ended.whole { "the recording has ended" } else { "the process has ended" };
                let why = ended.error.map_or_else(|| how.to_owned(), |error| error.what);
                screen.over = Some(why);
            }
            Ok(_) => {}
            Err(TryRecvError::Empty) => return,
            Err(TryRecvError::Disconnected) => return,
        }
    }
}
