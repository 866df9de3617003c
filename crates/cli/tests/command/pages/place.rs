//! Where commands of documents and of `--help` run: a folder with programs, recordings and a
//! service with the agent inside. What they cannot have here is replaced, and nothing else: names
//! of processes, places and ports; and times get shorter. Commands that would run for ever end
//! after a while, and those that want a terminal have one. All of it belongs to an ordinary user,
//! that may not write to /var/run: agents are where they are by default.

use crate::push;
use crate::support::*;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use swipr_c_tests::directory::Directory;
use swipr_c_tests::host::{Host, wait_until};
use swipr_c_tests::{agent, http, program};

/// The user, where the test is root's.
const NOBODY: u32 = 65534;

/// How documents find the socket of `$PID`.
pub const FIND: &str = r#"SOCKET=$(grep -om1 "/.*/swipr-pid-$PID.sock" /proc/net/unix)"#;

/// In the place of the command.
const SWIPR: &str = r#"#!/bin/sh
case " $* " in *" --help "*) exec "$REAL" "$@" ;; esac
case ${1-} in
    top) (sleep 2; printf q) | exec script -qec "$REAL $*" /dev/null ;;
    view | proxy) timeout --preserve-status -s INT 3 "$REAL" "$@"; [ $? = 130 ] ;;
    push) case " $* " in *" --count "*) exec "$REAL" "$@" ;; esac; exec "$REAL" "$@" --count 1 -d 1 ;;
    record) case " $* " in *" -d "*) exec "$REAL" "$@" ;; esac; exec timeout --preserve-status -s INT 2 "$REAL" "$@" ;;
    *) exec "$REAL" "$@" ;;
esac
"#;

/// In the place of curl, which takes an error for an answer.
const CURL: &str = r#"#!/bin/sh
exec /usr/bin/env PATH="${PATH#*:}" curl --fail --silent --show-error "$@"
"#;

