"""A common generator of OpenAPI clients, in its own virtual environment, for the test of the client that it generates from slurmrestd's document.

It is not part of the project's environment, because only this test needs it, and the generated client needs an HTTP library that the
project does not use.
"""

from pathlib import Path

from local import pinned


def find() -> Path | None:
    """Return the Python with which `-m openapi_python_client` runs; None if it is not installed."""
    return pinned.find("openapi")


def build() -> Path:
    """Return that Python, and install the generator if it is missing."""
    return pinned.build("openapi")


if __name__ == "__main__":
    print(build())
