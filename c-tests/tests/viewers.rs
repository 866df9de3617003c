//! The real viewers read what the socket gives: a browser the pages, Go's and gperftools' pprof
//! their endpoints, the Firefox Profiler's and speedscope's importers their files.
//!
//! What a machine has not got, or a registry does not give it, is counted as ignored, with the
//! reason.

use serde_json::Value;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use swipr_c_tests::agent;
use swipr_c_tests::browser::{Browser, Scheme};
use swipr_c_tests::directory::Directory;
use swipr_c_tests::examples::built;
use swipr_c_tests::firefox;
use swipr_c_tests::harness::{self, NotRun};
use swipr_c_tests::host::{Host, wait_until};
use swipr_c_tests::http;
use swipr_c_tests::speedscope;

swipr_c_tests::tests! {
    a_page_is_searched_zoomed_inverted_and_filtered_by_thread_state_and_time,
    a_picture_is_searched_and_zoomed,
    the_live_page_redraws_compares_stops_and_saves,
    a_hostile_page_makes_no_recording,
    a_page_of_two_recordings_shows_what_has_grown,
    go_tool_pprof_reads_its_endpoints,
    google_pprof_reads_its_endpoints,
    the_firefox_profiler_reads_its_file,
    speedscope_reads_its_file,
}

/// Threads of the program besides its first: two of each of three kinds.
const THREADS: usize = 6;

/// A program with busy and blocked threads, and where its agent listens.
struct Demo {
    host: Host,
    directory: Directory,
    _built: Directory,
    address: String,
}

fn demo() -> Demo {
    let (built, executable) = built("mini_demo");
    let mut command = Command::new(executable);
    command
        .args(["--threads", "2", "--iterations", "1000000"])
        .env("LD_PRELOAD", agent::library())
        .env("SWIPR_LISTEN", "127.0.0.1:0");
    let host = Host::spawn(command);
    let address = http::tcp_address(&host.socket());
    wait_until("its threads to have had a CPU", || has_threads_that_ran(host.pid()));
    Demo { host, directory: Directory::new(), _built: built, address }
}

/// Whether all its threads are there, and each has run.
fn has_threads_that_ran(pid: u32) -> bool {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).expect("it lives").flatten();
    let read = |name: &str, task: &Path| std::fs::read_to_string(task.join(name)).unwrap_or_default();
    let own = tasks.map(|task| task.path()).filter(|task| !read("comm", task).starts_with("swipr-"));
    let ran: Vec<bool> = own.map(|task| !read("schedstat", &task).starts_with("0 ")).collect();
    ran.len() > THREADS && ran.iter().all(|&ran| ran)
}

impl Demo {
    fn get(&self, target: &str) -> Vec<u8> {
        let answer = http::get(&self.host.socket(), target).and_then(http::Answer::read_all).expect(target);
        assert_eq!(answer.status, 200, "{target}: {}", String::from_utf8_lossy(&answer.body));
        answer.body
    }

    /// What a route gives, in a file of that name.
    fn file(&self, name: &str, target: &str) -> PathBuf {
        let path = self.directory.path().join(name);
        std::fs::write(&path, self.get(target)).expect("the file can be written");
        path
    }
}

fn browser() -> Result<Browser, NotRun> {
    Browser::start().ok_or_else(|| "no chromium (Debian package chromium)".to_owned())
}

fn url(file: &Path, fragment: &str) -> String {
    format!("file://{}#{fragment}", file.display())
}

fn share(text: &str) -> f64 {
    text.trim_end_matches('%').parse().unwrap_or_else(|_| panic!("{text:?} is no share"))
}

