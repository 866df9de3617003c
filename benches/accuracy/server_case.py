"""The case `server`: which functions of a real server swipr and perf find hottest.

There is no truth here, only agreement: redis-server answers one client in a closed loop, so that it works and waits a
hundred thousand times a second. Both record the same process, one after the other.
"""
import os
import shutil
import subprocess
from collections import Counter

import profilers
import tables
from hosts import library, need, until
from swipr_client import ask

TOP = 10


def leaves(found):
    """The share of each innermost function, of the CPU time with a stack."""
    weights = Counter()
    for (_, functions), weight in found.items():
        if functions and not functions[0].startswith("[not sampled"):
            weights[plain(functions[0])] += weight
    return {name: weight / weights.total() for name, weight in weights.items()}


def plain(name):
    """A function's name without what only one of its aliases has, and one name for those without."""
    return "?" if name in ("?", "[unknown]") else name.removeprefix("__GI_").removeprefix("__libc_").strip("_")


def by_swipr(pid, folder, options):
    """The shares that swipr finds."""
    socket = until(lambda: next(iter(folder.glob(f"{pid}.sock")), None), 10, "the socket")
    path = f"/profile?seconds={{}}&hz={options.hz}&mode=cpu&format=raw"
    ask(socket, path.format(1), timeout=60)  # tables are made now
    answer = ask(socket, path.format(options.seconds), timeout=options.seconds + 60)
    found, samples = profilers.swipr_samples(answer.body.decode().splitlines())
    return leaves(found), samples.total()


def by_perf(pid, folder, options):
    """The shares that perf finds; None where it may not run."""
    data = folder / "perf.data"
    command = ["perf", "record", "-q", "-B", "-e", "cpu-clock", "-F", str(options.hz), "--call-graph", "dwarf,4096",
               "-p", str(pid), "-o", str(data), "--", "sleep", str(options.seconds)]
    if not shutil.which("perf") or subprocess.run(command, capture_output=True).returncode != 0:
        return None
    found, samples = profilers.perf_samples(data, 0, float("inf"), options.hz)
    return leaves(found), samples.total()


#: In the order of the columns.
RECORDERS = {"swipr": by_swipr, "perf": by_perf}


def show(folder, options):
    """Runs the case and prints its table; there is no bar."""
    if not (need("redis-server", "redis-server") and need("redis-benchmark", "redis-tools")):
        return True
    socket = folder / "redis"
    command = ["redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--dir", folder]
    variables = {**os.environ, "LD_PRELOAD": str(library()), "SWIPR_SOCKET": str(folder / "{PID}.sock")}
    with subprocess.Popen(command, env=variables, stdout=subprocess.DEVNULL) as server:
        try:
            until(socket.exists, 10, "the server")
            load = ["redis-benchmark", "-s", socket, "-c", "1", "-n", "100000000", "-t", "get", "-q"]
            with subprocess.Popen(load, stdout=subprocess.DEVNULL) as client:
                try:
                    recorded = {name: record(server.pid, folder, options) for name, record in RECORDERS.items()}
                finally:
                    client.kill()
        finally:
            server.kill()
    recorded = {name: result for name, result in recorded.items() if result}
    if "perf" not in recorded:
        print("server: perf is not here, or may not record")
    shares = [result[0] for result in recorded.values()]
    hottest = sorted(set().union(*shares), key=lambda name: -max(share.get(name, 0) for share in shares))[:TOP]
    rows = [[name, *(f"{share.get(name, 0) * 100:.1f} %" for share in shares)] for name in hottest]
    tables.show(["function", *(f"{name}, {count} samples" for name, (_, count) in recorded.items())], rows)
    return True
