"""Cycles with finalizers, weak references, generators and compiled functions, collected all the time in three threads, until stdin ends."""
import gc
import sys
import threading
import weakref

EXPECTED = (190, 190, 1225, 4950)


class Node:
    def __init__(self, n, log):
        self.n, self.log, self.me = n, log, self

    def __del__(self):
        self.log.append(self.n)


def work(k):
    dropped, seen, space = [], [], {}
    nodes = [Node(n, dropped) for n in range(20)]
    watched = [weakref.ref(node, lambda _, n=node.n: seen.append(n)) for node in nodes]
    exec(compile(f"def made_{k}(n): return sum(i for i in range(n))", f"made_{k}.py", "exec"), space)
    made = space[f"made_{k}"](50)
    del nodes
    generation = k % 3
    while len(dropped) < len(watched):  # another thread may be collecting
        gc.collect(generation)
        generation = 2
    return sum(dropped), sum(seen), made, sum(sorted(range(100), key=lambda n: -n))


def descend(depth, k):
    return descend(depth - 1, k) if depth else work(k)


def run():
    k = 0
    while not ended.is_set():
        if descend(k % 30, k) != EXPECTED:
            wrong.append(k)
        k += 1


ended, wrong = threading.Event(), []
gc.set_threshold(20, 2, 2)
threads = [threading.Thread(target=run) for _ in range(3)]
print("ready", flush=True)
for thread in threads:
    thread.start()
sys.stdin.read()
ended.set()
for thread in threads:
    thread.join()
print("ok" if not wrong else f"wrong in {wrong[:5]}")
