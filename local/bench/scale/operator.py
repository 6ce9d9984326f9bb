"""Runs the unchanged operator, and resolves every Service of the cluster to one address: `python -m local.bench.scale.operator`.

This process resolves the names of Services itself in place of a cluster's DNS: each has the address in SOPERATOR_BENCH_SIMULATION, on the port
that the operator requests.
"""

import os
import socket
from collections.abc import Callable
from typing import Any

from soperator.cli.__main__ import main

SUFFIX = ".svc"


def answering(address: str, real: Callable[..., Any]) -> Callable[..., Any]:
    """Return a getaddrinfo that resolves every Service to the address, and passes other names to the real one."""

    def found(host: Any, *rest: Any, **more: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        return real(address if name and name.endswith(SUFFIX) else host, *rest, **more)

    return found


if __name__ == "__main__":
    socket.getaddrinfo = answering(os.environ["SOPERATOR_BENCH_SIMULATION"], socket.getaddrinfo)
    main()
