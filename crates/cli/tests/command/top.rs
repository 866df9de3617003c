//! `swipr top`, in a terminal of tmux: keys are pressed, the picture is read.

use crate::support::*;
use std::process::Command;
use swipr_c_tests::directory::Directory;
use swipr_c_tests::host::wait_until;

/// What the shells of these tests ask with.
const PROMPT: &str = "shell>";

/// A terminal with the command in it.
struct Terminal {
    directory: Directory,
}

impl Terminal {
    fn start(arguments: &str) -> Option<Terminal> {
        Terminal::run(&format!("{} {arguments}", env!("CARGO_BIN_EXE_swipr")))
    }

    fn run(command: &str) -> Option<Terminal> {
        let terminal = Terminal { directory: Directory::new() };
        match terminal.tmux(&["-f", "/dev/null", "new-session", "-d", "-x", "120", "-y", "30", command]) {
            Some(_) => Some(terminal),
            None => {
                eprintln!("not run: there is no tmux");
                None
            }
        }
    }

    fn shell() -> Option<Terminal> {
        Terminal::run(&format!("env PS1='{PROMPT} ' bash --noprofile --norc -i"))
    }

    fn tmux(&self, arguments: &[&str]) -> Option<String> {
        let socket = self.directory.path().join("tmux");
        let output = Command::new("tmux")
            .arg("-S")
            .arg(socket)
            .args(arguments)
            .env("SHELL", "/bin/sh")
            .output()
            .ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn press(&self, keys: &str) {
        self.tmux(&["send-keys", keys]).expect("the terminal");
    }

    /// Types a line when the shell asks for one: what is typed before is read by `top`.
    fn type_line(&self, line: &str) {
        wait_until("the shell's prompt", || self.picture().trim_end().ends_with(PROMPT));
        self.tmux(&["send-keys", line, "Enter"]).expect("the terminal");
    }

    fn picture(&self) -> String {
        self.tmux(&["capture-pane", "-p"]).unwrap_or_default()
    }

    /// Waits until the picture has all of these.
    fn shows(&self, parts: &[&str]) {
        let mut last = String::new();
        let what = format!("{parts:?} on the screen");
        let seen = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            wait_until(&what, || {
                last = self.picture();
                parts.iter().all(|part| last.contains(part))
            });
        }));
        assert!(seen.is_ok(), "{parts:?} is not in\n{last}");
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

#[test]
fn it_goes_to_the_background_and_comes_back_as_other_programs_do() {
    let host = running_burner();
    let Some(terminal) = Terminal::shell() else { return };
    terminal.type_line(&format!("{} top {}", env!("CARGO_BIN_EXE_swipr"), host.pid()));
    terminal.shows(&["%CPU↓", "burn (no_frame_pointer.c)"]);
    terminal.press("C-z");
    terminal.shows(&["Stopped"]);
    terminal.type_line("echo $((6*7)) typed");
    terminal.shows(&["42 typed"]);
    terminal.type_line("fg");
    terminal.shows(&["%CPU↓", "burn (no_frame_pointer.c)", "blocked"]);
    terminal.press("q");
    terminal.type_line("echo $((7*7)) after");
    terminal.shows(&["49 after"]);
    terminal.type_line(&format!("{} top {}", env!("CARGO_BIN_EXE_swipr"), host.pid()));
    terminal.shows(&["%CPU↓"]);
    terminal.press("C-z");
    terminal.shows(&["[1]+  Stopped"]);
    terminal.type_line("kill %1; wait; echo $((8*8)) killed");
    terminal.shows(&["64 killed"]);
}

/// Regression: timeout(1) has it in the background. It was stopped for ever, and could not be
/// ended.
#[test]
fn a_signal_ends_it_in_the_background() {
    let host = running_burner();
    let Some(terminal) = Terminal::shell() else { return };
    terminal.type_line(&format!("timeout 1 {} top {}", env!("CARGO_BIN_EXE_swipr"), host.pid()));
    terminal.type_line("echo status $?");
    terminal.shows(&["status 124"]);
}

#[test]
fn functions_threads_and_a_flame_graph_are_shown_and_keys_change_them() {
    let host = running_burner();
    let Some(terminal) = Terminal::start(&format!("top {} --delay 300ms", host.pid())) else { return };
    terminal.shows(&[
        "%CPU↓",
        "%Wait  %Block",
        "burn (no_frame_pointer.c)",
        "lost ",
        "late ticks",
        "blocked",
    ]);
    let first = |picture: &str| picture.lines().nth(4).unwrap_or_default().to_owned();
    wait_until("the function that computes is first", || first(&terminal.picture()).contains("  burn ("));
    terminal.press("6");
    terminal.shows(&["%Block↓"]);
    wait_until("a call that waits is first", || first(&terminal.picture()).contains("  0.0% "));
    terminal.press("i");
    terminal.shows(&["%CPU↓", "what waits is hidden", "burner_main"]);
    wait_until("the columns to go", || !terminal.picture().contains("%Block"));
    terminal.press("2");
    terminal.shows(&["%Total↓"]);
    terminal.press("l");
    terminal.shows(&["(file:line)", "no_frame_pointer.c:"]);
    terminal.press("Tab");
    terminal.shows(&["%CPU  STATE", "burner"]);
    terminal.press("i");
    terminal.shows(&["%CPU   %WAIT %BLOCKED", "burner", "STATE"]);
    terminal.press("Tab");
    terminal.shows(&["flame graph of CPU time", "burner_main", "first", "second", "third"]);
    terminal.press("?");
    terminal.shows(&["Keys", "100 % is one CPU all the time"]);
    terminal.press("?");
    terminal.press("p");
    terminal.shows(&["standing still"]);
    terminal.press("p");
    terminal.press("F");
    terminal.press("/");
    terminal.press("burner_main");
    terminal.press("Enter");
    terminal.shows(&["/burner_main", "burner_main (no_frame_pointer.c"]);
    wait_until("other functions to go", || !terminal.picture().contains("second ("));
    terminal.press("q");
    wait_until("the end", || terminal.tmux(&["list-panes"]).is_none());
    host.end();
}

