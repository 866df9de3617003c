"""Language run-times with signals, threads, children and timers of their own: their own tests, and small programs."""
import os
import re
import xml.etree.ElementTree as XML
from pathlib import Path

from hosts import need
from place import PROGRAMS

#: CPython's own tests of what a profiler could disturb; those that take minutes by themselves apart.
PYTHON_TESTS = ("test_signal", "test_threading", "test_subprocess", "test_select", "test_poll", "test_epoll", "test_eintr", "test_fork1",
                "test_wait3", "test_wait4", "test_faulthandler", "test_selectors", "test_posix")
PYTHON_LONG_TESTS = ("test_asyncio", "test_socket")


def python_tests(*names):
    """A case: some of CPython's own tests, each test's outcome a finding."""
    def run(place):
        if not Path("/usr/lib/python3.11/test/test_signal.py").exists():
            print("left out: CPython's tests are not here (apt-get install libpython3.11-testsuite)", flush=True)
            return None
        found = {}
        for name in names:
            report = place.folder / f"{name}.xml"
            # Unbuffered, CPython takes a write that was cut short for a whole one (benches/results/torture.md).
            status, output = place.result(["/usr/bin/python3.11", "-m", "test", "--timeout", 300, "--junit-xml", report, name], 600,
                                          environment={"PYTHONUNBUFFERED": ""})
            found[name] = status
            if report.exists():
                found.update(outcomes(report))
            if status != 0:
                place.note(f"{name}: {output[-6000:]}")
        return found
    return run


def outcomes(report):
    """{test: ok, failed or skipped} of a JUnit report."""
    found = {}
    for test in XML.parse(report).iter("testcase"):
        bad = test.find("error") if test.find("error") is not None else test.find("failure")
        outcome = "ok" if bad is None else "failed: " + (bad.text or bad.get("message") or "").strip().splitlines()[-1][:200]
        found[test.get("name")] = "skipped" if test.find("skipped") is not None else outcome
    return found


def reports(place, command, timeout=200, **options):
    """Runs a program that prints `name: value` lines, and gives them and its exit status."""
    status, output = place.result(command, timeout, **options)
    found = dict(line.split(": ", 1) for line in output.splitlines() if ": " in line)
    return {**found, "exit": status, "other lines": [line for line in output.splitlines() if ": " not in line][:5]}


def perl(place):
    """sleep, select, alarm, system calls that wait, children, sockets: in perl."""
    return need("perl", "perl") and reports(place, ["perl", PROGRAMS / "waits.pl"])


def node(place):
    """Children, workers, timers, HTTP: in node."""
    return need("node", "nodejs") and reports(place, ["node", PROGRAMS / "loops.js"])


def java(place):
    """Threads, locks, children, sockets, collection: in Java."""
    if not (need("java", "default-jdk-headless") and need("javac", "default-jdk-headless")):
        return None
    place.run(["javac", "-d", place.folder, PROGRAMS / "Threads.java"])
    found = {}
    for label, options in (("", []), (" (parallel collector, compiled early)", ["-XX:+UseParallelGC", "-XX:TieredStopAtLevel=1"])):
        lines = reports(place, ["java", "-Xmx256m", "-XX:-UsePerfData", *options, "-cp", place.folder, "Threads"])
        found |= {name + label: value for name, value in lines.items()}
    return found


def go(place):
    """Goroutines, cgo, children, signals, timers: in Go."""
    if not need("go", "golang-go"):
        return None
    binary = place.folder / "churn"
    environment = {"GOCACHE": str(place.folder / "cache"), "GO111MODULE": "off", "HOME": str(place.folder)}
    place.run(["go", "build", "-o", binary, PROGRAMS / "churn.go"], env={**os.environ, **environment})
    return reports(place, [binary])


def shell(place):
    """bash with thousands of children: pipes, substitutions, jobs, traps, read with a time-out."""
    return reports(place, ["bash", PROGRAMS / "children.sh"], 400)


def perl_core(place):
    """perl's own tests, run by the installed perl from the source package's t/ (SWIPR_PERL_SOURCE names the unpacked source)."""
    source = os.environ.get("SWIPR_PERL_SOURCE")
    if not source:
        print("left out: perl's own tests (unpack Debian's source package of perl and name it in SWIPR_PERL_SOURCE)", flush=True)
        return None
    found = {}
    names = [path for path in sorted(Path(source).glob("t/op/*.t")) if re.match(PERL_TESTS, path.name)]
    names += sorted(Path(source).glob("t/io/*.t"))
    for path in names:
        status, output = place.result(["perl", "-I../lib", path.relative_to(Path(source) / "t")], 120, cwd=Path(source) / "t")
        good = len(re.findall(r"^ok \d+", output, re.M))
        found[path.name] = f"exit {status}, {good} ok, not ok: {re.findall(r'^not ok.*', output, re.M)[:5]}"
    return found


PERL_TESTS = r"(alarm|sleep|sselect|select|fork|exec|die.*|kill0|sigdispatch|sigsystem|time|times|wantarray|threads.*|magic|getppid|getpid|sysio|pow|sort|sprintf|pack|re_.*|stat|readline|heredoc|local|hash|array|closure|eval|grep|goto.*|inc|join|lc|method|split|sub|substr|tie.*|tr|utf8.*|vec)\.t"
