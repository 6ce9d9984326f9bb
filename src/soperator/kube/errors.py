"""Errors of the API server and of the connection, as types on which a caller can act.

Kubernetes answers with a Status whose code, reason and causes determine the next step: wait, relist or report to the user. An expired resourceVersion
arrives in two forms, as HTTP status 410 and as an ERROR event inside a watch; both become `Expired`, so that no caller can forget one of them. Errors
of the transport become `Unreachable`, so that nothing above this package depends on the HTTP library.
"""

# ruff: noqa: N818  (an error is named for what happened: `except NotFound` reads as a sentence)

from dataclasses import dataclass
from typing import Any

import msgspec


class KubeError(Exception):
    """The base of every error that this package raises."""


class Unreachable(KubeError):
    """The request got no answer: refused, cut off or timed out."""


class Malformed(KubeError):
    """The answer violates the API's contract."""


class Idle(KubeError):
    """A watch was silent for longer than a healthy one can be."""


class Eof(KubeError):
    """A watch ended normally, and can be resumed where it ended."""


@dataclass(frozen=True, slots=True)
class Cause:
    """One field that the API server refused, and why."""

    field: str
    message: str


class ApiError(KubeError):
    """The API server answered with an error; `retry_after` is in seconds, if the server sent it."""

    def __init__(self, status: int, reason: str, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after = retry_after
        self.causes: tuple[Cause, ...] = ()

    def __str__(self) -> str:
        return f"{self.status} {self.reason}" + (f": {self.message}" if self.message else "")


class NotFound(ApiError):
    """404: no such object, or no such kind."""


class Conflict(ApiError):
    """409, or 422 for the uid: the object is another one, or newer, than the request assumed."""


class AlreadyExists(Conflict):
    """409 with the reason AlreadyExists: an object of this name exists already."""


class Expired(ApiError):
    """410: the resourceVersion or the continue token is older than what the server remembers."""


class Invalid(ApiError):
    """422: the object violates the schema or a rule; `causes` names the fields."""


class TooBusy(ApiError):
    """429 or 503: the server asks to come again later."""


class _Cause(msgspec.Struct):
    field: str = ""
    message: str = ""


class _Details(msgspec.Struct, rename="camel"):
    causes: list[_Cause] | None = None
    retry_after_seconds: float | None = None


class _Status(msgspec.Struct):
    code: int = 0
    reason: str = ""
    message: str = ""
    details: _Details | None = None


def _type_of(status: int, reason: str, causes: tuple[Cause, ...]) -> type[ApiError]:
    match status:
        case 422 if any(cause.field == "metadata.uid" for cause in causes):
            return Conflict
        case 404:
            return NotFound
        case 409:
            return AlreadyExists if reason == "AlreadyExists" else Conflict
        case 410:
            return Expired
        case 422:
            return Invalid
        case 429 | 503:
            return TooBusy
        case _:
            return Expired if reason in ("Expired", "Gone") else ApiError


def _seconds(header: str | None) -> float | None:
    try:
        return max(0.0, float(header)) if header else None
    except ValueError:
        return None


def error_of(code: int, body: bytes, retry_after: str | None = None) -> ApiError:
    """Convert an error response, or the object of an ERROR event (code 0), to the matching ApiError."""
    try:
        status = msgspec.json.decode(body, type=_Status)
    except msgspec.MsgspecError:
        status = _Status(message=body[:200].decode(errors="replace").strip())
    number = code or status.code
    details = status.details or _Details()
    wait = _seconds(retry_after)
    causes = tuple(Cause(cause.field, cause.message) for cause in details.causes or ())
    error = _type_of(number, status.reason, causes)(
        number, status.reason or "Unknown", status.message, details.retry_after_seconds if wait is None else wait
    )
    error.causes = causes
    return error


def explain(error: Exception, subject: str) -> str:
    """Return one line about what the API server refused in `subject`, field by field if it named fields."""
    causes: Any = getattr(error, "causes", ())
    if causes:
        fields = "; ".join(f"{cause.field}: {cause.message}" if cause.field else cause.message for cause in causes)
        return f"{subject} is refused: {fields}"
    return f"{subject}: {error}"
