"""Language run-times that stop their threads with signals to collect garbage, or give them slices of time by a timer's signal."""
from hosts import need
from interpreters import reports
from place import PROGRAMS


def lisp(place):
    """Threads, interruptions, timers, the stack's end: SBCL."""
    return need("sbcl", "sbcl") and reports(place, ["sbcl", "--noinform", "--no-sysinit", "--no-userinit", "--disable-debugger", "--load", PROGRAMS / "collects.lisp", "--quit"])


def mono(place):
    """Threads, monitors, timers, exceptions from faults: Mono."""
    if not (need("mono", "mono-runtime") and need("mcs", "mono-mcs")):
        return None
    binary = place.folder / "Collects.exe"
    place.run(["mcs", f"-out:{binary}", PROGRAMS / "Collects.cs"])
    return reports(place, ["mono", binary])


def ruby(place):
    """Threads, fibers, signals, time-outs, pipes: Ruby."""
    return need("ruby", "ruby") and reports(place, ["ruby", PROGRAMS / "collects.rb"])


def guile(place):
    """Threads, asyncs, alarms: Guile."""
    return need("guile", "guile-3.0") and reports(place, ["guile", "--no-auto-compile", PROGRAMS / "collects.scm"])


def racket(place):
    """Green threads, futures, breaks: Racket."""
    return need("racket", "racket") and reports(place, ["racket", PROGRAMS / "collects.rkt"])


def haskell(place):
    """Threads, time-outs, asynchronous exceptions: GHC's run-time, with threads of the system and without."""
    if not need("ghc", "ghc"):
        return None
    found = {}
    for label, options in (("", ["-threaded", "-with-rtsopts=-N2"]), (" (one thread)", [])):
        binary = place.folder / f"collects{len(options)}"
        place.run(["ghc", "-O1", "-dynamic", *options, "-outputdir", place.folder, "-o", binary, PROGRAMS / "Collects.hs"])
        found |= {name + label: value for name, value in reports(place, [binary]).items()}
    return found


def ocaml(place):
    """Threads, alarms, the stack's end: OCaml."""
    if not need("ocamlfind", "ocaml-findlib"):
        return None
    binary = place.folder / "collects"
    source = place.folder / "collects.ml"
    source.write_text((PROGRAMS / "collects.ml").read_text())
    place.run(["ocamlfind", "ocamlopt", "-thread", "-package", "unix,threads.posix", "-linkpkg", source, "-o", binary])
    return reports(place, [binary])


def r(place):
    """A collector, sleeps, children in parallel, limits of time: R."""
    return need("Rscript", "r-base-core") and reports(place, ["Rscript", "--vanilla", PROGRAMS / "collects.R"])


def prolog(place):
    """Threads, messages, alarms: SWI-Prolog."""
    return need("swipl", "swi-prolog-nox") and reports(place, ["swipl", PROGRAMS / "collects.pl"])
