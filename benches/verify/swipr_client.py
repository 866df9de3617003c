"""Talks to an agent's Unix socket: one request, one answer, with its trailers.

Python's http.client throws trailers away, and a recording's figures come as one;
that is why this reads the answer itself. Not here: what an answer means.
"""
import json
import socket
import struct
from dataclasses import dataclass, field


class Cut(Exception):
    """The answer ended before it was complete."""


@dataclass
class Answer:
    """An HTTP answer. Header and trailer names are in lower case."""
    status: int
    headers: dict
    body: bytes = b""
    trailers: dict = field(default_factory=dict)

    def stats(self):
        """The recording's figures as {name: number}, from header, trailer or neither."""
        text = self.trailers.get("x-swipr-stats") or self.headers.get("x-swipr-stats") or ""
        pairs = (word.split("=", 1) for word in text.split() if "=" in word)
        return {name: int(value) for name, value in pairs if value.isdigit()}

    def json(self):
        """The body as JSON."""
        return json.loads(self.body)


def connect(path, timeout=60.0):
    """A connected socket; `timeout` bounds each wait for bytes."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    # Not settimeout: a connect that does not block fails when many others are in the queue.
    bound = struct.pack("@ll", int(timeout), 0)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, bound)
    try:
        connection.connect(str(path))
    except OSError:
        connection.close()
        raise
    connection.settimeout(timeout)
    return connection


def ask(path, target, method="GET", body=None, timeout=60.0, headers=()):
    """Sends one request and reads the whole answer."""
    payload = body.encode() if isinstance(body, str) else body
    lines = [f"{method} {target} HTTP/1.1", "Host: swipr", "Connection: close", *headers]
    if payload is not None:
        lines.append(f"Content-Length: {len(payload)}")
    head = "\r\n".join(lines) + "\r\n\r\n"
    with connect(path, timeout) as connection:
        try:
            connection.sendall(head.encode() + (payload or b""))
        except (BrokenPipeError, ConnectionResetError):
            pass  # refused before the body was read: the answer may be there all the same
        return read_answer(connection)


def read_answer(connection):
    """Reads one answer from a connected socket."""
    with connection.makefile("rb") as stream:
        start = stream.readline()
        words = start.split(None, 2)
        if len(words) < 2 or not words[0].startswith(b"HTTP/1."):
            raise Cut(f"no status line but {start[:60]!r}")
        answer = Answer(int(words[1]), read_fields(stream))
        if answer.headers.get("transfer-encoding") == "chunked":
            read_chunks(stream, answer)
        elif "content-length" in answer.headers:
            length = int(answer.headers["content-length"])
            answer.body = stream.read(length)
            if len(answer.body) < length:
                raise Cut(f"{len(answer.body)} of {length} bytes")
        else:
            answer.body = stream.read()
        return answer


def read_chunks(stream, answer):
    """Reads a chunked body and its trailers."""
    parts = []
    while True:
        size = stream.readline()
        if not size.endswith(b"\n"):
            raise Cut(f"the last chunk is missing after {sum(map(len, parts))} bytes")
        count = int(size.split(b";")[0], 16)
        if count == 0:
            break
        part = stream.read(count)
        if len(part) < count or stream.readline() != b"\r\n":
            raise Cut("inside a chunk")
        parts.append(part)
    answer.body = b"".join(parts)
    answer.trailers = read_fields(stream)


def read_fields(stream):
    """Reads `name: value` lines up to the empty one."""
    fields = {}
    while True:
        line = stream.readline()
        if not line.endswith(b"\n"):
            raise Cut("inside the head or the trailers")
        text = line.decode("latin-1").strip()
        if not text:
            return fields
        name, _, value = text.partition(":")
        fields[name.strip().lower()] = value.strip()
