//! Real programs that work until they are ended, for the benches that look at their stacks. What is
//! not installed is left out.

use crate::children::{self, Directory, Running};
use std::fmt::Write;
use std::fs::File;
use std::io;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

const PYTHON: &str = r#"
import json, re
def deep(n):
    return deep(n - 1) + 1 if n else len(sorted(range(200), key=lambda x: -x))
class Node:
    def __init__(self, n): self.next = Node(n - 1) if n else None
    def __len__(self): return 1 + (len(self.next) if self.next else 0)
text = json.dumps({"k%d" % i: [i, str(i), {"x": i / 3}] for i in range(300)})
pattern = re.compile(r"(\w+)\D+(\d+(?:\.\d+)?)")
while True:
    for n in range(20, 400, 40):
        deep(n); len(Node(n))
    json.dumps(json.loads(text), indent=1)
    pattern.sub(lambda m: m.group(2) + m.group(1), text)
"#;

const GDB: &str = r#"
import gdb
while True:
    gdb.execute("file /usr/bin/python3")
    gdb.execute("file /usr/bin/gdb")
    for word in ("main", "print", "py_"):
        gdb.execute("info functions " + word, to_string=True)
    gdb.execute("info types a", to_string=True)
    for i in range(300):
        gdb.parse_and_eval("%d * 3 + (1 << 4)" % i)
"#;

const PERL: &str = r#"
sub deep { my $n = shift; $n ? 1 + deep($n - 1) : length(join ",", sort { $b <=> $a } 1 .. 200) }
while (1) {
    deep($_) for 5, 50, 90;
    my %h; $h{$_ % 997} .= $_ for 1 .. 5000;
    my $t = join " ", %h; $t =~ s/(\d+) (\d+)/$2-$1/g; my @w = split /-/, $t;
}
"#;

const SQL: &str = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) \
    SELECT count(*) FROM c WHERE printf('%d', x * 7) LIKE '%77%' AND abs(x % 1000) IN (SELECT x FROM c LIMIT 50);";

const NODE: &str = r#"
function deep(n) { return n ? deep(n - 1) + 1 : JSON.stringify([...Array(200).keys()].sort()).length }
while (true) {
  for (let n = 10; n < 200; n += 10) deep(n);
  JSON.parse(JSON.stringify(Array.from({length: 300}, (_, i) => ({k: 'v' + i})))).map(o => o.k.replace(/v(\d)/, '$1'));
  require('zlib').gzipSync(Buffer.alloc(20000, 'abc')); require('crypto').createHash('sha256').update('x'.repeat(5000)).digest();
}
"#;

/// OpenSSL's assembly, on a thread of libuv's and on node's own.
const NODE_CRYPTO: &str = r#"
const crypto = require('crypto'), large = Buffer.alloc(1 << 20, 'swipr'), key = Buffer.alloc(32, 1), iv = Buffer.alloc(16, 2);
(function again() { crypto.pbkdf2('secret', 'salt', 20000, 64, 'sha512', again) })();
(function turn() {
  crypto.pbkdf2Sync('secret', 'salt', 2000, 64, 'sha256');
  for (const name of ['sha1', 'sha256', 'sha512', 'md5', 'blake2b512']) crypto.createHash(name).update(large).digest();
  for (const name of ['aes-256-gcm', 'aes-256-cbc', 'chacha20-poly1305', 'aes-256-ctr'])
    crypto.createCipheriv(name, key, name.endsWith('5') || name.endsWith('gcm') ? iv.subarray(0, 12) : iv).update(large);
  setImmediate(turn);
})();
"#;

/// A query on a line of its own is what a single-user back end reads.
const POSTGRES: &str = "SELECT count(*), sum(length(md5(x::text))) FROM generate_series(1, 60000) AS x;
SELECT count(*) FROM (SELECT x, row_number() OVER (PARTITION BY x % 97 ORDER BY -x) FROM generate_series(1, 40000) AS x) AS y;
WITH RECURSIVE c(x, t) AS (SELECT 1, 'a' UNION ALL SELECT x + 1, md5(t) FROM c WHERE x < 20000) SELECT max(t) FROM c WHERE t ~ '[0-9]+a.*f$';
SELECT a.x % 10, string_agg(b.x::text, ',') FROM generate_series(1, 3000) AS a(x) JOIN generate_series(1, 3000) AS b(x) ON a.x = b.x GROUP BY 1;
";
/// How often all of them are there to be read.
const QUERIES: usize = 2000;
/// Functions of the source that rustc compiles.
const FUNCTIONS: usize = 4000;
/// The user that postgres runs as where we are root, which it refuses: nobody.
const NOBODY: u32 = 65534;

/// A program and what keeps it busy.
#[derive(Debug)]
pub struct Program {
    /// What it is called.
    pub name: &'static str,
    /// How it is started, without a library preloaded.
    pub command: Command,
    /// What is started once it runs.
    pub load: Option<Command>,
    /// The user that has to be able to read and write what it uses; without one, the calling user.
    pub user: Option<u32>,
}

impl Program {
    fn new(name: &'static str, path: impl AsRef<Path>, arguments: &[&str]) -> Program {
        let mut command = Command::new(path.as_ref());
        command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).stdin(Stdio::null());
        Program { name, command, load: None, user: None }
    }

    /// Starts the load, once the program had some time.
    pub fn start_load(&mut self) -> io::Result<Option<Running>> {
        let Some(load) = &mut self.load else { return Ok(None) };
        std::thread::sleep(Duration::from_millis(500));
        Running::start(load).map(Some)
    }
}