fn a_page_is_searched_zoomed_inverted_and_filtered_by_thread_state_and_time() -> Result<(), NotRun> {
    let mut browser = browser()?;
    let demo = demo();
    let page = demo.file("page.html", "/flamegraph.html?seconds=2&hz=200");
    browser.open(&url(&page, ""));
    browser.screenshot("page.png");
    assert!(browser.value("+$('flame').dataset.boxes").as_u64() > Some(20));
    assert!(browser.text("document.title").starts_with("mini_demo ("));
    // Search.
    browser.value("$('search').focus()");
    for key in ["b", "u", "r", "n", "_", "c", "p", "u"] {
        browser.press(key);
    }
    let matched = share(&browser.text("$('matched').textContent"));
    assert!(matched > 5.0 && matched < 100.0, "{matched}");
    browser.screenshot("page-search.png");
    // Threads: by the address, and by a click.
    browser.press("Escape");
    let tid = browser.value("M.threads.find(t => t.name.startsWith('burn')).tid").as_u64().expect("a thread");
    browser.open(&url(&page, &format!("t={tid}&q=burn_cpu")));
    let of_thread = share(&browser.text("$('matched').textContent"));
    assert!(of_thread > 90.0, "{of_thread}: the thread does little else");
    browser.screenshot("page-thread.png");
    browser.value("$('clear').click()");
    assert_eq!(browser.value("V.threads.size"), 0);
    browser.click((60.0, 175.0));
    assert_eq!(browser.value("V.threads.size"), 1, "a click on a lane");
    browser.value("everything()");
    // States.
    browser.value("document.querySelector('[data-group=\"2\"]').click()");
    assert_eq!(browser.value("V.tree.kids.some(function f(n) { return M.frames[n.f].name.startsWith('[blocked') || n.kids.some(f); })"), false);
    browser.value("everything()");
    // Time: a drag over the lanes.
    let whole = browser.value("V.count").as_f64().expect("samples");
    browser.drag((500.0, 150.0), (900.0, 150.0));
    let part = browser.value("V.count").as_f64().expect("samples");
    assert!(part > 0.1 * whole && part < 0.6 * whole, "{part} of {whole}");
    browser.screenshot("page-time.png");
    browser.value("everything()");
    // Zoom by keys, and back.
    browser.value("$('flame').focus()");
    for key in ["ArrowDown", "ArrowDown", "Enter"] {
        browser.press(key);
    }
    assert_eq!(browser.value("V.path.length"), 2);
    let in_address = "new URLSearchParams(location.hash.slice(1)).get('zoom')";
    assert_eq!(browser.text(in_address), browser.text("M.frames[V.zoom.f].name"));
    assert_eq!(browser.value("document.querySelectorAll('#crumbs button').length"), 2);
    // Regression: what closes the help zoomed out, too.
    browser.press("?");
    assert_eq!(browser.value("$('keys').open"), true);
    browser.press("Escape");
    assert_eq!(browser.value("[$('keys').open, V.path.length].join()"), "false,2");
    browser.press("Escape");
    assert_eq!(browser.value("V.path.length"), 1);
    // Inverted, the leaves come first; the table has them, too.
    browser.value("$('search').value = '', changed()");
    browser.press("i");
    let below = browser.text("M.frames[V.tree.kids[0].f].name");
    assert!(below.starts_with("[blocked") || !below.starts_with("clone"), "{below}");
    browser.screenshot("page-inverted.png");
    browser.press("t");
    assert_eq!(browser.text("$('table').tBodies[0].rows[0].cells[2].textContent"), below);
    browser.prefer(Scheme::Dark);
    browser.open(&url(&page, "top=total"));
    browser.screenshot("page-table-dark.png");
    browser.open(&url(&page, ""));
    browser.screenshot("page-dark.png");
    assert!(browser.value("document.documentElement.classList.contains('dark')") == true);
    assert_eq!(browser.value("performance.getEntriesByType('resource').length"), 0, "nothing was fetched");
    assert_eq!(browser.errors, Vec::<String>::new());
    Ok(())
}

fn a_picture_is_searched_and_zoomed() -> Result<(), NotRun> {
    let mut browser = browser()?;
    let demo = demo();
    let picture = demo.file("picture.svg", "/flamegraph.svg?seconds=1&hz=200");
    browser.open(&url(&picture, "q=burn_cpu"));
    browser.screenshot("picture-search.png");
    let note = browser.text("document.getElementById('note').textContent");
    let matched = share(note.trim_end_matches(" matched"));
    assert!(matched > 5.0 && matched < 100.0, "{note}");
    let shown = "[...document.querySelectorAll('#frames g')].filter(g => g.style.display !== 'none').length";
    let all = browser.value(shown).as_u64();
    browser.open(&url(&picture, "zoom=burn_cpu"));
    browser.screenshot("picture-zoom.png");
    assert!(browser.value(shown).as_u64() < all);
    browser.press("Escape");
    assert_eq!(browser.value(shown).as_u64(), all);
    assert_eq!(browser.errors, Vec::<String>::new());
    Ok(())
}

