//! A server in a temporary directory, a recorder that plays parts, and a client that
//! reads answers.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use swipr_formats::model::Summary;
use swipr_server::listen::{Directories, Identity, Listener, Pattern, Place, Reach};
use swipr_server::recording::{Closed, Output, Recorder, Request, StartError};
use swipr_server::{Limits, Server, Settings};

/// Longest wait for anything; reached only by a test that fails.
pub const BOUND: Duration = Duration::from_secs(60);

/// A recorder whose recordings are threads that do what the title says.
#[derive(Default)]
pub struct Player {
    closed: Mutex<usize>,
    closing: Condvar,
    pub started: AtomicUsize,
    /// How often the server thread has woken up.
    pub attended: AtomicUsize,
    /// What all recordings play, whatever their titles say.
    part: Mutex<Option<&'static str>>,
}

impl Player {
    /// Waits until so many endless recordings have seen their output closed.
    pub fn wait_until_closed(&self, count: usize, what: &str) {
        let closed = self.closed.lock().unwrap();
        let (closed, _) = self.closing.wait_timeout_while(closed, BOUND, |closed| *closed < count).unwrap();
        assert_eq!(*closed, count, "recordings that saw their client go; {what}");
    }

    /// Waits until so many recordings have started.
    pub fn wait_until_started(&self, count: usize) {
        let begin = Instant::now();
        while self.started.load(Ordering::SeqCst) < count {
            assert!(begin.elapsed() < BOUND, "no recording began");
            thread::yield_now();
        }
    }

    /// From now on all recordings play this part.
    pub fn always(&self, part: &'static str) {
        *self.part.lock().unwrap() = Some(part);
    }

    fn saw_closed(&self) {
        *self.closed.lock().unwrap() += 1;
        self.closing.notify_all();
    }
}

/// The recorder that the server sees.
pub struct Handle(pub Arc<Player>);

impl Recorder for Handle {
    fn start(&self, request: Request, output: Box<dyn Output>) -> Result<(), StartError> {
        let of_all = self.0.part.lock().unwrap().map(str::to_owned);
        let part = of_all.or(request.format.options.title.clone()).unwrap_or_default();
        match part.as_str() {
            "too many" => return Err(StartError::TooMany),
            "stopping" => return Err(StartError::Stopping),
            "refused" => return Err(StartError::Failed("no threads left".to_owned())),
            _ => {}
        }
        self.0.started.fetch_add(1, Ordering::SeqCst);
        let player = Arc::clone(&self.0);
        thread::spawn(move || play(&part, &request, output, &player));
        Ok(())
    }

    fn poll(&self) {
        self.0.attended.fetch_add(1, Ordering::SeqCst);
    }

    fn status(&self) -> String {
        "{\"state\":\"asleep\"}".to_owned()
    }

    fn metrics(&self) -> String {
        "# TYPE asleep gauge\nasleep 1\n".to_owned()
    }
}

fn figures(samples: u64) -> Summary {
    Summary { threads: 2, ticks: 7, samples, ..Summary::default() }
}

/// What a recording plays by default: the request, as it was understood.
fn echo(request: &Request) -> String {
    format!(
        "interval={:?} length={:?} mode={:?} format={} threads={:?} symbolize={:?} frames={:?} source={:?} purpose={:?} {:?} {:?}\n",
        request.interval,
        request.length,
        request.mode,
        request.format.format.name,
        request.threads.as_ref().map(|regex| regex.as_str()),
        request.symbolize,
        request.frames,
        request.source,
        request.purpose,
        request.filter,
        request.format.options,
    )
}

pub const BIG: usize = 3_000_000;

fn play(part: &str, request: &Request, mut output: Box<dyn Output>, player: &Player) {
    match part {
        "nothing" => output.finish(Ok(Summary { ticks: 3, ..Summary::default() })),
        "no sample" => {
            let _ = output.write(b"an empty profile");
            output.finish(Ok(figures(0)));
        }
        "fail" => output.finish(Err("the clock stood still".to_owned())),
        "fail later" => {
            let _ = output.write(b"so far so good\n");
            output.finish(Err("and then not".to_owned()));
        }
        "vanish" => drop(output),
        "big" => {
            let piece = [b'x'; 1000];
            for _ in 0..BIG / piece.len() {
                if output.write(&piece) == Err(Closed) {
                    return player.saw_closed();
                }
            }
            output.finish(Ok(figures(5)));
        }
        "endless" => {
            while output.write(&[b'y'; 4096]).is_ok() {}
            player.saw_closed();
        }
        "silent" => {
            // Like a writer between two distant ticks: it polls, it does not write.
            while !output.is_closed() {
                thread::yield_now();
            }
            player.saw_closed();
        }
        _ => {
            let _ = output.write(echo(request).as_bytes());
            output.finish(Ok(figures(5)));
        }
    }
}

/// A server, its recorder, and where it listens.
pub struct Stage {
    pub path: PathBuf,
    pub player: Arc<Player>,
    pub server: Server,
    directory: PathBuf,
}

impl Stage {
    pub fn new() -> Stage {
        Stage::with(Limits::default())
    }

