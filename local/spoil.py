"""A proxy before a port of a pod that delays answers, or answers with an error: simulates an unhealthy service.

It runs in the pod's network namespace: nftables redirects connections from outside to it, and it forwards requests to the same port on
loopback. Existing connections are reset, so that a client cannot continue to use one. At its end it restores everything.
"""

import http.client
import signal
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TABLE = "soperator-spoil"
OFFSET = 1000


def rules(port: int) -> str:
    """Return the nft table that redirects connections for `port` to the proxy."""
    return (
        f"table ip {TABLE} {{\n"
        "  chain before {\n"
        "    type nat hook prerouting priority dstnat;\n"
        f'    iifname != "lo" tcp dport {port} redirect to :{port + OFFSET}\n'
        "  }\n"
        "  chain established {\n"
        "    type filter hook input priority filter;\n"
        f'    iifname != "lo" tcp dport {port} reject with tcp reset\n'
        "  }\n"
        "}\n"
    )


def handler(port: int, delay: float, status: int) -> type[BaseHTTPRequestHandler]:
    """Return the handler that waits `delay` seconds, and then answers with `status`, or forwards the request if `status` is 0."""

    class Spoiler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_request(self, *_: object) -> None:
            """Suppress the log line of a request."""

        def spoil(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            time.sleep(delay)
            code, kind, answer = (status, "text/plain", b"spoiled on purpose\n") if status else self.forward(body)
            self.send_response(code)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def forward(self, body: bytes) -> tuple[int, str, bytes]:
            upstream = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            try:
                upstream.request(self.command, self.path, body, dict(self.headers.items()))
                answer = upstream.getresponse()
                return answer.status, answer.headers.get("Content-Type", ""), answer.read()
            finally:
                upstream.close()

        do_GET = do_POST = do_DELETE = spoil  # noqa: N815

    return Spoiler


def main(port: int, delay: float, status: int) -> None:
    """Run the proxy until a signal ends it."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    server = ThreadingHTTPServer(("", port + OFFSET), handler(port, delay, status))
    server.daemon_threads = True
    subprocess.run(["nft", "-f", "-"], input=rules(port), text=True, check=True)
    try:
        print(f"port {port} answers {f'with {status}' if status else ''} after {delay:g} s", flush=True)
        server.serve_forever()
    finally:
        subprocess.run(["nft", "delete", "table", "ip", TABLE], check=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]))
