"""Servers and databases under load: what their clients, their logs and their own checks say."""
import hashlib
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import threading
import time

from hosts import need, until
from place import lines_with, wait_while
from real_hosts import answers, free_port


class Redis:
    """A connection that speaks RESP."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.stream = self.socket.makefile("rb")

    def call(self, *words):
        """One command, its answer."""
        data = [str(word).encode() for word in words]
        self.socket.sendall(b"*%d\r\n" % len(data) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in data))
        return self.answer()

    def answer(self):
        """Reads one answer."""
        line = self.stream.readline()
        kind, rest = line[:1], line[1:-2].decode()
        if kind == b"$":
            return self.stream.read(int(rest) + 2)[:-2].decode() if int(rest) >= 0 else None
        if kind == b"*":
            return [self.answer() for _ in range(max(int(rest), 0))]
        if kind == b":":
            return int(rest)
        if kind == b"-" or not line:
            raise RuntimeError(rest or "the connection ended")
        return rest

    def info(self, name):
        """A field of INFO."""
        return re.search(rf"^{name}:(.*)\r$", self.call("info"), re.M).group(1)


def redis_checks(port, number, wrong, rounds):
    """A client that knows what must come back."""
    try:
        client = Redis(port)
        for i in range(rounds):
            key = f"own:{number}:{i % 50}"
            client.call("set", key, "x" * (i % 3000))
            checks = [client.call("get", key) == "x" * (i % 3000), client.call("incr", f"counter:{number}") == i + 1,
                      client.call("rpush", f"list:{number}", i) == i + 1]
            client.call("multi")
            client.call("incr", f"both:{number}")
            client.call("incr", f"both:{number}")
            checks.append(client.call("exec") == [2 * i + 1, 2 * i + 2])
            if i % 100 == 0:
                checks.append(client.call("blpop", f"nothing:{number}", "0.05") == [])
            wrong.extend(i for good in checks if not good)
    except Exception as error:  # a finding
        wrong.append(f"{type(error).__name__}: {error}")


def is_loaded(port):
    """Whether the server has read its data."""
    try:
        return Redis(port).call("ping") == "PONG"
    except RuntimeError:
        return False


def redis(place):
    """redis-server: redis-benchmark beside clients that check, forks for the snapshot and the log, a restart from the log."""
    server, load = need("redis-server", "redis-server"), need("redis-benchmark", "redis-tools")
    if not (server and load):
        return None
    port = free_port()
    command = [server, "--port", port, "--bind", "127.0.0.1", "--save", "", "--io-threads", 2, "--appendonly", "yes",
               "--auto-aof-rewrite-percentage", 0, "--dir", place.folder, "--logfile", place.folder / "redis.log", "--enable-debug-command", "yes"]
    host = place.begin(command)
    until(lambda: answers(port), 20, "redis")
    benchmark = place.start([load, "-p", port, "-c", 20, "-n", 40000, "-r", 5000, "-q", "-t", "set,get,lpush,zadd"],
                            False)
    wrong, found, control = [], {}, Redis(port)
    clients = [threading.Thread(target=redis_checks, args=(port, i, wrong, 2000)) for i in range(4)]
    for client in clients:
        client.start()
    saves = []
    for turn in range(4):
        control.call("bgsave" if turn % 2 else "bgrewriteaof")
        time.sleep(0.2)
        busy = lambda: "1" in (control.info("rdb_bgsave_in_progress"), control.info("aof_rewrite_in_progress"))
        saves.append(wait_while(busy, 60))
    for client in clients:
        client.join(120)
    found["clients"] = wrong[:5]
    found["redis-benchmark"] = benchmark.wait(240)
    found["saves"] = saves
    found["last"] = [control.info(name) for name in ("rdb_last_bgsave_status", "aof_last_bgrewrite_status", "aof_last_write_status")]
    digest = control.call("debug", "digest")
    keys = control.call("dbsize")
    contents = hashlib.sha256(repr([control.call("get", f"own:{n}:{i}") for n in range(4) for i in range(50)]).encode()).hexdigest()
    found["contents"] = contents
    host.send_signal(signal.SIGTERM)
    found["exit"] = host.wait(60)
    host = place.begin(command)
    until(lambda: answers(port) and is_loaded(port), 60, "redis again")
    control = Redis(port)
    found["after a restart"] = [control.call("dbsize") == keys, control.call("debug", "digest") == digest, control.call("get", "counter:0"), control.call("llen", "list:3")]
    host.send_signal(signal.SIGTERM)
    found["second exit"] = host.wait(60)
    log = (place.folder / "redis.log").read_text()
    found["log"] = lines_with(log, "rror", "rash", "ailed", "nterrupted", "ssertion")
    return found


def nginx(place):
    """nginx under wrk, told to reload its configuration again and again."""
    server, load = need("nginx", "nginx-light"), need("wrk", "wrk")
    if not (server and load):
        return None
    port, site = free_port(), place.folder / "site"
    site.mkdir()
    (site / "index.html").write_text("<p>hello</p>\n" * 500)
    config = place.folder / "nginx.conf"
    temporary = " ".join(f"{name}_temp_path {place.folder}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    config.write_text(f"""
        user root; worker_processes 2; daemon off; pid {place.folder}/nginx.pid; error_log {place.folder}/error.log notice;
        events {{ worker_connections 256; }}
        http {{ access_log off; gzip on; types {{ text/html html; }} {temporary} keepalive_timeout 1;
          server {{ listen 127.0.0.1:{port}; root {site}; }} }}""")
    master = place.begin([server, "-c", config, "-e", place.folder / "error.log"])
    until(lambda: answers(port), 20, "nginx")
    wrk = place.start([load, "-t", 1, "-c", 16, "-d", "12s", "-H", "Accept-Encoding: gzip", f"http://127.0.0.1:{port}/index.html"],
                      False, stdout=subprocess.PIPE)
    for _ in range(8):
        time.sleep(1.2)
        master.send_signal(signal.SIGHUP)
    report, _ = wrk.communicate(timeout=60)
    report = report.decode()
    time.sleep(1)
    master.send_signal(signal.SIGQUIT)
    found = {"exit": master.wait(60), "answers that are not 200": lines_with(report, "Non-2xx"), "served": "requests in" in report}
    log = (place.folder / "error.log").read_text()
    worse = [line for line in log.splitlines() if re.search(r"\[(warn|error|crit|alert|emerg)\]", line)]
    found["log"] = sorted({re.sub(r"^.*?(\[\w+\]) \d+#\d+:( \*\d+)?", r"\1", line) for line in worse})
    found["signals that killed"] = sorted(set(re.findall(r"exited on signal \d+", log)))
    found["reloads"] = log.count("reconfiguring")
    return found


def postgres(place):
    """PostgreSQL: pgbench's transactions, then sums that must agree, by parallel queries too, and a clean log."""
    server = need("postgres", "postgresql")
    if not server:
        return None
    folder = os.path.dirname(os.path.realpath(server))
    tool = lambda name: os.path.join(folder, name)
    user = next((entry for name in ("postgres", "nobody") for entry in pwd.getpwall() if entry.pw_name == name), None)
    who = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []} if os.getuid() == 0 else {}
    data, port = place.folder / "data", free_port()
    data.mkdir(mode=0o700)
    if who:
        shutil.chown(data, user.pw_uid, user.pw_gid)
    place.run([tool("initdb"), "-D", data, "-U", "bench", "-A", "trust", "-N"], **who)
    address = ["-h", "127.0.0.1", "-p", port, "-U", "bench"]
    log = open(place.folder / "server.log", "wb")
    host = place.begin([server, "-D", data, "-p", port, "-h", "127.0.0.1", "-k", data, "-c", "fsync=off", "-c", "log_checkpoints=off",
                        "-c", "min_parallel_table_scan_size=0", "-c", "parallel_setup_cost=0", "-c", "parallel_tuple_cost=0",
                        "-c", "max_parallel_workers_per_gather=2", "-c", "autovacuum_naptime=2s", "-c", "timezone=UTC"],
                       stdout=log, stderr=log, **who)
    ready = [tool("pg_isready"), "-q", *map(str, address[:4])]
    until(lambda: subprocess.run(ready).returncode == 0, 30, "postgres")
    place.run([tool("pgbench"), *address, "-i", "-q", "-s", 4, "postgres"])

    def ask(query):
        return place.run([tool("psql"), *address, "-At", "-c", query, "postgres"]).stdout.decode().strip()

    work = place.start([tool("pgbench"), *address, "-c", 4, "-j", 1, "-T", 12, "postgres"], False, stdout=subprocess.PIPE)
    parallel = "select count(*), sum(hashtext(aid::text || filler)::bigint), max(bid) from pgbench_accounts"
    answers_found = set()
    while work.poll() is None:
        answers_found.add(ask(parallel))
        answers_found.add(ask("select count(*), count(distinct a.bid) from pgbench_accounts a join pgbench_branches b using (bid) where a.aid % 3 = 0"))
        time.sleep(0.2)
    report = work.stdout.read().decode()
    failed = re.search(r"number of failed transactions: (\d+)", report)
    found = {"pgbench": work.returncode, "failed transactions": failed and failed.group(1),
             "answers of parallel queries": sorted(answers_found), "plan is parallel": "Gather" in ask("explain " + parallel)}
    sums = [ask(f"select sum({column}) from {table}") for column, table in (
        ("abalance", "pgbench_accounts"), ("tbalance", "pgbench_tellers"), ("bbalance", "pgbench_branches"), ("delta", "pgbench_history"))]
    found["sums agree"] = len(set(sums)) == 1
    found["serial answer"] = ask("set max_parallel_workers_per_gather=0; " + parallel).splitlines()[-1]
    found["checkpoint, vacuum"] = [ask("checkpoint"), ask("vacuum full analyze pgbench_accounts")]
    host.send_signal(signal.SIGINT)
    found["exit"] = host.wait(60)
    text = (place.folder / "server.log").read_text()
    stopping = ("terminating connection due to administrator command", "the database system is starting up", "background worker")
    found["log"] = sorted({line.split("] ", 1)[-1] for line in lines_with(text, "ERROR", "FATAL", "PANIC", "WARNING", "nterrupted")
                           if not any(word in line for word in stopping)})
    return found


