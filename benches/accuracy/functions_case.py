"""The case `functions`: the share of each function of one program, mode by mode and profiler by profiler.

The program (programs/functions.c) knows the CPU time of two functions and of the rest, by thread. Not here: how the
profilers record, and which load or quota is around them.
"""
import itertools
import math
import subprocess
import sys
from collections import Counter
from pathlib import Path

import profilers
import tables

HERE = Path(__file__).resolve().parent
MODES = ["call-20us", "call-50us", "call-100us", "call-1ms", "burst-50us", "burst-300us", "burst-1ms", "burst-3ms",
         "burst-20ms", "mixed", "crowd", "timer-10ms-0.5ms", "timer-10ms-2ms", "timer-10ms-3ms", "timer-20ms-0.5ms",
         "timer-20ms-2ms", "timer-20ms-3ms", "thread-2ms", "thread-6ms", "thread-20ms", "pool-5ms",
         "deadlines"]
PARTS = ["parse", "render", "rest"]
UNSEEN = "[not sampled"
#: Per thread, in the program's answers: the parts and its CPU clock.
SLOTS = 4
#: Of an error, that chance allows: standard deviations (1 in 1,000 is above), or so much anyway.
DEVIATIONS, MIN_DEVIATION = 3.3, 0.01
#: Samples a second that every kernel's tick gives.
TICKS = 100
#: Of a loop in step: this much of its time shown as not sampled is an answer.
SHOWN = 0.8
COLUMNS = ["mode", "profiler", "samples", "parse: true/recorded", "render", "rest", "furthest from the truth",
           "not sampled", "CPU: true/recorded", ""]


def part_of(functions):
    """What a stack represents."""
    if any(name.startswith(UNSEEN) for name in functions):
        return UNSEEN
    return next((part for part in PARTS if any(name.startswith(part) for name in functions)), "rest")


def by_part(counter, threads):
    """A Counter by part, of the stacks of these threads."""
    parts = Counter()
    for (thread, functions), value in counter.items():
        if thread in threads:
            parts[part_of(functions)] += value
    return parts


def allowed(share, count):
    """By how much the share of so many samples may be off; where hardly one is expected, one may be there."""
    return max(MIN_DEVIATION, DEVIATIONS * math.sqrt(share * (1 - share) / count) + 1 / count) if count else MIN_DEVIATION


def beside_allowed(error):
    """How large an error is, beside what is allowed."""
    return abs(error[0]) / error[1]


class Comparison:
    """Some threads' recorded time against what they did: `truth` as the program says it, of these threads together."""

    def __init__(self, found, samples, truth, threads):
        weights, counts = by_part(found, threads), by_part(samples, threads)
        self.count = counts.total() - counts[UNSEEN]
        self.whole, self.true_whole = weights.total(), truth[-1]
        self.unseen = weights[UNSEEN] / self.whole if self.whole else 0.0
        seen = self.whole - weights[UNSEEN]
        self.shares = [weights[part] / seen if seen else 0.0 for part in PARTS]
        self.true = [value / sum(truth[:-1]) for value in truth[:-1]]
        self.errors = [(share - right, allowed(right, self.count)) for share, right in zip(self.shares, self.true)]

    def furthest(self):
        """The share whose error is largest beside what is allowed: error, allowed, part."""
        return max(((*error, part) for error, part in zip(self.errors, PARTS)), key=beside_allowed)

    def misses(self, hz, exact):
        """What is off; `exact`: CPU time is read from clocks, not counted. Less than half of the samples that were to
        be had are too few."""
        due = self.true_whole / 1e9 * min(hz, TICKS)
        chance = DEVIATIONS / math.sqrt(max(due, 1))
        of_whole = MIN_DEVIATION if exact else max(MIN_DEVIATION, chance)
        found = ["samples"] if self.count < due / 2 and due >= 10 else []
        found += [part for (error, most), part in zip(self.errors, PARTS) if abs(error) > most and self.count]
        found += ["not sampled"] if self.unseen > max(MIN_DEVIATION, chance) else []
        return found + (["CPU"] if abs(self.whole / self.true_whole - 1) > of_whole else [])


def row_of(mode, name, result, hz):
    """One row, and whether it is as it should be."""
    found, samples, truth = result
    slots = [truth[at:at + SLOTS] for at in range(0, len(truth), SLOTS)]
    each = {f"worker-{number}": known for number, known in enumerate(slots) if known[-1]}
    whole = Comparison(found, samples, [sum(values) for values in zip(*each.values())], [*each, "?"])
    compared = {"": whole}
    if len(each) > 1 and any(thread in each for thread, _ in found):
        compared |= {f", {thread}": Comparison(found, samples, known, [thread]) for thread, known in each.items()}
    misses = [miss + thread for thread, one in compared.items() for miss in one.misses(hz, name == "swipr")]
    error, most, part = max((one.furthest() for one in compared.values()), key=beside_allowed)
    shown = mode.startswith("timer") and whole.unseen > SHOWN and "CPU" not in misses
    good = not misses or shown
    pairs = [f"{right * 100:.1f} / {share * 100:.1f} %" for right, share in zip(whole.true, whole.shares)]
    far = f"{part} {error * 100:+.1f} % (allowed {most * 100:.1f})" if whole.count else "-"
    said = ("met" if good else "MISSED") if name == "swipr" else ("as true" if good else "off")
    more = [f"{len(misses) - 4} more"] if len(misses) > 4 else []
    why = ": shown as not sampled" if misses and shown else f": {'; '.join(misses[:4] + more)}" if misses else ""
    return [mode, name, whole.count, *pairs, far, f"{whole.unseen * 100:.1f} %",
            f"{whole.true_whole / 1e9:.3f} / {whole.whole / 1e9:.3f} s", said + why], good


def show(folder, options, enter):
    """Runs the case and prints its table, its rows on stderr as they come; whether swipr meets its bars."""
    binary = folder / "functions"
    source = HERE / "programs" / "functions.c"
    subprocess.run(["gcc", "-O2", "-g", "-fno-inline-functions", "-pthread", source, "-o", binary], check=True)
    rows, every = [], True
    for mode, name in itertools.product(options.mode or MODES, options.profiler or profilers.PROFILERS):
        start = profilers.Start(binary, folder, (mode,), enter)
        more = {"source": options.source} if name == "swipr" else {}
        try:
            result = profilers.PROFILERS[name](start, options.seconds, options.hz, "cpu", **more)
        except profilers.Ended as ended:
            rows.append([mode, name, str(ended), *["-"] * (len(COLUMNS) - 4), "MISSED" if name == "swipr" else "off"])
            every = every and name != "swipr"
            continue
        if result is not None:
            row, good = row_of(mode, name, result, options.hz)
            rows.append(row)
            print(" | ".join(map(str, row)), file=sys.stderr, flush=True)
            every = every and (good or name != "swipr")
    tables.show(COLUMNS, rows)
    return every