fn the_live_page_redraws_compares_stops_and_saves() -> Result<(), NotRun> {
    let mut browser = browser()?;
    let demo = demo();
    browser.open(&format!("http://{}/", demo.address));
    let updates = "+(document.documentElement.dataset.updates || 0)";
    browser.until(&format!("{updates} >= 4"));
    browser.screenshot("live.png");
    let before = browser.value("M.spans.length").as_u64();
    let seen = browser.value(updates).as_u64().expect("a number");
    browser.until(&format!("{updates} > {seen}"));
    assert!(browser.value("M.spans.length").as_u64() > before, "new samples were drawn");
    // What came before is what later samples are compared with.
    browser.value("$('compare').click()");
    browser.until("M.diff && V.tree.w > 0 && V.tree.kids.length > 0");
    assert!(browser.text("$('about').textContent").contains("compared with"));
    browser.until("M.spans.length > 100");
    browser.screenshot("live-compare.png");
    // Regression: a thread was compared with all threads of before.
    browser.value("V.threads.add(M.threads.findIndex(t => t.name.startsWith('burn'))), changed()");
    browser.until("M.diff && V.tree.w > 0 && V.tree.kids.length > 0");
    assert_eq!(browser.value("V.tree.kids.some(n => M.frames[n.f].name === '_start')"), false);
    // An earlier recording, as folded stacks. Regression: threads that are not there any more, or
    // whose name has a blank here, were taken for functions.
    let folded = String::from_utf8(demo.get("/profile.folded?seconds=1")).expect("text");
    let counts = folded.lines().filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok());
    let samples: u64 = counts.sum();
    let folded: String = folded.lines().map(|line| format!("gone_{line}\n")).collect();
    let folded = serde_json::to_string(&folded).expect("a string");
    browser.value(&format!("opened(new File([{folded}], 'yesterday.folded'))"));
    browser.until("M.info.labels === 'compared with yesterday.folded'");
    assert_eq!(browser.text("$('run').textContent"), "Start");
    assert_eq!(browser.value("M.diff"), false, "it does not say what one thread did");
    browser.value("everything()");
    assert_eq!(browser.value("M.diff"), true);
    assert_eq!(browser.value("V.tree.kids.some(n => M.frames[n.f].name.startsWith('gone_'))"), false);
    // Regression: each count was its last digit.
    assert_eq!(browser.value("M.base.reduce((sum, s) => sum + s.w, 0)").as_u64(), Some(samples));
    let stopped = browser.value(updates);
    browser.value("$('run').click()");
    browser.until(&format!("{updates} >= 3 && $('run').textContent === 'Stop'"));
    assert!(stopped.as_u64() >= Some(seen));
    // Another mode is another recording.
    browser.value("$('mode').value = 'cpu', $('mode').onchange()");
    browser.until("M.info.mode === 'cpu' && V.tree && V.tree.w > 0");
    // Shares of CPU time and of wall-clock time are of different wholes.
    let page = String::from_utf8(demo.get("/flamegraph.html?seconds=1")).expect("text");
    let page = serde_json::to_string(&page).expect("a string");
    browser.value(&format!("opened(new File([{page}], 'wall.html'))"));
    browser.until("$('news').textContent.includes('wall.html is of wall-clock time')");
    assert_eq!(browser.value("M.base.length").as_u64(), Some(0));
    browser.prefer(Scheme::Dark);
    browser.until("M.spans.length > 30");
    browser.screenshot("live-dark.png");
    browser.value("$('run').click()");
    browser.until("$('run').textContent === 'Start'");
    // No recording runs any more.
    wait_until("the recording to end", || {
        let status: Value = serde_json::from_slice(&demo.get("/status")).expect("JSON");
        status["recordings"]["running"] == 0 || status["recordings_running"] == 0 || status["running"] == 0
    });
    assert_eq!(browser.errors, Vec::<String>::new());
    Ok(())
}

