import sys, threading

ended = False

def spin():
    while not ended:
        for _ in range(1000):
            pass

# Not daemons: CPython itself may crash when it ends while they run.
threads = [threading.Thread(target=spin) for _ in range(3)]
for thread in threads:
    thread.start()
print("ready", flush=True)
sys.stdin.readline()
ended = True
for thread in threads:
    thread.join()
print("ok", flush=True)
