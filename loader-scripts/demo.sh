#!/bin/sh
# One command on a fresh machine with Rust and a C compiler: builds swipr and a small
# program, profiles the program for some seconds through its socket, and shows where
# its threads were.
#
#     loader-scripts/demo.sh [SECONDS]
#
# SWIPR_LIBRARY names a library that is built already.

set -eu

seconds=${1:-5}
case $seconds in
    '' | *[!0-9]* | 0) echo "usage: demo.sh [SECONDS]" >&2; exit 2 ;;
esac

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
top=$(CDPATH='' cd -- "$here/.." && pwd -P)
target=${CARGO_TARGET_DIR:-$top/target}
case $target in /*) ;; *) target=$(pwd -P)/$target ;; esac
case $(uname -s) in
    Darwin) name=libswipr.dylib ;;
    *) name=libswipr.so ;;
esac

library=${SWIPR_LIBRARY:-}
cargo=cargo
[ -z "$library" ] || cargo=
for tool in $cargo "${CC:-cc}" curl awk; do
    command -v "$tool" >/dev/null 2>&1 || {
        echo "demo.sh: there is no $tool: install it and try again" >&2
        exit 1
    }
done

work=$(mktemp -d "${TMPDIR:-/tmp}/swipr-demo.XXXXXX")
program=
# The files stay; the program does not.
trap 'if [ -n "$program" ]; then kill "$program" 2>/dev/null || true; fi; rm -f "$work/demo.sock"' EXIT
trap 'exit 130' INT TERM

echo "Building ${cargo:+the agent and }a program to profile ..."
if [ -z "$library" ]; then
    library=$target/release/$name
    (cd "$top" && cargo build --quiet --release -p libswipr)
fi
"${CC:-cc}" -std=gnu11 -O2 -g "$top/examples-c/mini_demo.c" -o "$work/mini_demo" -pthread -ldl

"$here/swipr-preload.sh" --lib "$library" --socket "$work/demo.sock" -- \
    "$work/mini_demo" --burn-cpu --blocking --threads 4 --iterations 1000000 &
program=$!

tries=0
until curl --silent --fail --output /dev/null --unix-socket "$work/demo.sock" http://localhost/health; do
    tries=$((tries + 1))
    if [ "$tries" -ge 100 ] || ! kill -0 "$program" 2>/dev/null; then
        echo "demo.sh: the program's socket $work/demo.sock does not answer (SWIPR_LOG=1 says more)" >&2
        exit 1
    fi
    sleep 0.1
done

record() {
    curl --silent --show-error --fail --unix-socket "$work/demo.sock" --output "$work/$2" \
        "http://localhost/profile?seconds=$seconds&hz=100&mode=wall&format=$1"
}
echo "Profiling process $program for $seconds s ..."
record perf profile.perf &
perf=$!
record folded profile.folded
wait "$perf"

# A folded line is `thread;outermost;...;innermost count`; behind the innermost function of a thread that does not run
# stands what it waits for, in brackets.
awk '
    {
        count = $NF
        line = substr($0, 1, length($0) - length($NF) - 1)
        depth = split(line, frame, ";")
        state = "running"
        if (frame[depth] ~ /^\[(blocked|waiting for)/) {
            state = substr(frame[depth], 2, length(frame[depth]) - 2)
            depth--
        }
        leaf = sprintf("%-32s  %-26s", frame[depth], state)
        self[leaf] += count
        all += count
        if (!((leaf, frame[1]) in seen)) {
            seen[leaf, frame[1]] = 1
            threads[leaf] = threads[leaf] (threads[leaf] == "" ? "" : ", ") frame[1]
        }
    }
    END {
        if (all == 0) { print "no samples" > "/dev/stderr"; exit 1 }
        for (leaf in self)
            printf "%6.1f%%  %s  %s\n", 100 * self[leaf] / all, leaf, threads[leaf]
    }
' "$work/profile.folded" >"$work/hottest.txt"

echo
echo "  share  function (self time)              doing                       threads"
sort -rn "$work/hottest.txt" | head -n 12
echo
echo "perf script text (profiler.firefox.com, speedscope.app): $work/profile.perf"
echo "folded stacks (flame graph tools):                       $work/profile.folded"
