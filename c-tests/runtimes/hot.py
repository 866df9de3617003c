import time


def leaf(rounds):
    total = 0
    for n in range(rounds):
        total = (total * 31 + n) & 0xFFFFFF
    return total


def hot(seconds):
    end = time.time() + seconds
    while time.time() < end:
        leaf(10000)


hot(0.3)
print("ready", flush=True)
hot(60)
