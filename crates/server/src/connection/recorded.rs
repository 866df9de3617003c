//! The answer to a request for a recording: its bytes as they come, in chunks.
//!
//! The status waits for the first bytes; for formats that write at the end, it waits for the end. A
//! recording that fails or finds nothing before that is answered with an error, not with an empty
//! profile. Not here: making the recording.

use crate::pipe::PipeReader;
use crate::proto::answer::{self, Answer, Content, Form};
use crate::proto::head::{Head, Keep, Version};
use crate::recording::Request;
use crate::routes::{Empty, File, ResponseOptions, Strictness};
use swipr_formats::model::{Mode, Summary};
use swipr_formats::{FormatInfo, stats_line};
use swipr_os::process;

/// The header, or trailer, with the recording's figures.
const STATS: &str = "X-Swipr-Stats";
/// The trailer of a recording that failed in the middle.
const ERROR: &str = "X-Swipr-Error";
/// Most bytes held back while waiting for the end of a format that writes at the end.
const MAX_HELD_BYTES: usize = 1024 * 1024;
/// Largest chunk.
const CHUNK_BYTES: usize = 32 * 1024;

/// Longest name of a process in a file's name.
const MAX_NAME_BYTES: usize = 64;

/// An answer under way.
#[derive(Debug)]
pub(crate) struct Recorded {
    reader: PipeReader,
    about: About,
    /// Bytes that wait for the status.
    held: Vec<u8>,
    head: Sent,
}

/// What the answer needs to know of the request.
#[derive(Clone, Debug)]
pub(crate) struct About {
    form: Form,
    version: Version,
    format: &'static FormatInfo,
    manner: ResponseOptions,
    strictness: Strictness,
    mode: Mode,
    threads: Option<String>,
    /// The name of the file, without its suffix.
    file: String,
    /// A request that is right, for the text of an error.
    example: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sent {
    NotYet,
    Sent,
}

/// How far an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// There is nothing more to take now.
    Waits,
    /// Something was written, and there may be more.
    Moved,
    /// All is written.
    Over(Keep),
    /// The recording failed after its first bytes: the answer is cut once they are sent.
    Broken,
}

/// `nginx-4711-20231114T221320Z`, of letters that every shell and browser takes.
fn file_name(process: &str, pid: u32, epoch_ns: u64) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    let process: String =
        process.trim_start_matches(['.', '-']).chars().take(MAX_NAME_BYTES).map(plain).collect();
    let time = swipr_formats::utc(epoch_ns).replace(['-', ':'], "");
    format!("{process}-{pid}-{time}")
}

impl About {
    pub(crate) fn new(
        head: &Head,
        request: &Request,
        manner: ResponseOptions,
        strictness: Strictness,
        example: String,
    ) -> About {
        let mut form = head.form();
        if head.version == Version::Http10 {
            form.keep = Keep::Close;
        }
        About {
            form,
            version: head.version,
            format: request.format.format,
            manner,
            strictness,
            mode: request.mode,
            threads: request.threads.as_ref().map(|regex| regex.to_string()),
            file: file_name(&process::name(&process::executable()), process::pid(), process::epoch_ns()),
            example,
        }
    }

    fn headers(&self) -> Vec<(&'static str, String)> {
        let name = match &self.manner.file {
            File::None => return vec![],
            File::OfProcess => format!("{}.{}", self.file, self.format.suffix),
            File::Named(name) => (*name).to_owned(),
        };
        // A browser shows what it can show; saved, it has this name.
        let is_shown = self.format.mime.starts_with("text/") || self.format.name == "svg";
        let how = if is_shown { "inline" } else { "attachment" };
        vec![("Content-Disposition", format!("{how}; filename=\"{name}\""))]
    }

    /// The answer to HEAD: what GET would say, without a recording.
    pub(crate) fn head_only(&self, out: &mut Vec<u8>) -> Keep {
        answer::head(200, self.form, self.format.mime, &self.headers(), out);
        out.extend_from_slice(b"\r\n");
        self.form.keep
    }
}

impl Recorded {
    pub(crate) fn new(reader: PipeReader, about: About) -> Recorded {
        Recorded { reader, about, held: Vec::new(), head: Sent::NotYet }
    }

    /// Takes what has come and appends it to `out`, at most a chunk.
    pub(crate) fn pump(&mut self, out: &mut Vec<u8>) -> Progress {
        let before = self.held.len();
        let taken = self.reader.take(&mut self.held, CHUNK_BYTES);
        if taken == 0 {
            return match self.reader.end() {
                None => Progress::Waits,
                Some(Ok(summary)) => self.end(&summary, out),
                Some(Err(reason)) => self.fail(&reason, out),
            };
        }
        if self.head == Sent::NotYet {
            let enough = self.about.format.streams || before + taken > MAX_HELD_BYTES;
            if !enough {
                return Progress::Moved;
            }
            self.send_head(out);
        }
        self.send_chunk(out);
        Progress::Moved
    }

