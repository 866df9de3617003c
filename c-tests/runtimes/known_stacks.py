"""A program of which every possible stack is known: families f_K -> g_K -> h_K, each in a file of
its own, `family_K.py`. The first argument says how they call each other:

plain      directly
callbacks  through C functions that call back: map() and sorted()
deep       f_K at the end of a recursion of 40 r_K
churn      each family is compiled, used, and dropped again
exceptions h_K raises, f_K catches
generators g_K is a generator that f_K runs
"""
import sys
import threading
import time

FAMILIES = 48
HOW = sys.argv[1]
CALLS = {
    "plain": ("return g_K(n) + 1\n", "return h_K(n) + 1", "return t"),
    "callbacks": ("return max(map(g_K, (n, n + 1)))\n", "return sorted((n, n + 1), key=h_K)[0]", "return t"),
    "exceptions": ("try: return g_K(n)\n  except KeyError: return 0", "return h_K(n) + 1", "raise KeyError(t)"),
    "generators": ("return sum(g_K(n))\n", "yield h_K(n)", "return t"),
}
SOURCE = """
def r_K(n):
  return r_K(n - 1) if n else f_K(3)

def f_K(n):
  n += 1
  F

def g_K(n):
  n *= 2
  G

def h_K(n):
  t = 0
  for i in range(40):
    t = (t * 31 + i) & 0xffff
  H
"""


def family(k):
    f, g, h = CALLS.get(HOW, CALLS["plain"])
    text = SOURCE.replace("F\n", f + "\n").replace("G\n", g + "\n").replace("H\n", h + "\n")
    names = {}
    exec(compile(text.replace("_K", f"_{k}"), f"family_{k}.py", "exec"), names)
    return names[f"{'r' if HOW == 'deep' else 'f'}_{k}"]


def run():
    known = [family(k) for k in range(FAMILIES)]
    while not ended.is_set():
        for k in range(FAMILIES):
            function = family(k) if HOW == "churn" else known[k]
            function(40)


def wait():
    sys.stdin.read()
    ended.set()


ended = threading.Event()
threading.Thread(target=wait, daemon=True).start()
print("ready", flush=True)
run()
print("ok", flush=True)