def sqlite(place):
    """sqlite3: four processes write to one database at the same time; then its own check and what must be in it."""
    program = need("sqlite3", "sqlite3")
    if not program:
        return None
    base = place.folder / "base.db"
    place.run([program, base, "pragma journal_mode=wal; create table t(who, n, s); create index ti on t(s);"])
    statements = "\n".join(
        f"begin immediate; insert into t select '{{who}}', value + {turn * 100}, hex(value * 7919 % 10007) from generate_series(1, 100); commit;"
        for turn in range(150))
    statements = statements.replace("generate_series(1, 100)", "(with recursive g(value) as (select 1 union all select value+1 from g where value<100) select value from g)")
    writers = []
    for who in "abcd":
        file = place.folder / f"{who}.sql"
        file.write_text(".timeout 60000\npragma synchronous=off;\n" + statements.replace("{who}", who)
                        + "\nselect count(*) from (select s, count(*) c, max(n) from t group by s order by c desc, s);\n")
        writers.append(place.begin([program, "-bail", base], stdin=open(file), stdout=subprocess.PIPE, stderr=subprocess.STDOUT))
    outputs = [writer.communicate(timeout=240)[0].decode() for writer in writers]
    found = {"exits": [writer.returncode for writer in writers],
             "what they say": sorted({line for output in outputs for line in output.splitlines() if "rror" in line})}
    query = "pragma integrity_check; select count(*), sum(n), count(distinct s), count(distinct who) from t; select who, count(*), sum(n) from t group by who;"
    found["contents"] = place.result([program, base, query])
    heavy = """with recursive n(i) as (select 1 union all select i+1 from n where i < 200000)
        select s, count(*), sum(k) from (select i*7919%1009 as k, hex(i*31%97) as s from n) group by s order by 2 desc, 1"""
    found["a long query"] = [hashlib.sha256(place.result([program, ":memory:", heavy])[1].encode()).hexdigest() for _ in range(3)]
    return found