impl Terminal {
    /// Has the shell start `top`, waits for its picture and returns its id.
    fn top(&self, host: u32) -> String {
        let file = self.directory.path().join("pid");
        let command = env!("CARGO_BIN_EXE_swipr");
        self.type_line(&format!("sh -c 'echo $$ > {}; exec {command} top {host}'", file.display()));
        self.shows(&["%CPU↓"]);
        read(&file).trim().to_owned()
    }

    /// Whether it shows the screen that programs take for themselves.
    fn is_on_other_screen(&self) -> bool {
        self.tmux(&["display-message", "-p", "#{alternate_on}"]).expect("the terminal").trim() == "1"
    }
}

/// The terminal stayed raw, and the shell's lines were on the other screen.
#[test]
fn a_signal_that_ends_it_gives_the_terminal_back() {
    let host = running_burner();
    for (signal, status) in [("TERM", "status 143"), ("HUP", "status 129")] {
        let Some(terminal) = Terminal::shell() else { return };
        let top = terminal.top(host.pid());
        assert!(terminal.is_on_other_screen());
        assert!(
            Command::new("kill").args(["-s", signal, &top]).status().is_ok_and(|status| status.success())
        );
        wait_until("the shell's screen", || !terminal.is_on_other_screen());
        terminal.type_line("echo status $?");
        terminal.shows(&[status]);
    }
    host.end();
}

#[test]
fn it_ends_with_its_terminal() {
    let host = running_burner();
    let Some(terminal) = Terminal::shell() else { return };
    let top = terminal.top(host.pid());
    drop(terminal);
    wait_until("its end", || !std::fs::exists(format!("/proc/{top}")).expect("an answer"));
    host.end();
}

/// A line of the pictures in the documentation.
fn documented(part: &str) -> String {
    let page = read(&swipr_c_tests::agent::checkout().join("docs/cli.md"));
    let line = page.lines().find(|line| line.contains(part) && !line.starts_with('|'));
    line.unwrap_or_else(|| panic!("docs/cli.md has no line with {part}")).trim().to_owned()
}

#[test]
fn the_pictures_in_the_documentation_are_such_as_it_shows() {
    let host = running_burner();
    let Some(terminal) = Terminal::start(&format!("top {} --delay 300ms", host.pid())) else { return };
    terminal.shows(&[&documented("%CPU↓"), "i hides what waits"]);
    terminal.press("Tab");
    terminal.shows(&[&documented("%BLOCKED")]);
    host.end();
}

#[test]
fn files_have_their_paths_where_asked() {
    let host = running_burner();
    let Some(terminal) = Terminal::start(&format!("top {} --delay 300ms --full-filenames", host.pid()))
    else {
        return;
    };
    terminal.shows(&["/programs/no_frame_pointer.c)"]);
    host.end();
}

#[test]
fn a_process_that_ends_is_told_and_its_picture_stays() {
    let mut host = running_burner();
    let Some(terminal) = Terminal::start(&format!("top {} --delay 300ms", host.pid())) else { return };
    terminal.shows(&["burn (no_frame_pointer.c)"]);
    assert!(host.ended().success());
    terminal.shows(&["the process has ended", "burn (no_frame_pointer.c)"]);
}

#[test]
fn a_process_that_is_stopped_is_told() {
    let host = running_burner();
    let Some(terminal) = Terminal::start(&format!("top {} --delay 300ms", host.pid())) else { return };
    terminal.shows(&["burn (no_frame_pointer.c)"]);
    // SAFETY: kill(2) of this test's own process.
    let signal = |number| unsafe { libc::kill(host.pid() as i32, number) };
    signal(libc::SIGSTOP);
    terminal.shows(&["the process is stopped"]);
    signal(libc::SIGCONT);
    host.end();
}

#[test]
fn without_a_terminal_it_says_what_else_there_is() {
    let host = running_burner();
    says(["top", &host.pid().to_string()]).refuses(2, &["needs a terminal", "swipr dump"]);
    host.end();
}

#[test]
fn a_terminal_without_a_screen_is_told() {
    let host = running_burner();
    let command = format!("TERM=dumb {} top {}; sleep 60", env!("CARGO_BIN_EXE_swipr"), host.pid());
    let Some(terminal) = Terminal::run(&command) else { return };
    terminal.shows(&["TERM is dumb", "swipr dump"]);
    host.end();
}
