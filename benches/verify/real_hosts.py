"""Real programs under load: each function starts one and gives the sockets to sample.

A program returns {label: socket}, or None when something it needs is not installed
(then it has said so). Every process ends with the `Hosts` it was started in. Not here:
how they are sampled and judged.
"""
import os
import pwd
import shutil
import socket
import subprocess
import sys
from dataclasses import dataclass
from typing import Callable

from hosts import HERE, need, until

WORK = HERE / "programs"


@dataclass
class Program:
    """A program and what is asked of it."""
    start: Callable
    #: The least share of complete stacks; None where frames of run-time compilers
    #: without frame pointers make no promise possible.
    bar: float | None = 0.995
    #: Why there is no bar.
    why: str = ""
    #: The share of samples that may hold a return address which follows no call: V8's deoptimizer
    #: makes frames that continue at the first instruction of Builtins_InterpreterEnterAtNextBytecode.
    excused: float = 0.0


def free_port():
    """A TCP port of the loopback that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def answers(port):
    """Whether somebody listens there."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def redis(hosts):
    """redis-server with background threads under redis-benchmark."""
    server, load = need("redis-server", "redis-server"), need("redis-benchmark", "redis-tools")
    if not (server and load):
        return None
    port = free_port()
    host = hosts.start([server, "--port", port, "--bind", "127.0.0.1", "--save", "", "--io-threads", 2])
    until(lambda: answers(port), 10, "redis")
    hosts.start([load, "-p", port, "-c", 20, "-n", 100000000, "-r", 10000, "-t", "set,get,lpush,zadd"], False)
    return {"redis-server": hosts.socket_of(host)}


def sqlite(hosts):
    """A recursive query with joins, sorts and groups that takes minutes."""
    program = need("sqlite3", "sqlite3")
    if not program:
        return None
    query = """
        create table t as with recursive n(i) as (select 1 union all select i+1 from n where i < 300000)
          select i, i*7919%100003 as k, hex(i*31%9973) as s from n;
        create table r(x);
        with recursive turns(n) as (select 1 union all select n+1 from turns where n < 100000)
          insert into r select (select count(*) from
            (select s, count(*) c, max(k) from t where k % 97 <> n % 97 group by s order by c desc, s))
          from turns;"""
    host = hosts.start([program, ":memory:", query])
    return {"sqlite3": hosts.socket_of(host)}


def nginx_as(user):
    """nginx whose workers run as `user`, under wrk."""
    def start(hosts):
        server, load = need("nginx", "nginx-light"), need("wrk", "wrk")
        if not (server and load):
            return None
        port, site = free_port(), hosts.folder / "site"
        site.mkdir(exist_ok=True)
        (site / "index.html").write_text("<p>hello</p>\n" * 500)
        config = hosts.folder / "nginx.conf"
        config.write_text(f"""
            user {user}; worker_processes 2; daemon off; pid {hosts.folder}/nginx.pid; error_log {hosts.folder}/error.log;
            events {{ worker_connections 256; }}
            http {{ access_log off; gzip on; types {{ text/html html; }}
              client_body_temp_path {hosts.folder}/body; proxy_temp_path {hosts.folder}/proxy;
              fastcgi_temp_path {hosts.folder}/fast; uwsgi_temp_path {hosts.folder}/uwsgi; scgi_temp_path {hosts.folder}/scgi;
              server {{ listen 127.0.0.1:{port}; root {site}; }} }}""")
        master = hosts.start([server, "-c", config, "-e", hosts.folder / "error.log"])
        until(lambda: answers(port), 10, "nginx")
        hosts.start([load, "-t", 1, "-c", 16, "-d", "300s", "-H", "Accept-Encoding: gzip",
                     f"http://127.0.0.1:{port}/index.html"], False)
        sockets = hosts.sockets_of("nginx", 3)
        worker = next(pid for pid in sockets if pid != master.pid)
        return {f"nginx master ({user})": sockets[master.pid], f"nginx worker ({user})": sockets[worker]}
    return start


def script(label, finder, file, *before):
    """An interpreter that runs one of the scripts here."""
    def start(hosts):
        program = finder()
        if not program:
            return None
        return {label: hosts.socket_of(hosts.start([program, *before, WORK / file]))}
    return start


