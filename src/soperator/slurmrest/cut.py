"""Reads a list of slurmrestd as a stream: it passes on each record when that is complete, and keeps none.

A job is 14 KB of JSON, so fifty thousand jobs are 700 MB, of which memory holds only one piece at a time. slurmrestd begins each record of a list
with the same field, written the same way, so the stream is cut there. The decoder verifies a cut, and if it is wrong tries the next one. Text of
users cannot contain such a beginning, because JSON escapes quotation marks inside a text.
"""

import re
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec

from soperator.slurmrest.errors import SlurmError

#: How many bytes of an answer are searched for the beginning of its list.
_HEAD = 1 << 20
#: The most bytes of a record, and of what follows the list. A job over 5,000 nodes of 128 cores names each core, in some 32 MB.
_LONGEST = 64 << 20
#: The most bytes of an answer that may be decoded without result. A correct answer has no beginning of a record within a record, and wastes none.
_IN_VAIN = 256 << 20

T = TypeVar("T")


class RecordParser(Generic[T]):
    """A parser that takes the bytes of an answer and passes on the records of its list `what`; raises SlurmError for any other answer."""

    def __init__(self, what: str, type_: type[T], take: Callable[[T], None]) -> None:
        self._what = what
        self._begin = re.compile(rb'"%s"\s*:\s*\[\s*(\{\s*"[^"\\]+"\s*:)' % what.encode())
        self._decoder = msgspec.json.Decoder(type_)
        self._take = take
        self._rest = bytearray()
        self._head = b""
        self._mark = b""
        self._seen = 0
        self._tried = 0
        self._in_vain = 0

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes, and pass on the records that they complete."""
        self._rest += chunk
        if not self._mark and not self._find():
            return
        begin, end = 0, self._next(max(1, self._seen))
        while end >= 0:
            if self._one(self._rest[begin:end].rstrip(b", \r\n\t")):
                begin = end
            end = self._next(end + 1)
        del self._rest[:begin]
        if len(self._rest) > _LONGEST:
            raise self._error(f"a record of the answer has more than {_LONGEST >> 20} MiB")
        self._seen = len(self._rest) - len(self._mark)

    def finish(self) -> dict[str, Any]:
        """Decode the last record, and return the rest of the answer besides the list."""
        whole = self._head + bytes(self._rest)
        try:
            said = decode(whole or b"{}", dict[str, Any])
            has_list = self._what in said
            for each in said.pop(self._what, None) or ():
                self._take(msgspec.convert(each, self._decoder.type, strict=False))
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            if whole.lstrip()[:1] != b"{":
                raise self._error("HTTP 200, but the answer is not a JSON object") from error
            raise self._error(f"the answer is invalid: {error}") from error
        if errors := said.get("errors"):
            raise self._error(first_error(errors) or "the answer reports a failure without a cause")
        if not has_list:
            raise self._error(f"the answer has no field {self._what}")
        return said

    def _find(self) -> bool:
        # Each time it is twice as much as before: an answer that comes byte by byte is not searched at each of them.
        if len(self._rest) < 2 * self._tried:
            return False
        self._tried = len(self._rest)
        found = self._begin.search(self._rest)
        if found is None:
            if len(self._rest) > _HEAD:
                raise self._error(f"the answer has no field {self._what}")
            return False
        self._mark, self._head = found[1], bytes(self._rest[: found.start(1)])
        del self._rest[: found.start(1)]
        return True

    def _next(self, since: int) -> int:
        return self._rest.find(self._mark, since)

    def _one(self, record: bytearray) -> bool:
        """Pass a record on, and return True; return False if the bytes are only a part of a record."""
        try:
            self._take(decode(record, self._decoder.type, self._decoder))
        except msgspec.ValidationError as error:
            raise self._error(f"the answer is invalid: {error}") from error
        except msgspec.DecodeError:
            self._in_vain += len(record)
            if self._in_vain > _IN_VAIN:
                raise self._error("the answer is invalid: the beginnings of its records cannot be found") from None
            return False
        return True

    def _error(self, why: str) -> SlurmError:
        return SlurmError(f"slurmrestd: GET {self._what}/: {why}")


def decode(text: bytes | bytearray, type_: type[T], decoder: msgspec.json.Decoder[T] | None = None) -> T:
    """Decode bytes; replace invalid UTF-8, which Slurm accepts from users, with U+FFFD."""
    decoder = decoder or msgspec.json.Decoder(type_)
    try:
        return decoder.decode(text)
    except RecursionError as error:
        raise msgspec.DecodeError("its JSON is nested too deeply") from error
    except (UnicodeDecodeError, msgspec.DecodeError) as error:
        plain = text.decode("utf-8", "replace").encode()
        if plain == text:
            if isinstance(error, msgspec.DecodeError):
                raise
            raise msgspec.DecodeError(str(error)) from error
        return decoder.decode(plain)


def first_error(errors: object) -> str:
    """Return the first of Slurm's own errors in an answer; empty if it has none."""
    found = errors if isinstance(errors, list) else []
    said = next((each for each in found if isinstance(each, dict)), {})
    return str(said.get("error") or said.get("description") or "")