/// In the place of `docker exec NAME …`, `kubectl exec POD -- …` and `kubectl debug POD … -- …`:
/// the service's container is here, and the service its process 1.
const CONTAINER: &str = r#"#!/bin/sh
verb=$1
shift 2
case $verb in exec) ;; debug) while [ "$1" != -- ]; do shift; done ;; *) exit 1 ;; esac
[ "$1" = -- ] && shift
program=${1##*/}
shift
[ "$2" = 1 ] || exit 1
verb=$1
shift 2
exec "$program" "$verb" "$PID" "$@"
"#;

/// See the module's text.
pub struct Place {
    directory: Directory,
    /// Runs until it is dropped.
    _service: Mutex<Host>,
    pid: u32,
    socket: PathBuf,
    replaced: Vec<(String, String)>,
}

/// What became of a command.
pub struct Done {
    /// As it was run.
    pub command: String,
    pub said: Said,
    /// Where it ran.
    pub room: Directory,
}

impl Place {
    /// The one that tests share which run at the same time.
    pub fn shared() -> Arc<Place> {
        static PLACE: Mutex<Weak<Place>> = Mutex::new(Weak::new());
        let mut place = PLACE.lock().unwrap_or_else(PoisonError::into_inner);
        place.upgrade().unwrap_or_else(|| {
            let new = Arc::new(Place::new());
            *place = Arc::downgrade(&new);
            new
        })
    }

    fn new() -> Place {
        let directory = Directory::new();
        let [bin, room, prefix] = ["bin", "room", "prefix"].map(|name| folder(directory.path(), name));
        for (name, text) in [("swipr", SWIPR), ("curl", CURL), ("docker", CONTAINER), ("kubectl", CONTAINER)]
        {
            executable(&bin.join(name), text);
        }
        programs(&room);
        let library = install(&prefix);
        // Where it was built an ordinary user may not be allowed to look.
        copy_of(Path::new(env!("CARGO_BIN_EXE_swipr")), &bin.join("real"));
        // Others of that name may run.
        let name = format!("nginx-{}", std::process::id());
        copy_of(&room.join("app"), &room.join(&name));
        let mut command = Command::new(room.join(&name));
        command.env("LD_PRELOAD", &library).env_remove("SWIPR_SOCKET");
        command.env("SWIPR_CONTINUOUS", "49hz,60s").env("SWIPR_LISTEN", "127.0.0.1:0");
        copy_of(&agent::checkout().join("loader-scripts"), &room.join("loader-scripts"));
        symlink(&library, room.join("loader-scripts/libswipr.so")).expect("a link");
        give_away(directory.path());
        as_nobody(&mut command);
        let mut service = Host::spawn(command);
        service.wait_for("ready");
        let socket = socket_of(service.pid());
        let address = http::tcp_address(&socket);
        let (_, port) = address.rsplit_once(':').expect("a port");
        recordings(&room, service.pid(), &bin);
        let (store, requests) = push::store(&["200 OK"]);
        // As long as the store is to answer.
        std::mem::forget(requests);
        let store = store.strip_prefix("http://").expect("an address");
        let pid = service.pid().to_string();
        let sockets = socket.parent().expect("a folder").display().to_string();
        let replaced = [
            // Before there are paths of this machine in it.
            ("/tmp/", "$ROOM/".to_owned()),
            ("/path/to/libswipr.so", library.display().to_string()),
            ("/sockets/app.sock", socket.display().to_string()),
            ("/sockets", sockets.clone()),
            ("--unix-socket PATH", "--unix-socket $SOCKET".to_owned()),
            ("1234", pid.clone()),
            ("nginx", name),
            ("FOLDER", sockets),
            ("VERB", "run".to_owned()),
            ("localhost:4040", store.to_owned()),
            ("localhost:4318", store.to_owned()),
            ("7377", port.to_owned()),
            ("--port 6060", "--port 0".to_owned()),
            // Other tests run beside it.
            ("& sleep 1", "& sleep 3".to_owned()),
            ("seconds=10", "seconds=1".to_owned()),
            ("seconds=5", "seconds=1".to_owned()),
            ("-d 10", "-d 1".to_owned()),
            ("-d 5", "-d 1".to_owned()),
            ("--iteration-count 10", "--iteration-count 2".to_owned()),
        ];
        let replaced = replaced.map(|(from, to)| (from.to_owned(), to)).to_vec();
        Place { directory, pid: service.pid(), socket, _service: Mutex::new(service), replaced }
    }

    /// The service's socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// What is run for a command.
    fn as_run(&self, command: &str) -> String {
        let replaced = self.replaced.iter();
        let text = replaced.fold(command.to_owned(), |text, (from, to)| text.replace(from, to));
        let pid = self.pid.to_string();
        // The process, but not a variable of that name.
        let parts: Vec<&str> = text.split("PID").collect();
        let mut out = String::new();
        for (index, part) in parts.iter().enumerate() {
            out.push_str(part);
            if index + 1 < parts.len() {
                out.push_str(if part.ends_with(['$', '{', '_']) { "PID" } else { &pid });
            }
        }
        out
    }

    /// Runs a command to its end, in a copy of the folder.
    pub fn run(&self, command: &str) -> Done {
        let room = Directory::new();
        let from = format!("{}/.", self.directory.path().join("room").display());
        let copied = Command::new("cp").args(["-R", &from]).arg(room.path()).status();
        assert!(copied.is_ok_and(|status| status.success()), "a copy of {from}");
        let command = self.as_run(command);
        let [prefix, bin] = ["prefix", "bin"].map(|name| self.directory.path().join(name));
        let path = std::env::var("PATH").unwrap_or_default();
        let outputs = ["out", "errors"].map(|name| folder(room.path(), ".said").join(name));
        let [out, errors] =
            outputs.each_ref().map(|path| Stdio::from(std::fs::File::create(path).expect("a file")));
        let input = std::fs::File::open(&outputs[0]).expect("a file");
        give_away(room.path());
        let mut shell = Command::new("timeout");
        let script = format!("{FIND}\n{command}");
        shell.args(["100", "bash", "-euo", "pipefail", "-c", &script]).current_dir(room.path());
        shell.env("PATH", format!("{}:{path}", bin.display())).env("REAL", bin.join("real"));
        shell.env("SWIPR_LIBRARY", prefix.join("lib/libswipr.so")).env("PID", self.pid.to_string());
        shell.env("HOME", room.path()).env("TMPDIR", room.path()).env("ROOM", room.path());
        shell.env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"));
        for variable in ["LD_PRELOAD", "LD_LIBRARY_PATH", "SWIPR_SOCKET", "SWIPR_TOKEN"] {
            shell.env_remove(variable);
        }
        for variable in ["DISPLAY", "WAYLAND_DISPLAY", "BROWSER"] {
            shell.env_remove(variable);
        }
        as_nobody(&mut shell);
        let mut child =
            shell.stdin(input).stdout(out).stderr(errors).process_group(0).spawn().expect("a shell");
        let status = child.wait().expect("its end").code();
        // What it left in the background.
        // SAFETY: kill(2) takes no pointer; the group was made for the shell, and is gone where
        // nothing was left.
        unsafe { libc::kill(-child.id().cast_signed(), libc::SIGKILL) };
        let [out, errors] =
            outputs.map(|path| String::from_utf8_lossy(&std::fs::read(path).expect("a file")).into_owned());
        Done { command, said: Said { status, out, errors }, room }
    }
}

impl Done {
    /// It must have ended well, and have written what it names.
    pub fn check(&self) -> Result<(), String> {
        if self.said.status != Some(0) {
            return Err(format!("{}\n{:?}", self.command, self.said));
        }
        let words: Vec<&str> = self.command.split_whitespace().collect();
        let outputs =
            words.windows(2).filter(|pair| matches!(pair[0], "-o" | "--output" | ">")).map(|pair| pair[1]);
        for output in outputs.filter(|output| *output != "-") {
            let output = output.replace("~", &self.room.path().display().to_string());
            let is_there = std::fs::metadata(self.room.path().join(&output)).is_ok_and(|file| file.len() > 0);
            if !is_there {
                return Err(format!("{}\nwrote no {output}: {:?}", self.command, self.said));
            }
        }
        Ok(())
    }
}

fn folder(below: &Path, name: &str) -> PathBuf {
    let path = below.join(name);
    std::fs::create_dir_all(&path).expect("a folder");
    path
}

fn executable(path: &Path, text: &str) {
    std::fs::write(path, text).expect("a script");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("executable");
}

/// The programs that documents call by such names.
fn programs(room: &Path) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/command/pages/service.c");
    let flags = ["-O1", "-pthread"].map(str::to_owned);
    program::compile(&source, &room.join("app"), &flags, &[]);
    for name in ["service", "tool", "short-benchmark"] {
        copy_of(&room.join("app"), &room.join(name));
    }
    executable(&room.join("start-everything.sh"), "#!/bin/sh\n./service\n");
    std::fs::write(room.join("Makefile"), "all:\n\t./app\n").expect("a file");
    let perl = "sub hot { my $t = 0; $t += $_ for 1 .. 5_000_000; $t }\nhot();\n";
    std::fs::write(room.join("app.pl"), perl).expect("a file");
    std::fs::write(room.join("app.c"), "#include <swipr.h>\nint main(void) { return swipr_stop(); }\n")
        .expect("a file");
    for folders in [".local/share/bash-completion/completions", ".zfunc", ".config/fish/completions"] {
        folder(room, folders);
    }
}