def system_python():
    """Debian's python3, built without frame pointers."""
    return "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else None


def large_source(hosts):
    """A large file of C++."""
    source = hosts.folder / "large.cpp"
    source.write_bytes(hosts.run([sys.executable, WORK / "large.py"]).stdout)
    return source


def compiler(hosts):
    """cc1plus on a large file."""
    program = need("g++", "g++")
    if not program:
        return None
    hosts.start([program, "-std=c++17", "-O2", "-g", "-c", large_source(hosts), "-o", "/dev/null"])
    return {"cc1plus": next(iter(hosts.sockets_of("cc1plus").values()))}


def clang(hosts):
    """clang on the same file; it compiles in its own process."""
    program = need("clang++", "clang")
    if not program:
        return None
    return {"clang": hosts.socket_of(hosts.start([program, "-std=c++17", "-O2", "-g", "-c", large_source(hosts), "-o", "/dev/null"]))}


def rustc(hosts):
    """rustc on a thousand functions with a hash map and a closure each."""
    program = need("rustc", "rustc")
    if not program:
        return None
    source = hosts.folder / "large.rs"
    source.write_text("use std::collections::HashMap;\n" + "".join(f"""
        pub fn count_{i}(values: &[u64]) -> String {{
            let mut counts = HashMap::new();
            values.iter().for_each(|value| *counts.entry(value % {i + 2}).or_insert(0u64) += value);
            format!("{{counts:?}}")
        }}""" for i in range(1000)))
    # rustup's rustc looks for the toolchain's and becomes that one.
    root = hosts.run([program, "--print", "sysroot"]).stdout.decode().strip()
    return {"rustc": hosts.socket_of(hosts.start([f"{root}/bin/rustc", "-O", "--crate-type", "lib", source]))}


def chromium(hosts):
    """A page whose script draws, sorts and makes text without end: the page's process."""
    program = need("chromium", "chromium")
    if not program:
        return None
    page = hosts.folder / "page.html"
    page.write_text("""<body><script>
        let turn = 0;
        setInterval(() => {
          const rows = Array.from({length: 2000}, (_, i) => ({key: (i * 7919 + turn) % 10007, name: "row " + i}));
          rows.sort((a, b) => a.key - b.key);
          const texts = JSON.parse(JSON.stringify(rows)).filter(row => /[13579]$/.test(row.name)).map(row => row.name);
          document.body.innerHTML = texts.slice(0, 200).map(text => `<p style="margin: ${turn % 7}px">${text}</p>`).join("");
          turn += document.body.offsetHeight % 3 + 1;
        }, 1);
        </script>""")
    hosts.start([program, "--headless=new", "--no-sandbox", "--no-zygote", "--disable-gpu", "--remote-debugging-port=0",
                 f"--user-data-dir={hosts.folder}/chromium", page.as_uri()])
    def renderer():  # of several: there are some for pages that nobody sees
        found = {pid: path for pid, path in hosts.sockets_of("chromium").items() if b"--type=renderer" in command_of(pid)}
        busiest = max(found, key=computed, default=0)
        return found[busiest] if computed(busiest) > 2 else None
    return {"chromium (page)": until(renderer, 30, "the page's process")}


def frames(level):
    """The C program with hard stack shapes, at one level of optimisation."""
    def start(hosts):
        program = need("gcc", "gcc")
        if not program:
            return None
        binary = hosts.folder / "frames"
        hosts.run([program, level, "-g", "-fomit-frame-pointer", "-pthread", WORK / "frames.c", "-o", binary])
        return {f"C {level}": hosts.socket_of(hosts.start([binary]))}
    return start


def rust(label, *flags):
    """The Rust program."""
    def start(hosts):
        program = need("rustc", "rustc")
        if not program:
            return None
        binary = hosts.folder / "work"
        hosts.run([program, "--edition", "2024", *flags, WORK / "work.rs", "-o", binary])
        return {label: hosts.socket_of(hosts.start([binary], stdout=open(os.devnull, "wb")))}
    return start


