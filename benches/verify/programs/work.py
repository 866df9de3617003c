"""Threads of Python that burn (json, re, sorting) and sleep, until ended."""
import json
import re
import threading
import time
import zlib


def parse():
    text = json.dumps([{"name": f"n{i}", "values": list(range(20))} for i in range(200)])
    while True:
        json.loads(text)
        json.dumps(json.loads(text), indent=1)


def match():
    text = "the quick brown fox 2024-10-11 jumps over 17:33 lazy dogs " * 200
    while True:
        re.findall(r"(\d+)-(\d+)-(\d+)|(\w+)\s(?=\d)", text)


def order():
    while True:
        sorted((str(i * 7919 % 10007) for i in range(5000)), key=lambda text: (len(text), text[::-1]))


def squeeze():
    data = bytes(range(256)) * 4000
    while True:
        zlib.compress(data, 6)


def rest():
    while True:
        time.sleep(0.005)


for body in (parse, match, order, squeeze, rest, rest):
    threading.Thread(target=body, name=body.__name__, daemon=True).start()
threading.Event().wait()
