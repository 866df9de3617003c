"""Stops at points whose stacks it tells: for each line of standard input, a thread goes down a
random path of functions and waits there; the program prints the path as Python itself sees it, and
that thread's id. The next line lets it continue."""
import _thread
import ctypes
import json
import os
import random
import sys
import threading

COMPARISON = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


def direct(path):
    return step(path)


def by_map(path):
    return list(map(step, [path]))


def by_key(path):
    return sorted([path], key=step)


def by_qsort(path):
    called = []

    def compare(a, b):
        if not called:
            called.append(1)
            step(path)
        return 0

    numbers = (ctypes.c_int * 2)(1, 2)
    ctypes.CDLL(None).qsort(numbers, 2, 4, COMPARISON(compare))


class Shape:
    def method(self, path):
        return step(path)

    def __len__(self):
        step(self.path)
        return 1


def by_method(path):
    return Shape().method(path)


def by_length(path):
    shape = Shape()
    shape.path = path
    return len(shape)


class Made:
    def __init__(self, path):
        if path is not None:
            step(path)


def by_constructor(path):
    return Made(path)


def by_generator(path):
    def inner():
        yield step(path)

    return list(inner())


def by_comprehension(path):
    return [step(path) for _ in range(1)]


def by_finally(path):
    try:
        raise ValueError
    except ValueError:
        return step(path)


def наоборот(path):
    return step(path)


WAYS = [direct, by_map, by_key, by_qsort, by_method, by_length, by_constructor, by_generator, by_comprehension, by_finally, наоборот]


def step(path):
    if not path:
        reached.release()
        go_on.acquire()
        return 0
    return path[0](path[1:])


def frames(frame):
    while frame:
        code = frame.f_code
        yield [getattr(code, "co_qualname", code.co_name), code.co_filename, frame.f_lineno]
        frame = frame.f_back


def begin(path):
    ids.append(int(os.path.basename(os.readlink("/proc/thread-self"))))
    step(path)


ids = []
# Written in C: they have no frames of their own.
reached, go_on = _thread.allocate_lock(), _thread.allocate_lock()
reached.acquire()
go_on.acquire()
random.seed(7)
# From 3.13 on, a constructor that is called often is called in another way.
for _ in range(1000):
    by_constructor(None)
print("ready", flush=True)
for _ in sys.stdin:
    path = [random.choice(WAYS) for _ in range(random.randrange(12))]
    thread = threading.Thread(target=begin, args=(path,))
    thread.start()
    reached.acquire()
    while True:
        seen = list(frames(sys._current_frames()[thread.ident]))
        if seen[0][2] == step.__code__.co_firstlineno + 3:
            break
    print("at", json.dumps([ids[-1], seen]), flush=True)
    if not sys.stdin.readline():
        go_on.release()
        break
    go_on.release()
    thread.join()
    print("gone", flush=True)
print("ok", flush=True)
