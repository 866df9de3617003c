//! A headless Chromium, driven through a pipe: opens pages, evaluates expressions in them, and
//! collects their errors.
//!
//! It speaks the browser's own protocol (`--remote-debugging-pipe`: JSON messages, a NUL behind
//! each, on descriptors 3 and 4), so that nothing needs to be installed besides the browser.

use crate::directory::Directory;
use crate::host::TIMEOUT;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Where screenshots go, if anywhere: for people to look at.
pub const SCREENSHOTS_VARIABLE: &str = "SWIPR_TEST_SCREENSHOTS";

/// The color scheme of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Dark text on a light ground.
    Light,
    /// The other way round.
    Dark,
}

/// A running browser with one page.
#[derive(Debug)]
pub struct Browser {
    child: Child,
    commands: File,
    messages: Receiver<Value>,
    session: Option<String>,
    sent: u64,
    /// Uncaught exceptions of scripts, and errors in the browser's log.
    pub errors: Vec<String>,
    _profile: Directory,
}

impl Browser {
    /// Starts a browser. `None`, and a line that says so: none is installed.
    pub fn start() -> Option<Browser> {
        let Some(executable) = executable() else {
            eprintln!("NOT RUN: no chromium here (Debian package chromium)");
            return None;
        };
        let profile = Directory::new();
        let (command_read, command_write) = pipe();
        let (message_read, message_write) = pipe();
        let mut command = Command::new(executable);
        command
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--no-first-run",
                "--remote-debugging-pipe",
            ])
            .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
            .args(["--hide-scrollbars", "--window-size=1400,900", "about:blank"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .env("TMPDIR", profile.path())
            .env_remove("LD_PRELOAD")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let ends = [command_read.as_raw_fd(), message_write.as_raw_fd()];
        let place = move || {
            // Out of the way first: one of them may be 3 or 4 already.
            // SAFETY: fcntl and dup2 take numbers; a failure is seen by the browser, which ends.
            unsafe {
                let high = ends.map(|end| libc::fcntl(end, libc::F_DUPFD, 20));
                libc::dup2(high[0], 3);
                libc::dup2(high[1], 4);
                high.into_iter().for_each(|end| _ = libc::close(end));
            }
            Ok(())
        };
        // SAFETY: `place` makes system calls only.
        unsafe { command.pre_exec(place) };
        let child = command.spawn().expect("chromium can be started");
        drop((command_read, message_write));
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            for message in BufReader::new(File::from(message_read)).split(0).map_while(Result::ok) {
                let Ok(message) = serde_json::from_slice(&message) else { break };
                if sender.send(message).is_err() {
                    break;
                }
            }
        });
        let (commands, errors) = (File::from(command_write), Vec::new());
        let mut browser =
            Browser { child, commands, messages, session: None, sent: 0, errors, _profile: profile };
        let target = browser.tell("Target.createTarget", json!({"url": "about:blank"}));
        let attached =
            browser.tell("Target.attachToTarget", json!({"targetId": target["targetId"], "flatten": true}));
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log"] {
            browser.tell(&format!("{domain}.enable"), json!({}));
        }
        Some(browser)
    }

    /// Sends a command and waits for its answer.
    fn tell(&mut self, method: &str, parameters: Value) -> Value {
        self.sent += 1;
        let mut message = json!({"id": self.sent, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            message["sessionId"] = session.as_str().into();
        }
        self.commands.write_all(format!("{message}\0").as_bytes()).expect("chromium reads");
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let answer = self
                .messages
                .recv_timeout(left)
                .unwrap_or_else(|_| panic!("chromium does not answer {method}"));
            if answer["id"] == self.sent {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].clone();
            }
            self.note(&answer);
        }
    }

    fn note(&mut self, event: &Value) {
        let details = &event["params"];
        match event["method"].as_str() {
            Some("Runtime.exceptionThrown") => self.errors.push(details["exceptionDetails"].to_string()),
            Some("Log.entryAdded") if details["entry"]["level"] == "error" => {
                self.errors.push(details["entry"]["text"].to_string());
            }
            _ => {}
        }
    }

    /// Sets the color scheme that the page is to prefer.
    pub fn prefer(&mut self, scheme: Scheme) {
        let value = if scheme == Scheme::Dark { "dark" } else { "light" };
        let features = json!([{"name": "prefers-color-scheme", "value": value}]);
        self.tell("Emulation.setEmulatedMedia", json!({"features": features}));
    }

    /// Opens a page and waits until it is loaded.
    pub fn open(&mut self, url: &str) {
        // Another fragment of the same page alone would not load it again.
        self.tell("Page.navigate", json!({"url": "about:blank"}));
        self.until("location.href === 'about:blank'");
        let answer = self.tell("Page.navigate", json!({"url": url}));
        assert!(answer["errorText"].is_null(), "{url}: {answer}");
        // A file unpacks its script when it is loaded.
        let loaded = "location.href !== 'about:blank' && document.readyState === 'complete'";
        self.until(&format!("{loaded} && !document.getElementById('packed')"));
    }

    /// The value of an expression in the page.
    pub fn value(&mut self, expression: &str) -> Value {
        let parameters = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let answer = self.tell("Runtime.evaluate", parameters);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// The same as text.
    pub fn text(&mut self, expression: &str) -> String {
        self.value(expression).as_str().unwrap_or_else(|| panic!("{expression} is no text")).to_owned()
    }

    /// Waits until an expression is true.
    pub fn until(&mut self, expression: &str) {
        let deadline = Instant::now() + TIMEOUT;
        while self.value(expression) != true {
            assert!(Instant::now() < deadline, "waited in vain for {expression}; errors: {:?}", self.errors);
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Presses a key.
    pub fn press(&mut self, key: &str) {
        for kind in ["keyDown", "keyUp"] {
            let mut event = json!({"type": kind, "key": key});
            if kind == "keyDown" && key.chars().count() == 1 {
                event["text"] = key.into();
            }
            // By it, the browser itself knows the key that closes dialogs.
            if key == "Escape" {
                event["windowsVirtualKeyCode"] = 27.into();
            }
            self.tell("Input.dispatchKeyEvent", event);
        }
    }

    /// Presses the mouse button at one place and lets go at another.
    pub fn drag(&mut self, from: (f64, f64), to: (f64, f64)) {
        for (kind, (x, y)) in [("mousePressed", from), ("mouseMoved", to), ("mouseReleased", to)] {
            let event =
                json!({"type": kind, "x": x, "y": y, "button": "left", "buttons": 1, "clickCount": 1});
            self.tell("Input.dispatchMouseEvent", event);
        }
    }

    /// Clicks.
    pub fn click(&mut self, at: (f64, f64)) {
        self.drag(at, at);
    }

    /// Takes a screenshot, where the variable names a folder.
    pub fn screenshot(&mut self, name: &str) {
        let Some(folder) = std::env::var_os(SCREENSHOTS_VARIABLE) else { return };
        let answer = self.tell("Page.captureScreenshot", json!({"format": "png"}));
        let picture = from_base64(answer["data"].as_str().unwrap_or_default());
        std::fs::write(Path::new(&folder).join(name), picture).expect("the folder can be written");
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Both fail for a browser that has ended, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn executable() -> Option<&'static str> {
    ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"]
        .into_iter()
        .find(|path| Path::new(path).exists())
}

fn pipe() -> (OwnedFd, OwnedFd) {
    let mut ends = [0; 2];
    // SAFETY: the array has room for two numbers.
    let made = unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) };
    assert_eq!(made, 0, "a pipe can be made");
    // SAFETY: both were just made, and nothing else owns them.
    ends.map(|end| unsafe { OwnedFd::from_raw_fd(end) }).into()
}

fn from_base64(text: &str) -> Vec<u8> {
    let value = |byte: u8| match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let sextets: Vec<u8> = text.bytes().filter_map(value).collect();
    let mut bytes = Vec::with_capacity(sextets.len() * 3 / 4);
    for four in sextets.chunks(4) {
        let bits =
            four.iter().fold(0u32, |bits, &sextet| bits << 6 | u32::from(sextet)) << (6 * (4 - four.len()));
        bytes.extend(bits.to_be_bytes().into_iter().skip(1).take(four.len() - 1));
    }
    bytes
}
