import sys, threading

ended = threading.Event()

def spin():
    while not ended.is_set():
        sorted(range(100), key=lambda number: -number)

def deep(calls):
    deep(calls - 1) if calls else spin()

def renamed():
    threading.current_thread().name = "later"
    ended.wait()

class Own(threading.Thread):
    def __init__(self, number):
        # Other attributes, of other types, before and behind the name.
        self.url = "http://example"
        super().__init__(name="own жук")
        for at in range(number):
            setattr(self, f"a{at}", at)

    def run(self):
        ended.wait()

def rename_all():
    number = 0
    while not ended.is_set():
        number += 1
        for letter, thread in zip("ABCDEF", threads):
            thread.name = letter * (number % 60 + 1)
            # Names stay for longer than it takes to read one.
            for _ in range(1000):
                pass

class Other(threading.Thread):
    def _bootstrap(self):
        # The program calls this thread so, and not by the name of what the variable is now.
        self, other = threads[0], self
        threading.Thread._bootstrap(other)

threads = [
    threading.Thread(target=spin, name="spins"),
    threading.Thread(target=deep, args=(300,), name="deep"),
    threading.Thread(target=ended.wait, name="waits", daemon=True),
    threading.Thread(target=renamed),
    Own(0),
    Own(60),
    Other(target=ended.wait, name="other"),
]
if "renames" in sys.argv:
    # Their texts take turns in the same memory.
    threads = [threading.Thread(target=ended.wait, name=letter) for letter in "ABCDEF"]
    threads.append(threading.Thread(target=rename_all))
for thread in threads:
    thread.start()
print("ready", flush=True)
sys.stdin.readline()
ended.set()
for thread in threads:
    thread.join()
print("ok", flush=True)