    fn send_head(&mut self, out: &mut Vec<u8>) {
        let About { form, format, .. } = &self.about;
        let mut headers = self.about.headers();
        if self.about.version == Version::Http11 {
            headers.push(("Transfer-Encoding", "chunked".to_owned()));
            headers.push(("Trailer", STATS.to_owned()));
        }
        answer::head(200, *form, format.mime, &headers, out);
        out.extend_from_slice(b"\r\n");
        self.head = Sent::Sent;
    }

    fn send_chunk(&mut self, out: &mut Vec<u8>) {
        match self.about.version {
            Version::Http10 => out.append(&mut self.held),
            Version::Http11 => {
                out.extend_from_slice(format!("{:x}\r\n", self.held.len()).as_bytes());
                out.append(&mut self.held);
                out.extend_from_slice(b"\r\n");
            }
        }
    }

    fn end(&mut self, summary: &Summary, out: &mut Vec<u8>) -> Progress {
        let keep = self.about.form.keep;
        if self.head == Sent::Sent {
            if self.about.version == Version::Http11 {
                let stats = stats_line(summary);
                out.extend_from_slice(format!("0\r\n{STATS}: {stats}\r\n\r\n").as_bytes());
            }
            return Progress::Over(keep);
        }
        let is_empty = self.held.is_empty() || summary.samples == 0;
        let answer = if is_empty && self.about.manner.empty == Empty::IsTold {
            let stats = stats_line(summary);
            let what = format!("no sample was taken ({stats}): {}", self.why(summary));
            Answer::problem(422, what).example(self.about.example.clone())
        } else {
            let body = std::mem::take(&mut self.held);
            let mut answer = Answer::bytes(self.about.format.mime, body);
            answer.headers = self.about.headers();
            answer
        };
        answer.header(STATS, stats_line(summary)).encode(self.about.form, out);
        Progress::Over(keep)
    }

    fn fail(&mut self, reason: &str, out: &mut Vec<u8>) -> Progress {
        match self.head {
            Sent::Sent => {
                // The line that ends the trailers is left out: a client that reads it all sees that
                // the answer is cut, and why.
                if self.about.version == Version::Http11 {
                    let reason = answer::one_line(reason);
                    out.extend_from_slice(format!("0\r\n{ERROR}: {reason}\r\n").as_bytes());
                }
                Progress::Broken
            }
            Sent::NotYet => {
                let what = format!("the recording failed: {reason}");
                let answer = Answer::problem(500, what);
                let answer = match self.about.strictness {
                    Strictness::Go => answer.header("X-Go-Pprof", "1"),
                    Strictness::Strict => answer,
                };
                answer.encode(self.about.form, out);
                Progress::Over(self.about.form.keep)
            }
        }
    }

    fn why(&self, summary: &Summary) -> String {
        match (&self.about.threads, self.about.mode) {
            _ if summary.is_starved() => {
                let Summary { ticks, late, .. } = summary;
                format!(
                    "the agent got too little CPU time to sample: {ticks} ticks were taken, {late} came too late"
                )
            }
            _ if summary.ticks == 0 => {
                "it was over before its first tick; make it longer or the interval shorter".into()
            }
            (Some(regex), _) if summary.threads == 0 => {
                format!("no thread's name matches threads={regex}")
            }
            _ if summary.filtered > 0 => "no sample passed the filters of states and frames".into(),
            _ if summary.dropped > 0 => "the output was read too slowly".into(),
            (_, Mode::Cpu) => "no thread used CPU time; mode=wall shows threads that wait, too".into(),
            (_, Mode::Wall) => "there was nothing to see".into(),
        }
    }

    /// Whether the client wants no body; recordings are not made for those.
    pub(crate) fn is_head_only(about: &About) -> bool {
        about.form.content == Content::HeadOnly
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_files_name_says_what_was_recorded_and_when_and_can_do_no_harm() {
        let time = 1_700_000_000_000_000_000;
        assert_eq!(file_name("nginx", 4711, time), "nginx-4711-20231114T221320Z");
        assert_eq!(file_name("../a b\"\r\n;é", 1, time), "_a_b_____-1-20231114T221320Z");
        assert_eq!(file_name(&"x".repeat(300), 1, time).len(), MAX_NAME_BYTES + 19);
    }
}