/// All of them; files that they need are put into `directory`.
pub fn all(directory: &Directory) -> io::Result<Vec<Program>> {
    let mut programs = vec![
        Program::new("python3", real_python(), &["-c", PYTHON]),
        Program::new("gdb", "gdb", &["-nx", "-batch", "-ex", &format!("python exec({GDB:?})")]),
        Program::new("perl", "perl", &["-e", PERL]),
        Program::new("sqlite3", "sqlite3", &[":memory:", SQL]),
        Program::new("node", "node", &["-e", NODE]),
        Program::new("node, crypto", "node", &["-e", NODE_CRYPTO]),
        rustc(directory)?,
        redis(directory),
    ];
    match postgres(directory) {
        Ok(program) => programs.extend(program),
        Err(error) => println!("postgres: {error}: left out\n"),
    }
    Ok(programs)
}

/// `python3` may be a script that starts another one.
pub fn real_python() -> String {
    let found = says("python3", &["-c", "import sys, os; print(os.path.realpath(sys.executable))"]);
    found.unwrap_or("python3".into())
}

/// The shared libraries of the compiler: its own and LLVM, the largest objects that many machines
/// have.
pub fn rustc_libraries() -> Vec<PathBuf> {
    let Some(root) = says("rustc", &["--print", "sysroot"]) else { return vec![] };
    let files = std::fs::read_dir(Path::new(&root).join("lib")).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> =
        files.map(|file| file.path()).filter(|path| path.to_string_lossy().contains(".so")).collect();
    // One of LLVM's two names is a linker script.
    files.retain(|path| path.metadata().is_ok_and(|metadata| metadata.len() > 1 << 20));
    files
}

fn says(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_string();
    (output.status.success() && !text.is_empty()).then_some(text)
}

/// The compiler itself: `rustc` on the path may be rustup's.
fn rustc(directory: &Directory) -> io::Result<Program> {
    let source = directory.path("long.rs");
    let mut text = String::from("#![crate_type = \"lib\"]\nuse std::collections::*;\n");
    for n in 0..FUNCTIONS {
        let _ = writeln!(
            text,
            "pub fn f{n}(a: &[u{}], m: &mut BTreeMap<String, Vec<u64>>) -> Option<String> {{ let mut h = HashMap::new(); \
             for (i, x) in a.iter().enumerate().filter(|(i, _)| i % {} == 1) {{ *h.entry(*x as u64 + {n}).or_insert(0) += i; \
             m.entry(format!(\"{{i}}-{n}\")).or_default().extend(h.values().map(|v| *v as u64)); }} \
             let mut s: Vec<_> = h.into_iter().collect(); s.sort_by_key(|p| p.1); s.first().map(|p| format!(\"{{p:?}}\")) }}",
            [8, 16, 32, 64].get(n % 4).unwrap_or(&64),
            n % 13 + 2,
        );
    }
    std::fs::write(&source, text)?;
    let compiler = says("rustc", &["--print", "sysroot"])
        .map_or("rustc".into(), |root| Path::new(&root).join("bin/rustc"));
    let object = directory.path("long.o");
    let (source, object) = (source.to_string_lossy(), object.to_string_lossy());
    Ok(Program::new(
        "rustc",
        compiler,
        &["-O", "-Ccodegen-units=1", "--emit=obj", "--edition=2021", "-o", &object, &source],
    ))
}

fn redis(directory: &Directory) -> Program {
    let socket = directory.path("redis.sock");
    let socket = socket.to_string_lossy();
    let mut program =
        Program::new("redis", "redis-server", &["--port", "0", "--save", "", "--unixsocket", &socket]);
    let mut load = children::command("redis-benchmark", None);
    load.args([
        "-s",
        &socket,
        "-l",
        "-n",
        "20000",
        "-r",
        "5000",
        "-P",
        "8",
        "-t",
        "set,get,incr,lpush,lrange,sadd,hset,zadd,mset,zpopmin",
    ]);
    load.envs(std::env::vars_os().filter(|(name, _)| name == "PATH"));
    program.load = Some(load);
    program
}

/// A single-user back end; `None` where it is not installed.
fn postgres(directory: &Directory) -> io::Result<Option<Program>> {
    let found = |name: &str| {
        let folders = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
        folders.map(|folder| folder.path().join("bin").join(name)).find(|path| path.exists())
    };
    let (Some(init), Some(server)) = (found("initdb"), found("postgres")) else { return Ok(None) };
    // SAFETY: no preconditions.
    let user = (unsafe { libc::geteuid() } == 0).then_some(NOBODY);
    let (folder, cluster, queries) =
        (directory.path("postgres"), directory.path("postgres/cluster"), directory.path("queries.sql"));
    std::fs::create_dir_all(&folder)?;
    std::fs::set_permissions(directory.path(""), PermissionsExt::from_mode(0o755))?;
    chown(&folder, user, user)?;
    std::fs::write(&queries, POSTGRES.repeat(QUERIES))?;
    let as_user = |command: &mut Command| {
        command.current_dir(&folder);
        if let Some(user) = user {
            command.uid(user).gid(user);
        }
    };
    let mut prepare =
        Program::new("initdb", init, &["-A", "trust", "-N", "-D", &cluster.to_string_lossy()]).command;
    as_user(&mut prepare);
    if !prepare.status()?.success() {
        return Err(io::Error::other("initdb failed"));
    }
    let mut program =
        Program::new("postgres", server, &["--single", "-D", &cluster.to_string_lossy(), "postgres"]);
    program.command.stdin(File::open(&queries)?);
    as_user(&mut program.command);
    program.user = user;
    Ok(Some(program))
}
