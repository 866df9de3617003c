//! `swipr top`: what a process is doing, live: functions with their own and their total time, threads with their states, a
//! flame graph. Samples come all the time; the picture changes once in a while, or with a key.

mod draw;
mod flame;
mod keys;
mod tally;

use crate::args::Top;
use crate::error::{Error, Exit};
use crate::find;
use crate::record::source::{Message, Running, Source};
use crate::shape::{Files, Shape};
use keys::{Act, View};
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use ratatui::crossterm::{execute, terminal};
use std::io::{IsTerminal, stdout};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::time::{Duration, Instant};
use tally::Tally;

/// Batches that may wait to be counted.
const BATCHES: usize = 256;
/// How long a key is waited for before samples are counted.
const LOOK: Duration = Duration::from_millis(50);

/// What is shown, and how.
#[derive(Debug)]
pub(crate) struct Screen {
    title: String,
    tally: Tally,
    view: View,
    idle: bool,
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
    lost: u64,
    late: u64,
}

/// Runs the verb.
pub fn top(arguments: Top) -> Result<ExitCode, Error> {
    let found = find::one(&arguments.target.text())?;
    if !stdout().is_terminal() {
        return Err(Error::new(
            "top needs a terminal",
            "`swipr dump` shows the stacks once; over kubectl exec give it -t",
        )
        .exit(Exit::Usage));
    }
    let (sender, messages) = sync_channel(BATCHES);
    let mut query =
        format!("seconds={}&hz={}&mode=wall", crate::args::longest(arguments.rate).as_secs(), arguments.rate);
    if let Some(regex) = &arguments.thread_name {
        query.push_str(&format!("&threads={}", crate::args::percent(regex)));
    }
    let files = if arguments.full_filenames { Files::Paths } else { Files::Names };
    let source = Source {
        id: 0,
        client: found.client.clone(),
        before: found.status.clone(),
        query,
        shape: Arc::new(Shape::default().files(files)),
        root: None,
    };
    let running = source.start(sender)?;
    let mut screen = Screen {
        title: format!("{} ({})", found.name(), found.pid()),
        tally: Tally::new(Duration::from_secs(1) / arguments.rate),
        view: View::Functions,
        idle: arguments.idle,
        lines: false,
        paused: false,
        help: false,
        over: None,
        typing: false,
        filter: String::new(),
        sort: keys::Sort::Own,
        scroll: 0,
        lost: 0,
        late: 0,
    };
    let ended = show(&mut screen, &running, &messages, arguments.delay);
    running.stop(Duration::ZERO);
    ended.map_err(|error| {
        Error::new(format!("the terminal failed: {error}"), "try another terminal, or `swipr dump`")
    })?;
    Ok(ExitCode::SUCCESS)
}

/// The terminal as it was, whatever happens.
struct Restore;

impl Drop for Restore {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

fn show(
    screen: &mut Screen,
    running: &Running,
    messages: &Receiver<Message>,
    delay: Duration,
) -> std::io::Result<()> {
    let mut terminal = ratatui::try_init()?;
    let _restore = Restore;
    execute!(stdout(), terminal::SetTitle("swipr top"))?;
    let mut next = Instant::now();
    loop {
        let mut changed = false;
        if event::poll(LOOK)? {
            match event::read()? {
                Event::Key(key) if key.kind != KeyEventKind::Release => match keys::press(screen, key) {
                    Act::Quit => return Ok(()),
                    Act::Go => changed = true,
                },
                Event::Resize(..) => changed = true,
                _ => {}
            }
        }
        take(screen, messages);
        if Instant::now() >= next {
            next = Instant::now() + delay;
            let losses = running.losses();
            (screen.lost, screen.late) = (losses.missed + losses.dropped, losses.late);
            if !screen.paused {
                screen.tally.turn();
            }
            changed = true;
        }
        if changed {
            terminal.draw(|frame| draw::draw(frame, screen))?;
        }
    }
}

/// Counts what has come. While the picture stands still nothing is counted, and nothing waits.
fn take(screen: &mut Screen, messages: &Receiver<Message>) {
    loop {
        match messages.try_recv() {
            Ok(Message::Samples(samples)) if !screen.paused => {
                samples.iter().for_each(|sample| screen.tally.count(sample));
            }
            Ok(Message::Ended(_, ended)) => {
                let why = ended.error.map_or_else(|| "the process has ended".to_owned(), |error| error.what);
                screen.over = Some(why);
            }
            Ok(_) => {}
            Err(TryRecvError::Empty) => return,
            Err(TryRecvError::Disconnected) => return,
        }
    }
}
