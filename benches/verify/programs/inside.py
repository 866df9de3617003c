"""Runs in the container: is perf refused, where is the socket, what do recordings hold?

inside.py LIBRARY PROGRAM: starts PROGRAM with LIBRARY preloaded and nothing configured,
records it, and prints one JSON object. Everything it starts ends with it.
"""
import ctypes
import glob
import json
import os
import subprocess
import sys

from hosts import until
from recordings import Recording
from swipr_client import ask

#: perf_event_open(2) on x86-64.
PERF_EVENT_OPEN = 298


def perf_is_refused():
    """The name of the error that perf_event_open gives for counting one's own time; None if it works."""
    attributes = ctypes.create_string_buffer(128)
    attributes[0:8] = (1).to_bytes(4, "little") + (128).to_bytes(4, "little")  # PERF_TYPE_SOFTWARE
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.syscall(PERF_EVENT_OPEN, attributes, 0, -1, -1, 0)
    return None if fd >= 0 else os.strerror(ctypes.get_errno())


def status_of(name):
    """A field of this process's status file."""
    with open("/proc/self/status") as file:
        return next(line.split(":", 1)[1].strip() for line in file if line.startswith(name + ":"))


def sockets(pid):
    """The agent's sockets in its default places."""
    return [path for folder in ("/run", "/var/run", "/tmp/swipr-*") for path in glob.glob(f"{folder}/swipr-pid-{pid}.sock")]


def look(body):
    """What a recording shows."""
    recording = Recording(body)
    checked, wrong = recording.contradictions()
    return {"samples": len(recording.samples) + len(recording.rests), "complete": recording.complete(), "states": recording.states(),
            "seen": len({thread["tid"] for thread in recording.threads.values()}), "false": sum(wrong.values()),
            "checked": checked, "why": {f"{reason} at {last}": entry[0] for (reason, last), entry in recording.incomplete().items()}}


def main():
    """The command."""
    library, program = sys.argv[1:]
    found = {"uid": os.getuid(), "capabilities": status_of("CapEff"), "no_new_privs": status_of("NoNewPrivs"),
             "seccomp": status_of("Seccomp"), "read_only": not os.access("/usr", os.W_OK), "perf": perf_is_refused()}
    environment = {**os.environ, "LD_PRELOAD": library, "SWIPR_LOG": "1"}
    host = subprocess.Popen([program], env=environment, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        path = until(lambda: next(iter(sockets(host.pid)), None), 10, "a socket")
        found["socket"] = path.replace(str(host.pid), "PID")
        tasks = os.listdir(f"/proc/{host.pid}/task")
        for mode in ("wall", "cpu"):
            answer = ask(path, f"/profile?seconds=2&hz=200&format=raw&mode={mode}")
            found[mode] = {"status": answer.status, **answer.stats()}
            found[mode].update(look(answer.body) if answer.status == 200 else {"text": answer.body.decode()})
        status = ask(path, "/status").json()
        found.update(path=status["blocked_threads_are_sampled_by"], signal=status["signal"], stacks=status["stacks"])
        found["alive"] = host.poll() is None and len(tasks) <= len(os.listdir(f"/proc/{host.pid}/task"))
    except Exception as error:  # the report says it
        found["error"] = f"{type(error).__name__}: {error}"
    finally:
        host.terminate()
        found["log"] = host.communicate(timeout=10)[1].decode(errors="replace")[-400:]
    print(json.dumps(found))


main()
