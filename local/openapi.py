"""A stock generator of clients for OpenAPI documents, in a virtual environment of its own, for the test of the client that it makes of slurmrestd's.

It is no part of our own environment: nothing else needs it, and what it makes needs its HTTP client, which is not ours.
"""

from pathlib import Path

from local import pinned


def find() -> Path | None:
    """The Python with which `-m openapi_python_client` runs; None where it was not installed."""
    return pinned.find("openapi")


def build() -> Path:
    """Have it: installed now if it is not there."""
    return pinned.build("openapi")


if __name__ == "__main__":
    print(build())
