#!/usr/bin/env python3
"""Records every process that opens a socket in a folder, again and again, until a signal stops it.

    recorder.py FOLDER MODE HZ

Somebody else's program: it knows sockets only. Each process that shows up is asked for
one recording after the other, the first ones short, in all formats by turns. Ends when
its stdin ends, and prints its figures as one line of JSON. Sockets on which nobody
listens any more are removed, as long as no other process has the name.
"""
import contextlib
import json
import os
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "verify"))
from swipr_client import ask

FORMATS = ("folded", "pprof", "folded", "perf", "raw")
#: Processes that are recorded at the same time.
AT_ONCE = 48


class Recorder:
    """What is recorded, and what became of it."""

    def __init__(self, folder, mode, hz):
        self.folder, self.mode, self.hz = Path(folder), mode, hz
        self.lock, self.known, self.over = threading.Lock(), set(), False
        self.figures = dict.fromkeys(
            ("processes", "recordings", "cut", "refused", "not_reached", "samples", "late", "dropped"), 0)

    def count(self, **numbers):
        """Adds to the figures."""
        with self.lock:
            for name, number in numbers.items():
                self.figures[name] += number

    def follow(self, path):
        """Records one process until it is gone."""
        turn, reached = 0, False
        while not self.over:
            seconds = (0.2, 0.5, 2)[min(turn, 2)]
            target = (f"/profile?seconds={seconds}&hz={self.hz}&mode={self.mode}"
                      f"&format={FORMATS[turn % len(FORMATS)]}")
            try:
                answer = ask(path, target, timeout=seconds + 60)
            except OSError:
                self.count(**({"cut": 1} if reached else {"not_reached": 1}))
                break
            except Exception:  # the process ended in the middle of its answer
                self.count(cut=1)
                break
            self.count(processes=0 if reached else 1)
            reached = True
            turn += 1
            if answer.status not in (200, 422):
                self.count(refused=1)
                time.sleep(0.1)
                continue
            stats = answer.stats()
            self.count(recordings=1, **{name: stats.get(name, 0) for name in ("samples", "late", "dropped")})
        with contextlib.suppress(OSError):
            if not os.path.exists(f"/proc/{path.stem}"):
                path.unlink()
        with self.lock:
            self.known.discard(path.name)

    def run(self):
        """Looks for sockets until it is over."""
        while not self.over:
            with contextlib.suppress(OSError):
                for entry in os.scandir(self.folder):
                    with self.lock:
                        if entry.name in self.known or len(self.known) >= AT_ONCE:
                            continue
                        self.known.add(entry.name)
                    threading.Thread(target=self.follow, args=(Path(entry.path),), daemon=True).start()
            time.sleep(0.002)


def main():
    """The command."""
    recorder = Recorder(*sys.argv[1:])
    looking = threading.Thread(target=recorder.run, daemon=True)
    looking.start()
    sys.stdin.read()
    recorder.over = True
    looking.join(10)
    print(json.dumps(recorder.figures), flush=True)
    os._exit(0)  # recordings that are under way are nobody's any more


if __name__ == "__main__":
    main()
