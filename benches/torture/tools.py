"""Programs whose output must be the same byte for byte, a browser, and stress-ng's own checks."""
import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path

from hosts import HERE as VERIFY
from hosts import need
from place import PROGRAMS

#: stressors of the classes scheduler, pipe, os, network, vm and signal that check what they do, change nothing
#: of the system and need no device.
STRESSORS = """affinity clone cyclic daemon exec exit-group fork hrtimers itimer kill mutex nanosleep poll pthread resched schedpolicy sem
    sem-sysv session sigabrt sigchld sigfd sigfpe sigio sigpending sigq sigrt sigsegv sigsuspend sigtrap sleep softlockup-no spawn switch
    timer timerfd vfork vforkmany-no wait yield zombie pipe pipeherd fifo splice tee vm-splice sendfile eventfd futex flock
    fcntl msg mq shm shm-sysv mmap mremap madvise malloc brk bigheap-no stack vm mprotect mlock sock sockfd sockmany sockpair udp
    epoll alarm dup env fault get getrandom inotify itimer io-uring-no lease locka lockf lockofd memfd mincore open
    procfs-no pidfd prctl-no rseq userfaultfd-no vm-rw context longjmp setjmp-no funccall tsc dentry dir link rename
    seek hdd-no copy-file fiemap fstat getdent chdir chmod""".split()


def compiler(place):
    """gcc and g++ on large files: the object files byte for byte."""
    if not (need("gcc", "gcc") and need("g++", "g++")):
        return None
    source = place.folder / "large.cpp"
    source.write_bytes(place.run([sys.executable, VERIFY / "programs" / "large.py"]).stdout)
    jobs = {"large.cpp": ["g++", "-std=c++17", "-O1", "-g", "-frandom-seed=1", "-gno-record-gcc-switches",
                          f"-ffile-prefix-map={place.folder}=.", "-c", source]}
    amalgamation = next(iter(sorted(Path.home().glob(".cargo/registry/src/*/libsqlite3-sys-*/sqlite3/sqlite3.c"))), None)
    if amalgamation:
        jobs["sqlite3.c"] = ["gcc", "-O1", "-pipe", "-c", amalgamation]
    found = {}
    for name, command in jobs.items():
        output = place.folder / f"{name}.o"
        status = place.result([*command, "-o", output], 600)
        found[name] = [status, hashlib.sha256(output.read_bytes()).hexdigest() if output.exists() else "nothing"]
    return found


def chromium(place):
    """chromium draws a page headless: the picture byte for byte, as root without its sandbox, and as another user with it."""
    program = need("chromium", "chromium")
    if not program:
        return None
    page = place.folder / "page.html"
    page.write_text((PROGRAMS / "page.html").read_text())
    found = {}
    for label, options in (("", []), (" without a zygote", ["--no-zygote"])):
        picture = place.folder / f"picture{len(options)}.png"
        command = [program, "--headless=new", "--no-sandbox", *options, "--disable-gpu", "--hide-scrollbars", "--window-size=800,600", "--force-device-scale-factor=1",
                   "--virtual-time-budget=5000", f"--user-data-dir={place.folder}/user{len(options)}", f"--screenshot={picture}", f"file://{page}"]
        status, output = place.result(command, 120)
        found["exit" + label] = status
        data = picture.read_bytes() if picture.exists() else b""
        found["picture" + label] = hashlib.sha256(data).hexdigest() if data else "nothing"
        keep = os.environ.get("SWIPR_PICTURES")
        if keep and data:
            (Path(keep) / f"{place.how}{len(options)}.png").write_bytes(data)
        bad = [re.sub(r"^\[[^]]*\]", "", line) for line in output.splitlines() if re.search(r"FATAL|crash|signal \d|launch failed|exited unexpectedly", line)]
        found["complaints" + label] = sorted(set(bad))[:5]
        status, output = place.result([*command[:-2], "--dump-dom", command[-1]], 120)
        found["document" + label] = [status, re.findall(r'<p id="(\w+)">([^<]*)', output)]
    return found


def built(place, name, *flags):
    """One of this folder's programs, built in the place's folder."""
    binary = place.folder / name
    place.run(["gcc", "-O2", "-g", "-pthread", *flags, PROGRAMS / f"{name}.c", "-o", binary])
    return binary


def loads(place):
    """A shared object that is loaded and unloaded 100,000 times."""
    if not need("gcc", "gcc"):
        return None
    program, loaded = built(place, "loads"), built(place, "loaded", "-shared", "-fPIC")
    return {"loads": place.result([program, 100_000, loaded], 300)}


def threads(place):
    """5,000 threads that compute and sleep, for 20 seconds."""
    if not need("gcc", "gcc"):
        return None
    return {"threads": place.result([built(place, "threads"), 5000, 20], 120)}


def stress(place):
    """stress-ng's stressors one after the other, each for a second, with --verify."""
    program = need("stress-ng", "stress-ng")
    if not program:
        return None
    found = {}
    for name in STRESSORS:
        if name.endswith("-no"):
            continue
        status, output = place.result([program, f"--{name}", 2, "--timeout", "1s", "--verify", "--temp-path", place.folder], 60)
        found[name] = [status, sorted({re.sub(r"\[\d+\]|\d+", "N", line)[:120] for line in output.splitlines() if "fail" in line or "error" in line})[:4]]
    return found
