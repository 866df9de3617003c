"""What is in a raw recording: threads, states, complete stacks, names, and checks of the
walk that do not believe the agent.

The checks read the object files from disk: a return address must follow a call
instruction, and a blocked thread's pc must follow a system call instruction. Not here:
how a recording is made.
"""
import json
import re
import struct
from collections import Counter, defaultdict
from functools import lru_cache

#: Outermost functions of complete stacks, without a leading underscore or `__GI_`.
ROOTS = {"start", "clone3", "clone", "start_thread", "thread_start", "dl_start_user"}


class Recording:
    """A raw recording in memory."""

    def __init__(self, body):
        self.modules, self.threads, self.stacks, self.samples = {}, {}, {}, []
        self.header, self.end = {}, None
        #: Of functions without a name: their module and where they begin in it.
        self.nameless = re.compile(r"\+0x[0-9a-f]+$")
        for line in body.decode().splitlines():
            record = json.loads(line)
            kind = record["type"]
            if kind == "sample":
                self.samples.append(record)
            elif kind in ("module", "thread", "stack"):
                getattr(self, kind + "s")[record["id"]] = record
            elif kind == "header":
                self.header = record
            elif kind == "end":
                self.end = record
        # CPU time since a thread's last sample, at its end or the recording's: no stack, and it says so.
        self.rests = [sample for sample in self.samples if self.remarks(sample["stack"]) == ["[not sampled]"]]
        self.samples = [sample for sample in self.samples if self.remarks(sample["stack"]) != ["[not sampled]"]]
        self.weights = Counter(sample["stack"] for sample in self.samples)

    def frames(self, stack):
        """A stack's frames that are code, leaf first."""
        return [frame for frame in self.stacks[stack]["frames"] if frame.get("kind") != "note"]

    def remarks(self, stack):
        """A stack's remarks."""
        notes = (frame for frame in self.stacks[stack]["frames"] if frame.get("kind") == "note")
        return [note["functions"][0]["name"] for note in notes]

    def functions(self, frame):
        """A frame's functions that have a name."""
        return [each for each in frame.get("functions", []) if not self.nameless.search(each["name"])]

    def place(self, frame):
        """(path, offset in the file) of a frame."""
        module = self.modules.get(frame.get("module"))
        address = int(frame["address"], 16)
        if module is None:
            return "[no module]", address
        offset = file_offset(module["path"], address - int(module["base"], 16))
        if offset is None:
            offset = address - int(module["start"], 16) + int(module["file_offset"], 16)
        return module["path"], offset

    def describe(self, frame):
        """A frame for people: module+offset and the function."""
        path, offset = self.place(frame)
        names = [function["name"] for function in self.functions(frame)]
        return f"{path.rsplit('/', 1)[-1]}+{offset:#x} {names[-1] if names else '?'}"

    def stop_of(self, stack):
        """Why a stack is not complete; None if it is."""
        for remark in self.remarks(stack):
            if remark.startswith("[truncated"):
                return remark
        frames = self.frames(stack)
        if not frames:
            return "no frames"
        functions = self.functions(frames[-1])
        name = functions[-1]["name"].removeprefix("__GI_").lstrip("_") if functions else "?"
        if name in ROOTS or not functions and is_entry(*self.place(frames[-1])):
            return None
        return "complete, it says, but its outermost frame is no root"

    def complete(self):
        """The share of samples whose stack reaches a root."""
        good = sum(count for stack, count in self.weights.items() if self.stop_of(stack) is None)
        return good / len(self.samples) if self.samples else 0.0

    def incomplete(self):
        """{(reason, outermost frame): (samples, an example stack)}."""
        found = defaultdict(lambda: [0, None])
        for stack, count in self.weights.items():
            reason = self.stop_of(stack)
            if reason:
                frames = self.frames(stack)
                last = self.describe(frames[-1]) if frames else "-"
                entry = found[(reason, last)]
                entry[0] += count
                entry[1] = stack
        return found

    def named(self):
        """(share of frames with a name, {module: unnamed}, {module: frames}, {place: unnamed})."""
        unnamed, total, places = Counter(), Counter(), Counter()
        for stack, count in self.weights.items():
            for frame in self.frames(stack):
                path = self.place(frame)[0]
                total[path] += count
                if not self.functions(frame):
                    unnamed[path] += count
                    places[self.describe(frame)] += count
        every = sum(total.values())
        return (1 - sum(unnamed.values()) / every if every else 0.0), unnamed, total, places

    def states(self):
        """Samples by state."""
        return Counter(sample["state"] for sample in self.samples)

    def contradictions(self):
        """(frames checked, {what is wrong: samples}) by the machine code on disk."""
        checked, wrong = 0, Counter()
        # Without a system call it is blocked in a page fault, which any instruction may take.
        blocked = Counter(sample["stack"] for sample in self.samples if "syscall" in sample)
        for stack, count in self.weights.items():
            frames = self.frames(stack)
            elided = any("elided" in remark for remark in self.remarks(stack))
            for below, frame in zip(frames, frames[1:]):
                if elided or any(is_signal_return(*self.place(each)) for each in (below, frame)):
                    continue  # nobody called the code around a signal handler's return
                answer = follows(*self.place(frame), is_call)
                checked += answer is not None
                if answer is False:
                    wrong[f"no call before {self.describe(frame)}, called from it: {self.describe(below)}"] += count
            if frames and blocked[stack]:
                answer = follows(*self.place(frames[0]), is_system_call)
                checked += answer is not None
                if answer is False:
                    wrong[f"blocked, but no system call before {self.describe(frames[0])}"] += blocked[stack]
        return checked, wrong


