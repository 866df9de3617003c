"""Where a case runs: its processes, with or without the agent, and the recorder beside them."""
import json
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "verify"))
from hosts import Hosts

HERE = Path(__file__).resolve().parent
PROGRAMS = HERE / "programs"


class Place(Hosts):
    """A temporary folder, processes in it, and what records them. `how`: without, wall or cpu."""

    def __init__(self, how, hz):
        self.how, self.hz, self.recorder, self.figures = how, hz, None, {}

    def __enter__(self):
        super().__enter__()
        if self.how != "without":
            command = [sys.executable, HERE / "recorder.py", self.sockets, self.how, str(self.hz)]
            self.recorder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        return self

    def __exit__(self, *rest):
        if self.recorder:
            output, _ = self.recorder.communicate(timeout=60)
            self.figures = json.loads(output)
        return super().__exit__(*rest)

    def begin(self, command, **options):
        """Starts a program, with the agent where this run has one."""
        return self.start(command, self.how != "without", **options)

    def result(self, command, timeout=120, **options):
        """Runs a program to its end: (exit status, what it wrote, both as text). A status of None: it did not end."""
        options.setdefault("stderr", subprocess.STDOUT)
        process = self.begin(command, stdout=subprocess.PIPE, **options)
        try:
            output, _ = process.communicate(timeout=timeout)
            return process.returncode, output.decode(errors="replace")
        except subprocess.TimeoutExpired:
            return None, "did not end"
        finally:
            self.end(process)
            self.processes.remove(process)

    def note(self, text):
        """What helps to find the cause of a difference."""
        with open(self.folder / "log", "a") as log:
            log.write(text + "\n")

    def log(self):
        """What the programs wrote that nobody else reads."""
        log = self.folder / "log"
        return log.read_text(errors="replace") if log.exists() else ""



def lines_with(text, *words):
    """The lines that have one of these words."""
    return [line for line in text.splitlines() if any(word in line for word in words)]


def wait_while(condition, seconds):
    """Waits until the condition ends; whether it did."""
    end = time.monotonic() + seconds
    while condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True