    pub fn with(limits: Limits) -> Stage {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("swipr-http-{}-{number}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir(&directory).unwrap();
        let path = directory.join("socket");
        let settings = Settings { limits, ..Settings::default() };
        let player = Arc::new(Player::default());
        let place = Place::Path(Pattern::literal(path.as_os_str().as_encoded_bytes()));
        let server = serve(&place, settings, &player).0;
        Stage { path, player, server, directory }
    }

    pub fn client(&self) -> Client {
        Client::connect(&self.path)
    }

    /// Sends one request on a connection of its own and reads the answer.
    pub fn ask(&self, request: impl AsRef<[u8]>) -> Answer {
        let mut client = self.client();
        client.send(request);
        client.answer()
    }

    pub fn get(&self, target: &str) -> Answer {
        self.ask(format!("GET {target} HTTP/1.1\r\nHost: swipr\r\n\r\n"))
    }

    /// The server is alive and well.
    pub fn check(&self) {
        let answer = self.get("/health");
        assert_eq!((answer.status, answer.text().as_str()), (200, "OK\n"));
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.server.stop();
        assert!(self.server.wait(BOUND) || thread::panicking());
        assert!(!self.path.exists() || thread::panicking());
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// Starts a server; returns what it listens on, too.
pub fn serve(place: &Place, settings: Settings, player: &Arc<Player>) -> (Server, String) {
    let identity = Identity::of_this_process();
    let reach = Reach::of(&settings.allowed_uids);
    let listener = Listener::open(place, &identity, &Directories::system(None), reach).unwrap();
    let address = listener.address().to_string();
    let recorder = Arc::new(Handle(Arc::clone(player)));
    let (server, event_loop) = Server::new(vec![listener], recorder, settings).unwrap();
    thread::spawn(move || event_loop.run());
    (server, address)
}

/// A stream with bytes that were read too far.
pub struct Client<S = UnixStream> {
    pub stream: S,
    ahead: Vec<u8>,
}

impl Client {
    pub fn connect(path: &Path) -> Client {
        let stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(BOUND)).unwrap();
        stream.set_write_timeout(Some(BOUND)).unwrap();
        Client::over(stream)
    }

    pub fn half_close(&self) {
        self.stream.shutdown(Shutdown::Write).unwrap();
    }
}

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
    pub trailers: String,
    /// The body ended as it should.
    pub complete: bool,
}

impl Answer {
    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(": ")?;
            found.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}

impl<S: Read + Write> Client<S> {
    pub fn over(stream: S) -> Client<S> {
        Client { stream, ahead: Vec::new() }
    }

    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).unwrap();
    }

    /// Reads more; whether there was more.
    fn more(&mut self) -> bool {
        let mut bytes = [0; 64 * 1024];
        let count = match self.stream.read(&mut bytes) {
            Ok(count) => count,
            // A read with a time limit is not restarted after a signal (signal(7)).
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => return true,
            // A server that closes before it has read everything.
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => 0,
            Err(error) => panic!("{error}"),
        };
        self.ahead.extend_from_slice(&bytes[..count]);
        count > 0
    }

    fn until(&mut self, mark: &[u8]) -> Option<Vec<u8>> {
        let mut searched = 0;
        loop {
            let from = searched;
            let found = self.ahead[from..].windows(mark.len()).position(|window| window == mark);
            if let Some(at) = found {
                let rest = self.ahead.split_off(from + at + mark.len());
                return Some(std::mem::replace(&mut self.ahead, rest));
            }
            searched = self.ahead.len().saturating_sub(mark.len());
            if !self.more() {
                return None;
            }
        }
    }

    fn exactly(&mut self, count: usize) -> Option<Vec<u8>> {
        while self.ahead.len() < count {
            if !self.more() {
                return None;
            }
        }
        let rest = self.ahead.split_off(count);
        Some(std::mem::replace(&mut self.ahead, rest))
    }

    /// Everything up to the end of the connection.
    pub fn rest(&mut self) -> Vec<u8> {
        while self.more() {}
        std::mem::take(&mut self.ahead)
    }

    /// Reads an answer to a request that was not HEAD.
    pub fn answer(&mut self) -> Answer {
        let mut answer = self.head();
        let length = answer.header("Content-Length").map(|n| n.parse().unwrap());
        if let Some(length) = length {
            let body = self.exactly(length);
            answer.complete = body.is_some();
            answer.body = body.unwrap_or_default();
        } else if answer.header("Transfer-Encoding") == Some("chunked") {
            answer.complete = self.chunks(&mut answer).is_some();
        } else {
            answer.body = self.rest();
            answer.complete = true;
        }
        answer
    }

    /// Reads an answer's head only.
    pub fn head(&mut self) -> Answer {
        let head = self.until(b"\r\n\r\n").expect("an answer");
        let head = String::from_utf8(head).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, head, body: Vec::new(), trailers: String::new(), complete: true }
    }

    fn chunks(&mut self, answer: &mut Answer) -> Option<()> {
        loop {
            let line = String::from_utf8(self.until(b"\r\n")?).unwrap();
            let size = usize::from_str_radix(line.trim(), 16).unwrap();
            if size == 0 {
                break;
            }
            answer.body.extend(self.exactly(size)?);
            assert_eq!(self.exactly(2)?, b"\r\n");
        }
        loop {
            let line = String::from_utf8(self.until(b"\r\n")?).unwrap();
            if line == "\r\n" {
                return Some(());
            }
            answer.trailers += &line;
        }
    }
}