/// By another process: a file that this one has open for writing cannot be executed.
fn copy_of(program: &Path, place: &Path) {
    let copied = Command::new("cp").arg("-R").args([program, place]).status();
    assert!(copied.is_ok_and(|status| status.success()));
}

/// Recordings of the service, under the names that documents use.
fn recordings(room: &Path, pid: u32, bin: &Path) {
    let record = |file: &str| {
        says(["record", &pid.to_string(), "-d", "500ms", "-o", &room.join(file).display().to_string()])
    };
    for name in ["app.jsonl", "app.pb.gz", "before.jsonl", "after.pb.gz", "perf.perf"] {
        // Where others have the CPUs, a recording may have no sample of running code.
        wait_until(name, || record(name).status == Some(0));
    }
    // In the place of perf, of which only the text is needed.
    executable(&bin.join("perf"), &format!("#!/bin/sh\ncat {}\n", room.join("perf.perf").display()));
}

/// The library, its header and its file for pkg-config, as they are installed. Answers where the
/// library is.
fn install(prefix: &Path) -> PathBuf {
    let lib = folder(prefix, "lib");
    let library = lib.join("libswipr.so");
    std::fs::copy(agent::library(), &library).expect("a copy");
    // The packages' library is known to programs by this name.
    symlink("libswipr.so", lib.join("libswipr.so.0")).expect("a link");
    copy_of(&agent::checkout().join("include"), &prefix.join("include"));
    let template = read(&agent::checkout().join("packages/swipr.pc.in")).replace("@VERSION@", "0");
    std::fs::write(folder(&lib, "pkgconfig").join("swipr.pc"), template).expect("a file");
    library
}

/// Whether there is another user to be.
fn is_root() -> bool {
    // SAFETY: geteuid(2) takes nothing and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// Has it run by the ordinary user.
fn as_nobody(command: &mut Command) {
    if is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
}

/// Gives the ordinary user a folder and all that is in it.
fn give_away(path: &Path) {
    if !is_root() {
        return;
    }
    chown(path, Some(NOBODY), Some(NOBODY)).expect("can be given away");
    for entry in std::fs::read_dir(path).expect("a folder") {
        let entry = entry.expect("an entry");
        let path = entry.path();
        match entry.file_type().expect("a type") {
            kind if kind.is_symlink() => {}
            kind if kind.is_dir() => give_away(&path),
            _ => chown(&path, Some(NOBODY), Some(NOBODY)).expect("can be given away"),
        }
    }
}

/// Where a process listens, which is where it does by default.
fn socket_of(pid: u32) -> PathBuf {
    let name = format!("/swipr-pid-{pid}.sock");
    let mut found = None;
    wait_until("the service to listen", || {
        let sockets = std::fs::read_to_string("/proc/net/unix").unwrap_or_default();
        let line = sockets.lines().find(|line| line.ends_with(&name));
        found = line.and_then(|line| Some(PathBuf::from(line.get(line.find('/')?..)?)));
        found.is_some()
    });
    found.expect("a path")
}
