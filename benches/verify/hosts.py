"""Programs with the agent inside: found, started, waited for, ended by their ids.

Everything a test starts is in its own process group and ends with it; everything it
writes is in one temporary folder that is removed. Not here: which programs there are.
"""
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parent.parent


def library():
    """The agent: $SWIPR_LIBRARY, else the newest release build of this checkout."""
    named = os.environ.get("SWIPR_LIBRARY")
    folder = Path(os.environ.get("CARGO_TARGET_DIR", CHECKOUT / "target"))
    path = Path(named) if named else folder / "release" / "libswipr.so"
    if not path.is_file():
        raise SystemExit(
            f"there is no {path}: cargo build --release -p libswipr, or set SWIPR_LIBRARY")
    return path.resolve()


def need(program, package):
    """The path of a program, or None with a line that says what to install."""
    found = shutil.which(program)
    if not found:
        print(f"left out: {program} is not here (apt-get install {package})", flush=True)
    return found


def until(condition, seconds, what):
    """Waits until `condition()` is true and returns its value; raises after `seconds`."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not within {seconds} s")
        time.sleep(0.01)


class Hosts:
    """A temporary folder and the processes started in it. Use with `with`."""

    def __enter__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="swipr-verify-"))
        self.folder.chmod(0o755)
        self.sockets = self.folder / "sockets"
        self.sockets.mkdir()
        self.sockets.chmod(0o1777)
        self.processes = []
        return self

    def __exit__(self, *_):
        for process in reversed(self.processes):
            self.end(process)
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self, command, profiled=True, environment=None, **options):
        """Starts a program in a process group of its own; output goes to the folder's log."""
        variables = {**os.environ, **(environment or {})}
        if profiled:
            variables["LD_PRELOAD"] = str(library())
            variables.setdefault("SWIPR_SOCKET", f"{self.sockets}/{{PID}}.sock")
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("cwd", self.folder)
        with open(self.folder / "log", "ab") as log:
            options.setdefault("stdout", log)
            options.setdefault("stderr", log)
            process = subprocess.Popen(
                [str(word) for word in command], env=variables, start_new_session=True, **options)
        self.processes.append(process)
        return process

    def run(self, command, **options):
        """Runs a program without the agent and expects success."""
        options.setdefault("cwd", self.folder)
        return subprocess.run(
            [str(word) for word in command], check=True, timeout=120, stdin=subprocess.DEVNULL,
            capture_output=True, **options)

    def end(self, process):
        """Ends a process group that this object started."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5)
                if not group_is_alive(process.pid):
                    return

    def socket_of(self, process, seconds=10):
        """The socket of this very process."""
        return until(lambda: live_socket(self.sockets / f"{process.pid}.sock"), seconds,
                     f"a socket of process {process.pid}")

    def sockets_of(self, name, count=1, seconds=20):
        """The sockets of at least `count` live processes of that name, by process id."""
        def found():
            paths = {int(path.stem): path for path in self.sockets.glob("*.sock") if path.stem.isdigit()}
            live = {pid: path for pid, path in paths.items() if name_of(pid) == name and live_socket(path)}
            return live if len(live) >= count else None
        return until(found, seconds, f"{count} sockets of {name}")


def name_of(pid):
    """The name of a process; None if it is gone."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return None


def live_socket(path):
    """The path if somebody listens there."""
    with socket.socket(socket.AF_UNIX) as probe:
        return path if probe.connect_ex(str(path)) == 0 else None


def group_is_alive(group):
    """Whether a process group has members that are not zombies."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
                if int(fields[2]) == group and fields[0] != "Z":
                    return True
    return False