def postgres(hosts):
    """A server with a pgbench run: the postmaster, a back end, the checkpointer."""
    server = need("postgres", "postgresql")
    if not server:
        return None
    folder = os.path.dirname(os.path.realpath(server))
    tools = {name: os.path.join(folder, name) for name in ("initdb", "pgbench")}
    user = next((entry for name in ("postgres", "nobody") for entry in pwd.getpwall() if entry.pw_name == name), None)
    if user is None or not all(map(os.path.exists, tools.values())):
        print("left out: postgres needs initdb, pgbench and a user postgres or nobody", flush=True)
        return None
    who = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []} if os.getuid() == 0 else {}
    data, port = hosts.folder / "data", free_port()
    data.mkdir(mode=0o700)
    if who:
        shutil.chown(data, user.pw_uid, user.pw_gid)
    hosts.run([tools["initdb"], "-D", data, "-U", "bench", "-A", "trust", "-N"], **who)
    address = ["-h", "127.0.0.1", "-p", port, "-U", "bench"]
    host = hosts.start([server, "-D", data, "-p", port, "-h", "127.0.0.1", "-k", data, "-c", "fsync=off"], **who)
    ready = os.path.join(folder, "pg_isready")
    until(lambda: subprocess.run([ready, "-q", *map(str, address[:4])]).returncode == 0, 20, "postgres")
    hosts.run([tools["pgbench"], *address, "-i", "-q", "-s", 2, "postgres"])
    before = set(hosts.sockets_of("postgres"))
    hosts.start([tools["pgbench"], *address, "-c", 2, "-T", 300, "-S", "postgres"], False)
    def back_ends():  # those of the two clients; one that looks at the schema first does not stay
        found = {pid: path for pid, path in hosts.sockets_of("postgres").items()
                if pid not in before and b"SELECT" in command_of(pid)}
        return found if len(found) >= 2 else None
    found = until(back_ends, 20, "a back end's socket")
    return {"postgres (postmaster)": hosts.socket_of(host), "postgres (back end)": next(iter(found.values()))}


def command_of(pid):
    """The command line of a process, which postgres changes with what it does; empty if it is gone."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read()
    except OSError:
        return b""


def computed(pid):
    """Seconds that a process has computed; 0 if it is gone."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
    except OSError:
        return 0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def java(label, *options):
    """The Java program."""
    def start(hosts):
        program, build = need("java", "default-jdk-headless"), need("javac", "default-jdk-headless")
        if not (program and build):
            return None
        hosts.run([build, "-d", hosts.folder, WORK / "Work.java"])
        host = hosts.start([program, *options, "-Xmx256m", "-XX:-UsePerfData", "-cp", hosts.folder, "Work"])
        return {label: hosts.socket_of(host)}
    return start


JIT = "code made at run time without frame pointers"
DEOPTIMIZED = 0.001
#: Every program by its name on the command line.
PROGRAMS = {
    "c-O0": Program(frames("-O0"), 1.0),
    "c-O2": Program(frames("-O2"), 1.0),
    "redis": Program(redis, 1.0),
    "sqlite": Program(sqlite, 1.0),
    "nginx": Program(nginx_as("root"), 1.0),
    "nginx-dropped": Program(nginx_as("www-data"), 1.0),
    "python": Program(script("python3", lambda: sys.executable, "work.py")),
    "python-system": Program(script("python3 (system)", system_python, "work.py"), 1.0),
    "perl": Program(script("perl", lambda: need("perl", "perl"), "work.pl"), 1.0),
    "compiler": Program(compiler),
    "clang": Program(clang),
    "rustc": Program(rustc),
    "rust-debug": Program(rust("Rust (debug)", "-g")),
    "rust-release": Program(rust("Rust (release)", "-O", "-C", "panic=abort")),
    "postgres": Program(postgres, 1.0),
    "node": Program(script("node", lambda: need("node", "nodejs"), "work.js"), excused=DEOPTIMIZED),
    "node-perf": Program(script("node --perf-basic-prof", lambda: need("node", "nodejs"), "work.js",
                                "--perf-basic-prof-only-functions"), excused=DEOPTIMIZED),
    "chromium": Program(chromium, excused=DEOPTIMIZED),
    "java": Program(java("java"), None, JIT),
    "java-frames": Program(java("java +PreserveFramePointer", "-XX:+PreserveFramePointer")),
}
