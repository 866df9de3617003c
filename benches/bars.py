"""The bars: what is promised of each figure, and whether it was measured so.

Figures come as lines `name<TAB>value<TAB>spread` from the programs in src/bin (src/bars.rs). Not here: how anything
is measured.
"""
from dataclasses import dataclass, field


@dataclass
class Bar:
    """A row: what it is, the figure's name, the limit in words, whether a value is within it, and peers beside it."""
    text: str
    name: str
    limit: str
    within: object
    peers: dict = field(default_factory=dict)
    digits: int = 2


def most(limit, unit=""):
    """At most so much."""
    return f"<= {limit}{unit}", lambda value: value <= limit


def least(limit, unit=""):
    """At least so much."""
    return f">= {limit}{unit}", lambda value: value >= limit


def held(part, frames, limit):
    """Held time against a bare signal."""
    peers = {"framehop": "framehop", "unw_backtrace": "libunwind `unw_backtrace`", "backtrace crate": "`backtrace` crate",
             "unw_step": "libunwind `unw_step`", "pprof-rs": "pprof-rs, its handler", "gperftools": "gperftools, its handler"}
    return Bar(f"held time / bare signal, {part}, {frames} frames", f"held {part} swipr {frames}", *most(limit),
               {label: f"held {part} {name} {frames}" for label, name in peers.items()})


def walk(way, limit):
    """Whole walks in real programs against ours: as a profiler has it, and again at the same sample."""
    return [Bar(f"whole walk in real programs, {way} / swipr, {text}", f"walk {when} {way}", *least(limit, "x"), digits=1)
            for when, text in (("first", "first at a sample"), ("warm", "walked again"))]


def overhead(kind, name, hz, limit):
    """CPU time of two busy threads with a recording against without."""
    peers = ["perf, stacks copied", "perf, frame pointers", "samply", "pprof-rs", "gperftools", "per-thread timers",
             "per-thread timers, set again"]
    labels = {"nobody (noise)": f"{name} nobody 0"} | {peer: f"{name} {peer} {hz}" for peer in peers}
    return Bar(f"overhead at {hz} Hz, 2 busy threads, {kind}", f"{name} swipr {hz}", *most(limit), labels, 4)


BARS = [
    held("p50", 35, 1.25),
    held("p50", 105, 1.5),
    held("p99", 35, 2),
    Bar("ns a frame, warm, 35 frames", "walk alone warm 35", *most(5), digits=1),
    Bar("ns a frame, first walk at a sample, real programs", "walk first ns a frame", *most(25), digits=1),
    *walk("`backtrace` crate", 15),
    *walk("`unw_step`", 40),
    *walk("`unw_backtrace`", 4),
    *walk("framehop", 2),
    Bar("waiting threads: time stolen, ns", "sweep stolen 5000", *most(0), digits=0),
    Bar("waiting threads: EINTR seen", "sweep eintr 5000", *most(0), digits=0),
    Bar("pass over 5000 waiting threads, first, ms", "sweep first 5000", *most(4),
        {"signal to all, p50": "signals p50 5000"}),
    Bar("pass over 5000 waiting threads, later ones, CPU ms", "sweep mean 5000", *most(1),
        {"signal to all, p50": "signals p50 5000"}),
    Bar("unwind table, bytes a row, largest", "table bytes a row", *most(5)),
    Bar("unwind table, ms a million rows, largest", "table ms a million rows", *most(60), digits=1),
    Bar("equal to libgcc as far as it goes, worst program, %", "agreement", *least(99.9), digits=3),
    Bar("complete stacks, worst program, %", "complete", *least(99.9), digits=3),
    Bar("handler's stack above the kernel's frame, bytes", "stack swipr 35 cold", *most(512),
        {"framehop": "stack framehop 35", "backtrace crate": "stack `backtrace` crate 35",
         "unw_step": "stack libunwind `unw_step` 35"}, 0),
    overhead("their own CPU", "overhead", 1000, 1.01),
    overhead("with the profiler's threads", "overhead with threads", 1000, 1.03),
    Bar("period error at 10 ms, 100 threads, %", "period error", "< 1", lambda value: value < 1, digits=3),
    Bar("idle: wake-ups a minute", "idle wake-ups", *most(0), digits=0),
    Bar("idle: private memory, KiB", "idle memory", *most(512), digits=0),
    Bar("start-up added to /bin/true, us, p50", "start-up libswipr.so preloaded", *most(1000),
        {"gperftools": "start-up gperftools preloaded", "gperftools, profiling": "start-up gperftools, profiling to a file"}, 0),
]


def read(path):
    """{name: (value, spread)} of a file of figures."""
    lines = path.read_text().splitlines() if path.exists() else []
    fields = (line.split("\t") for line in lines)
    return {name: (float(value), spread) for name, value, spread in fields}


def rows(figures):
    """[figure, bar, measured, spread, met, peers] for each bar; what was not measured says so."""
    return [row(bar, figures) for bar in BARS]


def row(bar, figures):
    """One row."""
    if bar.name not in figures:
        return [bar.text, bar.limit, "-", "", "not measured", ""]
    value, spread = figures[bar.name]
    beside = "; ".join(f"{label} {figures[name][0]:.{bar.digits}f}" for label, name in bar.peers.items() if name in figures)
    verdict = "met" if bar.within(value) else "**not met**"
    return [bar.text, bar.limit, f"{value:.{bar.digits}f}", spread, verdict, beside]
