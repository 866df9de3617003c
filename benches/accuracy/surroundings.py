"""What is around a recorded program: other work for the CPUs, and a quota of CPU time.

Both last as long as their `with` block. Not here: what is recorded.
"""
import contextlib
import importlib.machinery
import importlib.util
import subprocess
import sys
from pathlib import Path

QUOTAS = Path(__file__).resolve().parent.parent / "verify" / "cpu-quota"
#: Ends by itself when the process that started it is gone.
LOOP = "import os\nparent = os.getppid()\nwhile os.getppid() == parent:\n    for _ in range(100000): pass"


@contextlib.contextmanager
def busy_loops(number):
    """So many processes that compute."""
    loops = [subprocess.Popen([sys.executable, "-c", LOOP]) for _ in range(number)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


@contextlib.contextmanager
def quota(percent):
    """Gives what a child calls to have so much of one CPU, or None for as much as there is. OSError where the
    cgroup cannot be made."""
    if percent is None:
        yield None
        return
    loader = importlib.machinery.SourceFileLoader("cpu_quota", str(QUOTAS))
    cpu_quota = importlib.util.module_from_spec(importlib.util.spec_from_loader("cpu_quota", loader))
    loader.exec_module(cpu_quota)
    with cpu_quota.Quota(percent / 100) as group:
        yield group.enter
