import sys, threading

def spin():
    while True:
        for _ in range(1000):
            pass

for _ in range(3):
    threading.Thread(target=spin, daemon=True).start()
print("ready", flush=True)
sys.stdin.readline()
print("ok", flush=True)