fn a_page_of_two_recordings_shows_what_has_grown() -> Result<(), NotRun> {
    use swipr_formats::{Diff, Stacks};
    let mut browser = browser()?;
    let directory = Directory::new();
    let before = Stacks::read("main;parse 50\nmain;write 50\n").expect("folded");
    let after = Stacks::read("main;parse 50\nmain;write 50\nmain;</script>zip 100\n").expect("folded");
    let diff = Diff { before, after, title: "</title> before and after".to_owned() };
    let page = directory.path().join("diff.html");
    std::fs::write(&page, diff.html()).expect("the file can be written");
    browser.open(&url(&page, "q=parse"));
    browser.screenshot("diff.png");
    assert_eq!(browser.text("document.title"), "</title> before and after");
    assert_eq!(browser.text("$('matched').textContent"), "25.0%");
    let of = |name: &str| format!("V.tree.kids[0].kids.find(n => M.frames[n.f].name.includes('{name}'))");
    assert_eq!(
        browser.value(&format!("told({})", of("parse"))),
        "25.0% · self 25.0% · before 50.0% (−25.0%)"
    );
    assert_eq!(browser.value(&format!("told({})", of("zip"))), "50.0% · self 50.0% · before 0.00% (+50.0%)");
    let picture = directory.path().join("diff.svg");
    std::fs::write(&picture, diff.svg()).expect("the file can be written");
    browser.open(&url(&picture, ""));
    browser.screenshot("diff-picture.png");
    assert_eq!(browser.errors, Vec::<String>::new());
    Ok(())
}

/// A command's output; `None`: there is no such command.
fn output(command: &mut Command) -> Option<String> {
    let result = command.stdin(Stdio::null()).env_remove("LD_PRELOAD").output().ok()?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(result.status.success(), "{command:?}: {}{}", text(&result.stdout), text(&result.stderr));
    Some(text(&result.stdout))
}

/// A page with pictures, frames and a script at that address, where a browser finds it.
fn hostile_page(agent: &str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let own = listener.local_addr().expect("an address");
    let target = format!("http://{agent}/flamegraph.svg?seconds=1");
    let pictures: String = (0..12).map(|n| format!("<img src='{target}&title={n}'>")).collect();
    let page =
        format!("{pictures}<iframe src='{target}'></iframe><script src='{target}'></script><p id=end>");
    std::thread::spawn(move || {
        for mut client in listener.incoming().map_while(Result::ok) {
            let page = page.clone();
            // A thread each: browsers open connections that they do not use.
            std::thread::spawn(move || {
                let _ = client.read(&mut [0; 8192]);
                let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close";
                let _ = write!(client, "{head}\r\nContent-Length: {}\r\n\r\n{page}", page.len());
            });
        }
    });
    own
}

/// Regression: an `<img>` has no `Origin`, and pages that a user opened used up all recordings.
fn a_hostile_page_makes_no_recording() -> Result<(), NotRun> {
    let mut browser = browser()?;
    let demo = demo();
    let page = hostile_page(&demo.address);
    let started = || {
        let status: Value = serde_json::from_slice(&demo.get("/status")).expect("JSON");
        status["recordings"]["started"].as_u64().expect("a number")
    };
    // By another name it is another site; by the same one another origin of the same site.
    for url in [format!("http://localhost:{}/", page.port()), format!("http://{page}/")] {
        browser.open(&url);
        browser.until("document.getElementById('end') !== null");
        assert_eq!(started(), 0, "{url}");
    }
    // What the user opens works.
    browser.open(&format!("http://{}/flamegraph.svg?seconds=1", demo.address));
    assert_eq!(started(), 1);
    Ok(())
}

