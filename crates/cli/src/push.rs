//! `swipr push`: profiles of a process, one after the other, to a store: Pyroscope, or whatever
//! takes OTLP. What cannot be delivered waits, up to a bound; what is lost is counted.

mod by_curl;
mod destination;
mod otlp;
mod pyroscope;
mod queue;
mod url;

use crate::args::Push;
use crate::client::{Client, new_recording_id};
use crate::error::{Error, Exit};
use crate::event::{Event, OwnedSample};
use crate::find;
use crate::read::Lines;
use crate::read::raw::RawReader;
use crate::shape::Shape;
use crate::signals::Signals;
use crate::threads;
use destination::{Destination, Sent};
use queue::{Queue, wait_after};
use std::io::Read;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};
use swipr_formats::model::{Header, Summary};

/// How often signals are looked for.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// How long the last profiles may take when the command ends.
const LAST_WORDS: Duration = Duration::from_secs(10);

/// A profile that waits to be sent.
#[derive(Debug)]
pub struct Profile {
    header: Header,
    samples: Vec<OwnedSample>,
    summary: Summary,
}

/// What has become of profiles. Counted while they are sent: the last one may never be answered.
#[derive(Debug, Default)]
struct Delivered {
    sent: AtomicU64,
    refused: AtomicU64,
}

