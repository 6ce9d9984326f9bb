"""What the operator's log looks like: one plain line for each thing that happened, a traceback where a pass crashed.

structlog's own choice would draw a traceback with the values of all local variables, keys among them, and take seconds for it.
"""

import sys

import structlog


def configure() -> None:
    """Make every line of this process plain text on standard output, in colour only where a person looks on."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.StackInfoRenderer(),
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.dev.ConsoleRenderer(
                colors=sys.stdout.isatty(), exception_formatter=structlog.dev.plain_traceback
            ),
        ],
        cache_logger_on_first_use=False,
    )
