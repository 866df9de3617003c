import json, sys, time
now = lambda: time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID)
def work(n):
    t = 0
    for i in range(n): t = (t * 31 + i) & 0xffff
    return t
def a(): return work(2000)
def b(): return work(4000)
def c(): return work(10000)
used, rounds, end = {"a": 0, "b": 0, "c": 0}, 0, time.perf_counter() + float(sys.argv[1])
while time.perf_counter() < end:
    for f in (a, b, c):
        t = now(); f(); used[f.__name__] += now() - t
    rounds += 1
print(json.dumps([used, rounds, time.process_time()]))
