"""The log format of the operator and the exporter: one line of JSON for each event, and plain text at a terminal.

A collector reads the fields without a rule for this format (docs/howto/logs.md). A traceback is one string of its line; structlog's own choice would
draw it with the values of all local variables, keys among them, and take seconds for it.
"""

import sys

import structlog
from structlog.typing import Processor

_FIRST = ("time", "level", "message")


def configure() -> None:
    """Make each line of this process JSON on standard output, and text where a person looks on."""
    ends = _for_a_person() if sys.stdout.isatty() else _for_a_collector()
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.StackInfoRenderer(),
            structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
            *ends,
        ],
        cache_logger_on_first_use=False,
    )


def _for_a_person() -> list[Processor]:
    return [structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback, timestamp_key="time")]


def _for_a_collector() -> list[Processor]:
    return [
        structlog.processors.format_exc_info,
        structlog.processors.EventRenamer("message"),
        _ordered,
        structlog.processors.JSONRenderer(ensure_ascii=False),
    ]


def _ordered(_: object, __: str, said: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Time, level and message come first, because people read such lines too."""
    return {key: said[key] for key in _FIRST if key in said} | dict(said)