fn go_tool_pprof_reads_its_endpoints() -> Result<(), NotRun> {
    let demo = demo();
    let home = demo.directory.path();
    let pprof = |report: &str, path: &str| {
        let source = format!("http://{}{path}", demo.address);
        let mut command = Command::new("go");
        command
            .args(["tool", "pprof", "-symbolize=none", report, &source])
            .env("HOME", home)
            .env("PPROF_TMPDIR", home);
        output(command.env("GOFLAGS", "-mod=mod").env("GOTOOLCHAIN", "local"))
    };
    let top = pprof("-top", "/debug/pprof/profile?seconds=1").ok_or("no go (Debian package golang-go)")?;
    assert!(top.contains("Type: cpu") && top.contains("burn_cpu_once"), "{top}");
    let tags = pprof("-tags", "/debug/fgprof?seconds=1").unwrap_or_default();
    for tag in ["thread:", "burn-cpu", "state:", "blocked", "syscall:"] {
        assert!(tags.contains(tag), "{tag}: {tags}");
    }
    // Where others have the CPUs, a second has a handful of samples.
    let peek = || pprof("-peek=burn_cpu_once", "/debug/pprof/profile?seconds=1").unwrap_or_default();
    wait_until("samples in all functions", || peek().contains("integrate"));
    let list = pprof("-list=burn_cpu_once", "/profile.pb.gz?seconds=1").unwrap_or_default();
    assert!(list.contains("ROUTINE") && list.contains("mini_demo.c"), "{list}");
    let threads = pprof("-top", "/debug/pprof/goroutine").unwrap_or_default();
    assert!(threads.contains("Type: goroutine"), "{threads}");
    let text = pprof("-top", "/debug/pprof/goroutine?debug=1").unwrap_or_default();
    assert!(text.contains("Type: goroutine"), "{text}");
    // If the profile has no names, pprof requests them.
    let source = format!("http://{}/debug/pprof/symbolizer=fake/profile?seconds=1", demo.address);
    let mut command = Command::new("go");
    command.args(["tool", "pprof", "-symbolize=remote", "-top", &source]).env("HOME", home);
    let unnamed = output(command.env("PPROF_TMPDIR", home)).unwrap_or_default();
    assert!(unnamed.contains("Type: cpu"), "{unnamed}");
    Ok(())
}

fn google_pprof_reads_its_endpoints() -> Result<(), NotRun> {
    let demo = demo();
    let mut command = Command::new("google-pprof");
    command.args(["--text", "--seconds=1", &format!("http://{}/pprof/profile", demo.address)]);
    command.env("HOME", demo.directory.path());
    let text = output(&mut command).ok_or("no google-pprof (Debian package google-perftools)")?;
    assert!(text.contains("burn_cpu_once") && text.contains("100.0%"), "{text}");
    Ok(())
}

fn the_firefox_profiler_reads_its_file() -> Result<(), NotRun> {
    let demo = demo();
    let load = || firefox::Loaded::load(&demo.file("profile.json", "/profile.json?seconds=1&hz=200"));
    load()?;
    // Where others have the CPUs, a second has a handful of samples.
    wait_until("a stack with each of these", || {
        let Ok(loaded) = load() else { return false };
        let threads = loaded.threads();
        let stacks =
            threads.iter().find(|thread| thread.name == "burn-cpu").map(|thread| loaded.stacks(thread));
        let has =
            |name| stacks.iter().flatten().flat_map(|(stack, _)| stack).any(|known| known.contains(name));
        ["burn_cpu", "integrate", "clone3"].into_iter().all(has)
    });
    Ok(())
}

fn speedscope_reads_its_file() -> Result<(), NotRun> {
    let demo = demo();
    let profile = demo.get("/profile.speedscope.json?seconds=1&hz=200&title=from+swipr");
    let text = String::from_utf8(profile).expect("text");
    let mut loaded = speedscope::Loaded::load("profile.speedscope.json", &text)?;
    assert!(loaded.browser.text("document.title + document.body.innerText").contains("from swipr"));
    loaded.browser.screenshot("speedscope.png");
    let profiles = loaded.profiles();
    let burning = profiles.iter().find(|profile| profile.name.starts_with("burn-cpu"));
    let burning = burning.unwrap_or_else(|| panic!("no thread burn-cpu in {profiles:?}"));
    assert!(burning.stacks.iter().flatten().any(|name| name.contains("burn_cpu")), "{burning:?}");
    // It draws with WebGL, which Chromium does not give on a machine that is short of CPUs.
    let errors = loaded.browser.errors.iter().filter(|error| !error.contains("Setup failure"));
    assert_eq!(errors.collect::<Vec<_>>(), Vec::<&String>::new());
    Ok(())
}

fn main() -> ExitCode {
    harness::run(TESTS)
}
