"""The operator as it is, to which every Service of the cluster is at one address: `python -m local.bench.scale.operator`.

It asks no proxy about slurmrestd, so the names of Services are answered here, in place of a cluster's DNS: each is at the address in
SOPERATOR_BENCH_TOWN, on the port that the operator asks for.
"""

import os
import socket
from collections.abc import Callable
from typing import Any

from soperator.cli.__main__ import main

SUFFIX = ".svc"


def answering(address: str, real: Callable[..., Any]) -> Callable[..., Any]:
    """Return a getaddrinfo that knows every Service at the address, and asks the real one for other names."""

    def found(host: Any, *rest: Any, **more: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        return real(address if name and name.endswith(SUFFIX) else host, *rest, **more)

    return found


if __name__ == "__main__":
    socket.getaddrinfo = answering(os.environ["SOPERATOR_BENCH_TOWN"], socket.getaddrinfo)
    main()