@lru_cache(maxsize=None)
def is_signal_return(path, offset):
    """Whether a place is in the trampoline behind a signal handler: mov $15,%rax; syscall."""
    trampoline = b"\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05"
    return any(code_at(path, start, 9) == trampoline for start in (offset, max(offset - 7, 0)))


@lru_cache(maxsize=None)
def is_entry(path, offset):
    """Whether code is close behind the entry point of an ELF file: _start, where symbols are stripped."""
    header = code_at(path, 0, 64)
    if not header or header[:5] != b"\x7fELF\x02":
        return False
    entry = struct.unpack_from("<Q", header, 24)[0]
    return any(start <= entry < start + length and 0 <= offset - (entry - start + at) < 64
               for start, length, at in loaded(path))


@lru_cache(maxsize=None)
def loaded(path):
    """What an ELF file has in memory: (address, length, offset in the file) of each segment."""
    header = code_at(path, 0, 64)
    if not header or header[:5] != b"\x7fELF\x02":
        return []
    table = struct.unpack_from("<Q", header, 32)[0]
    size, count = struct.unpack_from("<HH", header, 54)
    segments = [struct.unpack_from("<IIQQQQ", code_at(path, table + number * size, 56)) for number in range(count)]
    return [(address, length, start) for kind, _, start, address, _, length in segments if kind == 1]


def file_offset(path, from_base):
    """Where in an ELF file the code is that was loaded so far behind its first segment; None if it is not in there.
    Segments may lie at different distances in the file and in memory."""
    segments = loaded(path)
    address = from_base + (segments[0][0] & ~0xFFF if segments else 0)
    return next((address - start + at for start, length, at in segments if start <= address < start + length), None)


def is_call(before):
    """Whether x86-64 code that ends here may end in a call instruction."""
    if len(before) >= 5 and before[-5] == 0xE8:
        return True
    for length in (2, 3, 4, 6, 7, 8):
        code = before[-length:]
        while code and 0x40 <= code[0] <= 0x4F or code and code[0] in (0x3E, 0x67, 0x66, 0x2E, 0x64):
            code = code[1:]
        if len(code) >= 2 and code[0] == 0xFF and (code[1] >> 3) & 7 in (2, 3):
            return True
    return False


def is_system_call(before):
    """Whether x86-64 code that ends here ends in `syscall`."""
    return before[-2:] == b"\x0f\x05"


@lru_cache(maxsize=None)
def follows(path, offset, what):
    """Whether the code in front of that place is `what`; None if it cannot be read."""
    before = code_at(path, max(offset - 8, 0), min(8, offset))
    return what(before) if before else None


def code_at(path, offset, length):
    """Bytes of a file; None if it cannot be read."""
    try:
        with open(path, "rb") as file:
            file.seek(offset)
            return file.read(length)
    except OSError:
        return None
