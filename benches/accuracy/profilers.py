"""The profilers that are compared: each records a running program and gives weighted stacks.

A profiler is a function (start, seconds, hz, mode) -> (weights, samples, truth): two Counters by
(thread, functions), the functions as a tuple, innermost first, and what the program says it did
meanwhile; None where the profiler is not installed or refused. Not here: which programs there
are, and what is true of them.
"""
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "verify"))
from hosts import library, until  # noqa: E402
from swipr_client import ask  # noqa: E402

HERE = Path(__file__).resolve().parent
GPERFTOOLS = Path("/usr/lib/x86_64-linux-gnu/libprofiler.so.0")
#: What switches gperftools on and off.
SWITCH = signal.SIGUSR2
#: Of perf script's lines; the kernel's addresses are those of 16 digits.
USER_FRAME = re.compile(r"\s*[0-9a-f]{1,15} (.+?)(?: \(.*\))?")


class Ended(Exception):
    """The program has ended under its profiler."""


@dataclass
class Start:
    """A program to start; `enter` is called in the child, before exec."""
    binary: Path
    folder: Path
    arguments: tuple = ()
    enter: Callable | None = None


class Program:
    """A program that knows the truth; `environment` loads a profiler into it."""

    def __init__(self, start, environment=None):
        variables = {**os.environ, **(environment or {})}
        self.process = subprocess.Popen([str(start.binary), *start.arguments], env=variables, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, preexec_fn=start.enter)
        self.known = []  # (time, truth), as it was asked
        self.process.stdout.readline()
        time.sleep(0.3)  # its threads have begun

    def truth(self):
        """What it has done so far, by cause."""
        asked = time.time_ns()
        try:
            self.process.stdin.write(b"?\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        except BrokenPipeError:
            answer = b""
        if not answer:
            raise Ended(f"the program ended with status {self.process.wait(timeout=10)}")
        truth = [int(word) for word in answer.split()]
        self.known.append(((asked + time.time_ns()) / 2, truth))
        return truth

    def follow(self, is_over):
        """Asks for the truth each 2 ms."""
        while not is_over():
            self.truth()
            time.sleep(0.002)

    def truth_at(self, moment):
        """What it had done by then, between the two answers around it."""
        (before, old), (after, new) = next(
            (pair for pair in zip(self.known, self.known[1:]) if pair[1][0] >= moment), self.known[-2:])
        part = (moment - before) / (after - before)
        return [first + (second - first) * part for first, second in zip(old, new)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def swipr(start, seconds, hz, mode, source="timer"):
    """This profiler."""
    environment = {"LD_PRELOAD": str(library()), "SWIPR_SOCKET": str(start.folder / "{PID}.sock")}
    with Program(start, environment) as program:
        path = start.folder / f"{program.process.pid}.sock"
        until(path.exists, 10, "the socket")
        ask(path, f"/profile?seconds=1&hz={hz}&mode={mode}&format=raw", timeout=60)  # tables are made now
        with ThreadPoolExecutor() as pool:
            program.truth()
            request = f"/profile?seconds={seconds}&hz={hz}&mode={mode}&source={source}&format=raw"
            answer = pool.submit(ask, path, request, timeout=seconds + 60)
            begun = time.monotonic() + 0.2  # on a busy machine not at once, and it ends later, too
            program.follow(lambda: time.monotonic() > begun)
            time.sleep(seconds - 0.4)
            program.follow(answer.done)
            program.truth()  # after the end in any case, however long the machine stood still
            lines = answer.result().body.decode().splitlines()
    start_ns, duration_ns = json.loads(lines[0])["start_ns"], json.loads(lines[-1])["duration_ns"]
    return *swipr_samples(lines), difference(program.truth_at(start_ns), program.truth_at(start_ns + duration_ns))


def swipr_samples(lines):
    """The weights and samples of a recording in the raw format. A sample may be told in two parts: its own thread's time,
    and that of threads without a sample."""
    threads, stacks, found, samples = {}, {}, Counter(), set()
    for line in lines:
        record = json.loads(line)
        if record["type"] == "thread":
            threads[record["id"]] = record["name"]
        elif record["type"] == "stack":
            frames = (frame.get("functions") or [{"name": "?"}] for frame in record["frames"])
            stacks[record["id"]] = tuple(function["name"] for functions in frames for function in functions)
        elif record["type"] == "sample":
            key = threads[record["thread"]], stacks[record["stack"]]
            found[key] += record["weight_ns"]
            samples.add((record["time_ns"], key))
    return found, Counter(key for _, key in samples)


def perf(start, seconds, hz, mode):
    """perf record of the CPU clock; it has no wall mode without tracing the scheduler."""
    if mode != "cpu" or not shutil.which("perf"):
        return None
    data = start.folder / "perf.data"
    with Program(start) as program:
        command = ["perf", "record", "-q", "-B", "-e", "cpu-clock", "-F", str(hz), "-k", "CLOCK_MONOTONIC", "--call-graph",
                   "dwarf,4096", "-p", str(program.process.pid), "-o", str(data), "--", "sleep", str(seconds + 3)]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as recording:
            time.sleep(2)  # it does not say when it begins; what was before is left out by its time
            began, before = time.monotonic(), program.truth()
            time.sleep(seconds)
            after, ended = program.truth(), time.monotonic()
            if recording.poll() is not None or recording.wait() != 0:
                return None
    return *perf_samples(data, began, ended, hz), difference(before, after)


def perf_samples(data, began, ended, hz):
    """The weights and samples of a file of perf's between two moments, without the kernel's functions."""
    script = ["perf", "script", "-i", str(data), "--ns", "-F", "comm,time,ip,sym"]
    text = subprocess.run(script, capture_output=True).stdout.decode()
    found, samples = Counter(), Counter()
    for block in text.split("\n\n"):
        head, *lines = block.strip("\n").split("\n")
        names = tuple(match[1] for line in lines if (match := USER_FRAME.fullmatch(line)))
        at = re.fullmatch(r"\s*(.+?)\s+([0-9]+\.[0-9]+):\s*", head)
        if at and began <= float(at[2]) < ended:
            found[at[1], names] += 1e9 / hz
            samples[at[1], names] += 1
    return found, samples


def switched(start, seconds, environment, output):
    """Runs the program with a preloaded profiler that a signal switches; the truth, when `output` is there."""
    with Program(start, environment) as program:
        before = program.truth()
        program.process.send_signal(SWITCH)
        time.sleep(seconds)
        program.process.send_signal(SWITCH)
        after = program.truth()
        until(output.exists, 10, f"{output}")
        time.sleep(0.5)
    return difference(before, after)


def gperftools(start, seconds, hz, mode):
    """gperftools' CPU profiler."""
    if mode != "cpu" or not GPERFTOOLS.exists():
        return None
    file = start.folder / "gperftools"
    environment = {"LD_PRELOAD": str(GPERFTOOLS), "CPUPROFILE": str(file), "CPUPROFILESIGNAL": str(int(SWITCH)),
                   "CPUPROFILE_FREQUENCY": str(hz)}
    path = Path(f"{file}.0")
    path.unlink(missing_ok=True)
    truth = switched(start, seconds, environment, path)
    words, maps = split_profile(path.read_bytes())
    functions = symbols(start.binary)
    base = next(int(line.split("-")[0], 16) for line in maps.splitlines() if str(start.binary) in line)
    found, samples, at, period = Counter(), Counter(), 5, words[3]
    while at + 2 < len(words) and words[at + 2] != 0:
        weight, depth = words[at], words[at + 1]
        names = tuple(name_of(pc - base - (number > 0), functions) for number, pc in enumerate(words[at + 2:at + 2 + depth]))
        found["?", names] += weight * period * 1000
        samples["?", names] += weight
        at += 2 + depth
    return found, samples, truth


def pprof_rs(start, seconds, hz, mode):
    """pprof-rs, in the library of the benches."""
    library_of_benches = library().with_name("libswipr_benches.so")
    if mode != "cpu" or not library_of_benches.exists():
        return None
    file = start.folder / "pprof"
    file.unlink(missing_ok=True)
    environment = {"LD_PRELOAD": str(library_of_benches), "SWIPR_BENCH_PPROF": str(file), "SWIPR_BENCH_PPROF_HZ": str(hz)}
    truth = switched(start, seconds, environment, file)
    found, samples = Counter(), Counter()
    for line in file.read_text(errors="replace").splitlines():
        stack, _, number = line.rpartition(" ")
        thread, *names = stack.split(";")
        found[thread, tuple(names)] += int(number) * 1e9 / hz
        samples[thread, tuple(names)] += int(number)
    return found, samples, truth


def timers(set_again):
    """Per-thread CPU timers (timers.c): repeating ones, or ones that are set again to a random time."""
    def profiler(start, seconds, hz, mode):
        compiled, file = start.folder / "timers.so", start.folder / "timers"
        if mode != "cpu":
            return None
        subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-pthread", HERE / "timers.c", "-o", compiled], check=True)
        file.unlink(missing_ok=True)
        environment = {"LD_PRELOAD": str(compiled), "TIMERS_HZ": str(hz), "TIMERS_SET_AGAIN": str(set_again),
                       "TIMERS_OUTPUT": str(file)}
        truth = switched(start, seconds, environment, file)
        functions = symbols(start.binary)
        found, samples = Counter(), Counter()
        for line in file.read_text().splitlines():
            thread, weight, *addresses = line.split()
            if thread == "end":
                break
            names = tuple(name_of(int(address, 16) - (number > 0), functions) for number, address in enumerate(addresses))
            found[thread, names] += int(weight)
            samples[thread, names] += 1
        return found, samples, truth
    return profiler


def split_profile(content):
    """The words of gperftools' binary profile, and the text behind them."""
    words, at = [], 0
    while at + 8 <= len(content):
        words.append(struct.unpack_from("<Q", content, at)[0])
        at += 8
        if words[-3:] == [0, 1, 0]:
            break
    return words, content[at:].decode(errors="replace")


def symbols(binary):
    """[(start, end, name)] of a program's functions."""
    lines = subprocess.run(["nm", "-S", str(binary)], capture_output=True).stdout.decode().splitlines()
    fields = (line.split() for line in lines)
    return [(int(f[0], 16), int(f[0], 16) + int(f[1], 16), f[3]) for f in fields if len(f) == 4 and f[2] in "tTwW"]


def name_of(address, functions):
    """The function at an address of the file."""
    return next((name for start, end, name in functions if start <= address < end), "?")


def difference(before, after):
    """What was done in between."""
    return [new - old for old, new in zip(before, after)]



#: All of them, by name.
PROFILERS = {
    "swipr": swipr,
    "per-thread timers, repeating": timers(0),
    "per-thread timers, set again": timers(1),
    "perf (cpu-clock)": perf,
    "gperftools": gperftools,
    "pprof-rs": pprof_rs,
}
