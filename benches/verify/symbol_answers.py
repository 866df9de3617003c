"""Answers of symbolizers in addr2line's form, and in which ways two of them differ.

Not here: which symbolizers are asked, and for which addresses.
"""
import os.path
import re
import subprocess
from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass

#: Differences that are not errors, and why.
EXPLAINED = {
    "another name of the function": "several symbols have the address; we take the one that people write",
    "a longer name of the same": "the symbol tells clones and parts (`.part.0`, `.cold`, `.constprop.1`) or a "
                                 "version apart, or is the linker's for what DWARF names plainly",
    "they know nothing": "no answer, or no name, from the other program",
    "behind the end of a function": "padding: the other program gives it to a function that has ended, or to a line",
    "a stub of the PLT": "we name it by the function that it jumps to",
    "alone among the others": "another of the programs says what we say",
    "a label within the function": "the table has another symbol inside of the function that covers the address, and the "
                                   "other program takes the nearest one before it",
    "another spelling of the path": "the same file, its directories put together in another way",
}


@dataclass(frozen=True)
class Frame:
    """One function at an address, innermost first in an answer."""
    name: str | None
    path: str | None
    line: int | None


def parse(text, questions, whole):
    """Answers to addresses, each a list of frames; unless `whole`, to the first of them, the last one cut off."""
    answers, lines = [], iter(text.splitlines())
    for line in lines:
        if re.fullmatch(r"0x[0-9a-f]+", line):
            if int(line, 16) != questions[len(answers)]:
                raise ValueError(f"{line} is not question {len(answers)}")
            answers.append([])
            continue
        name = re.sub(r" inlined at .* in .*$", "", line)
        path, number = split(next(lines, ""))
        answers[-1].append(Frame(None if name in ("??", "") else name, path, number))
    if whole and len(answers) != len(questions):
        raise ValueError(f"{len(answers)} answers to {len(questions)} questions")
    return [answer or [Frame(None, None, None)] for answer in answers[:None if whole else -1]]


def split(place):
    """('/a/b.c', 12) of `/a/b.c:12 (discriminator 3)` or `/a/b.c:12:5`; nothing is known of `??:0`."""
    found = re.match(r"(.*?):(\d+|\?)(?::\d+)?(?: \(discriminator \d+\))?$", place)
    # A file without a line is one of the symbol table's.
    if not found or found[1] in ("??", "") or found[2] in ("?", "0"):
        return None, None
    return os.path.normpath(found[1]), int(found[2])


def code_ranges(file):
    """The sections of code, as (start, end)."""
    text = subprocess.run(["readelf", "-WS", file], check=True, capture_output=True, text=True).stdout
    rows = re.findall(r"\] \S+ +PROGBITS +([0-9a-f]+) [0-9a-f]+ ([0-9a-f]+) \S+ +\w*X\w* ", text)
    return [(int(start, 16), int(start, 16) + int(size, 16)) for start, size in rows]


class Symbols:
    """The symbols of a file and of its debug file, as readelf has them."""

    def __init__(self, file):
        self.at, spans = defaultdict(set), []
        for each in [file, *debug_files(file)]:
            text = subprocess.run(["readelf", "-Ws", each], capture_output=True, text=True, errors="replace").stdout
            for start, size, kind, name in re.findall(
                    r"^ *\d+: ([0-9a-f]+) +(\d+|0x[0-9a-f]+) (FUNC|IFUNC|NOTYPE) +\w+ +\w+ +(?!UND)\S+ (\S+)", text, re.M):
                start, size, name = int(start, 16), int(size, 0), name.split("@")[0]
                self.at[start].add(name)
                if size:
                    spans.append((start, start + size))
        self.ends, highest = [], 0
        for start, end in sorted(spans):
            highest = max(highest, end)
            self.ends.append((start, highest))
        self.addresses = defaultdict(set)
        for start, names in self.at.items():
            for name in names:
                self.addresses[name].add(start)

    def are_one(self, one, other):
        """Whether both are names of the same function."""
        return bool(self.addresses.get(one, set()) & self.addresses.get(other, set()))

    def is_within(self, inner, outer, address):
        """Whether `inner` begins inside of `outer`, before the address."""
        starts = self.addresses.get(outer, set())
        return any(start < at <= address for start in starts for at in self.addresses.get(inner, set()))

    def is_padding(self, address):
        """Whether no symbol's size covers an address."""
        at = bisect_right(self.ends, (address, float("inf")))
        return at == 0 or self.ends[at - 1][1] <= address

    @staticmethod
    def is_nameless(name):
        """Whether that is no name, or only says where a function without one begins."""
        return name is None or bool(re.search(r"\+0x[0-9a-f]+$", name))


def debug_files(file):
    """The separate debug file by build id, if it is there."""
    text = subprocess.run(["readelf", "-n", file], capture_output=True, text=True).stdout
    found = re.search(r"Build ID: ([0-9a-f]{2})([0-9a-f]+)", text)
    path = f"/usr/lib/debug/.build-id/{found[1]}/{found[2]}.debug" if found else ""
    return [path] if os.path.exists(path) else []


def classify(address, ours, theirs, others, symbols):
    """`alike`, or in which way two answers differ; `others` are those of further programs."""
    kind = difference(address, ours, theirs, symbols)
    if kind != "alike" and kind not in EXPLAINED:
        if any(difference(address, ours, other, symbols) in ("alike", *BY_NAME) for other in others):
            return "alone among the others"
    return kind


#: Differences that are one of names only.
BY_NAME = ("another name of the function", "a longer name of the same", "a label within the function",
           "another spelling of the path")


def difference(address, ours, theirs, symbols):
    """`alike`, or in which way two answers differ."""
    known = [frame for frame in theirs if frame.name or frame.line]
    if symbols.is_nameless(ours[-1].name):
        ours = [Frame(None, ours[0].path, ours[0].line)] if len(ours) == 1 else ours
    if ours == theirs:
        return "alike"
    if not known or all(frame.name is None for frame in theirs) and not theirs[0].line:
        return "alike" if ours[0].name is None and ours[0].line is None else "they know nothing"
    if all(frame.name is None and frame.line is None for frame in ours):
        return "behind the end of a function" if symbols.is_padding(address) else "we know nothing"
    if (ours[0].name or "").endswith("@plt"):
        return "a stub of the PLT"
    if len(ours) != len(theirs):
        return "another depth"
    if [frame.line for frame in ours] != [frame.line for frame in theirs]:
        return "another line" if all(frame.line for frame in theirs) else "they lack a line"
    kind = "alike"
    for one, other in zip(ours, theirs):
        if one.path != other.path:
            same = one.path and other.path and os.path.basename(one.path) == os.path.basename(other.path)
            if not same:
                return "another file"
            kind = "another spelling of the path"
    for one, other in zip(ours, theirs):
        if one.name == other.name:
            continue
        if one.name is None or other.name is None:
            return "they know nothing" if other.name is None else "we know no name"
        if symbols.are_one(one.name, other.name):
            kind = "another name of the function"
        elif symbols.is_within(other.name, one.name, address):
            kind = "a label within the function"
        elif is_longer(one.name, other.name) or is_longer(other.name, one.name):
            kind = "a longer name of the same"
        else:
            return "another name"
    return kind


def is_longer(one, other):
    """Whether a linker's name is of the plain name `other`."""
    return one.startswith(other + ".") or one.split("@")[0] == other or (
        one.startswith(("_Z", "_R")) and re.search(rf"(?<![a-zA-Z]){len(other)}{re.escape(other)}", one) is not None)
