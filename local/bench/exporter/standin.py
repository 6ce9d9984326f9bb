"""A fake slurmrestd that generates its responses while it sends them: `python -m local.bench.exporter.standin NODES JOBS` prints its port.

It sends the first record of each recorded response (tests/unit/agents/exporter/answers) many times under other names, padded to the size of
a real record. It has as many users, accounts and partitions as a large site.
"""

import json
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from local.paths import REPOSITORY

ANSWERS = REPOSITORY / "tests/unit/agents/exporter/answers"
#: Bytes of a record of slurmrestd 24.11, measured on a job with GPUs and on a node with two features.
SIZE = {"jobs": 13_600, "nodes": 2_400}
_NUMBER, _USER, _ACCOUNT, _PARTITION = "900000001", "user-00001", "account-001", "partition-01"


def record(what: str) -> str:
    """Return one record as text with placeholders for the names."""
    found = json.loads((ANSWERS / f"{what}.json").read_text())[what][-1 if what == "nodes" else 0]
    if what == "jobs":
        found |= {"job_id": int(_NUMBER), "user_name": _USER, "account": _ACCOUNT, "partition": _PARTITION}
    else:
        found |= {"name": f"node-{_NUMBER}", "partitions": [_PARTITION]}
    number = 0
    while len(text := _pretty(found)) < SIZE[what]:
        found[f"further_{number}"] = {"set": True, "infinite": False, "number": 0}
        number += 1
    return text


def pieces(what: str, count: int) -> Iterator[bytes]:
    """Yield a response with `count` records, in chunks."""
    answer = json.loads((ANSWERS / f"{what}.json").read_text())
    one = record(what)
    yield f'{{\n  "{what}": [\n'.encode()
    for number in range(count):
        text = one.replace(_NUMBER, f"{900_000_000 + number}").replace(_USER, f"user-{number % 700:05}")
        text = text.replace(_ACCOUNT, f"account-{number % 90:03}").replace(_PARTITION, f"partition-{number % 12:02}")
        if what == "jobs" and number % 3:
            text = text.replace('"RUNNING"', '"PENDING"')
        yield f"{text}{',' if number + 1 < count else ''}\n".encode()
    rest = _pretty({key: value for key, value in answer.items() if key != what})
    yield f"  ],\n{rest.strip().removeprefix('{')}".encode()


def _pretty(value: object) -> str:
    return "\n".join(f"    {line}" for line in json.dumps(value, indent=2).splitlines())


def serve(counts: dict[str, int]) -> ThreadingHTTPServer:
    """Start the server on its own port."""
    sizes = {what: sum(map(len, pieces(what, count))) for what, count in counts.items()}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            what = self.path.partition("?")[0].rstrip("/").rpartition("/")[2]
            whole = b"" if what in counts else (ANSWERS / f"{what}.json").read_bytes()
            self.send_response(200)
            self.send_header("Content-Length", str(sizes[what] if what in counts else len(whole)))
            self.end_headers()
            for piece in pieces(what, counts[what]) if what in counts else (whole,):
                self.wfile.write(piece)

        def log_message(self, *_: object) -> None:
            """Suppress the log line of a request."""

    return ThreadingHTTPServer(("127.0.0.1", 0), Handler)


if __name__ == "__main__":
    made = serve({"nodes": int(sys.argv[1]), "jobs": int(sys.argv[2])})
    print(made.server_address[1], flush=True)
    made.serve_forever()
