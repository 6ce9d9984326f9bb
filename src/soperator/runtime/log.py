"""The log format of the operator and the exporter: one line of JSON per event, and plain text at a terminal.

A collector reads the fields without a rule for this format (docs/howto/logs.md). A traceback is one string in its line; structlog's default would add
the values of all local variables, keys among them, and take seconds for it.
"""

import sys

import structlog
from structlog.typing import Processor

_FIRST = ("time", "level", "message")


def configure() -> None:
    """Write each log line of this process as JSON to standard output, or as text if that is a terminal."""
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
    """Put time, level and message first, because people read such lines too."""
    return {key: said[key] for key in _FIRST if key in said} | dict(said)