/// Runs the verb.
pub fn push(arguments: Push) -> Result<ExitCode, Error> {
    let signals = Signals::take()?;
    let found = find::one(&arguments.target.text())?;
    let service = arguments.service.clone().unwrap_or_else(|| found.name());
    let destination = Destination::new(&arguments, service)?;
    let (queue, delivered) = (Arc::new(Queue::new(arguments.queue as usize)), Arc::<Delivered>::default());
    let (done, is_done) = sync_channel(1);
    let (sending, counting, quiet) = (Arc::clone(&queue), Arc::clone(&delivered), arguments.quiet);
    threads::start(move || {
        deliver(&sending, &destination, &counting, quiet);
        let _ = done.send(());
    })?;
    let (ended, has_ended) = sync_channel(1);
    let (adding, client) = (Arc::clone(&queue), found.client.clone().waiting());
    let (query, count) = (arguments.query(), arguments.count);
    threads::start(move || _ = ended.send(record_again_and_again(&adding, &client, &query, count, quiet)))?;
    let result = loop {
        match has_ended.recv_timeout(POLL_INTERVAL) {
            Ok(result) => break result,
            Err(RecvTimeoutError::Disconnected) => break Ok(()),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if signals.ending().is_some() {
            break Ok(());
        }
    };
    queue.close();
    let _ = is_done.recv_timeout(LAST_WORDS);
    result?;
    let (sent, refused) = (delivered.sent.load(Ordering::Relaxed), delivered.refused.load(Ordering::Relaxed));
    if !arguments.quiet {
        let dropped = queue.added().saturating_sub(sent + refused);
        crate::say(format_args!("swipr: sent {sent} profiles, refused {refused}, dropped {dropped}"));
    }
    if queue.added() == 0 {
        return Err(Error::new(
            "there was no profile to send: no finished recording found CPU time",
            "wait for longer than -d; --idle records threads that wait, too",
        ));
    }
    if sent == 0 {
        return Err(Error::new(
            "no profile was delivered",
            "check --url and --protocol; the lines above say what was answered",
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// What became of a recording.
enum Recorded {
    Whole(Box<Profile>),
    /// No CPU time was used: the next recording may find some.
    Nothing(Error),
    /// The agent makes none now.
    Refused(Error),
    /// The process has ended in the middle.
    Cut,
}

/// Records until the process ends, or as often as `count` says. Fails if nothing was found.
fn record_again_and_again(
    queue: &Queue<Profile>,
    client: &Client,
    query: &str,
    count: Option<u64>,
    quiet: bool,
) -> Result<(), Error> {
    let (mut made, mut any, mut nothing) = (0, false, None);
    let (mut refusals, mut reported) = (0, None);
    while count.is_none_or(|count| made < count) && !queue.is_closed() {
        match record(client, query) {
            Ok(Recorded::Whole(profile)) => {
                queue.add(*profile);
                any = true;
            }
            Ok(Recorded::Cut) => return Ok(()),
            Ok(Recorded::Nothing(why)) => nothing = Some(why),
            Ok(Recorded::Refused(error)) => {
                if !quiet && reported.as_ref() != Some(&error) {
                    crate::say(format_args!("{error}; push asks again by itself"));
                }
                (refusals, reported) = (refusals + 1, Some(error));
                queue.rest(wait_after(refusals));
                continue;
            }
            // It has ended, or is just ending.
            Err(error) if any && error.exit == Exit::NotProfilable => return Ok(()),
            Err(_) if any && client.status().is_err() => return Ok(()),
            Err(error) => return Err(error),
        }
        (refusals, reported) = (0, None);
        made += 1;
    }
    nothing.filter(|_| !any).map_or(Ok(()), Err)
}

/// One recording.
fn record(client: &Client, query: &str) -> Result<Recorded, Error> {
    let target = format!("/profile?format=raw&id={}&{query}", new_recording_id());
    let answer = client.ask_on(&client.connect()?, &target)?;
    let status = answer.status;
    let mut answer = match (status, client.accepted(answer)) {
        (422, Err(why)) => return Ok(Recorded::Nothing(why)),
        (429 | 500..=599, Err(error)) if error.exit == Exit::Failed => return Ok(Recorded::Refused(error)),
        (_, answer) => answer?,
    };
    let (mut reader, mut lines) = (RawReader::new(Arc::new(Shape::default()), None), Lines::default());
    let (mut header, mut samples, mut summary) = (None, Vec::new(), None);
    let mut buffer = vec![0; 64 << 10];
    while let Ok(got @ 1..) = answer.read(&mut buffer) {
        let taken = lines.take(buffer.get(..got).unwrap_or_default(), |line| {
            match reader.line(line)? {
                Some(Event::Header(begins)) => header = Some(begins),
                Some(Event::Sample(sample)) => samples.push(sample),
                Some(Event::End(end)) => summary = Some(end),
                None => {}
            }
            Ok::<(), String>(())
        });
        taken.map_err(|why| Error::new(why, "use the library that came with this command"))?;
    }
    Ok(match header.zip(summary) {
        Some((header, summary)) => Recorded::Whole(Box::new(Profile { header, samples, summary })),
        None => Recorded::Cut,
    })
}

/// Sends until the queue is closed and empty.
fn deliver(queue: &Queue<Profile>, destination: &Destination, delivered: &Delivered, quiet: bool) {
    let (mut failures, mut last_try) = (0, None);
    while let Some(profile) = queue.take() {
        match destination.send(&profile) {
            Sent::Done => {
                delivered.sent.fetch_add(1, Ordering::Relaxed);
                failures = 0;
            }
            Sent::Refused(why) => {
                delivered.refused.fetch_add(1, Ordering::Relaxed);
                if !quiet {
                    crate::say(format_args!(
                        "swipr: {destination} refuses a profile: {why}\nnext: check --url, --protocol and --header"
                    ));
                }
            }
            Sent::Failed { why, after } => {
                failures += 1;
                let wait = after.unwrap_or_else(|| wait_after(failures));
                if !quiet && failures == 1 {
                    crate::say(format_args!(
                        "swipr: cannot deliver to {destination}: {why}\nnext: nothing: it is tried again, and up to --queue profiles are kept"
                    ));
                }
                queue.put_back(profile);
                if queue.is_closed() {
                    // A few more tries, then the command ends.
                    let until = *last_try.get_or_insert_with(|| Instant::now() + LAST_WORDS / 2);
                    if Instant::now() > until {
                        return;
                    }
                    std::thread::sleep(wait.min(POLL_INTERVAL));
                } else {
                    queue.rest(wait);
                }
            }
        }
    }
}
