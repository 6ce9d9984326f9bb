"""An OpenTelemetry collector with the components that examples/logs/collector.yaml names, built from Go modules, for the tests of that configuration.

It is not part of the local cluster: its build takes three minutes of CPU time, and only those tests need it.
"""

import sys
from pathlib import Path

from local import goprogram
from local.progress import Failure

_PROGRAM = (Path(__file__).resolve().parent / "otel", "collector", "otelcol")


def find() -> Path | None:
    """Return the path of the collector; None if it is not built."""
    return goprogram.find(*_PROGRAM)


def build() -> Path:
    """Return the path of the collector, and build it if it is missing."""
    return goprogram.build(*_PROGRAM, "the first build takes three minutes of CPU time")


if __name__ == "__main__":
    try:
        print(build())
    except Failure as failure:
        sys.exit(str(failure))
