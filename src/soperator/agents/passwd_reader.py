"""Reads the jail's passwd and group often, at low cost, and without waiting for a jail that hangs.

A process in uninterruptible sleep on a dead mount cannot be killed, but it can be left behind. So a child process reads the files: it lives as long
as it answers, and a child that misses the deadline is replaced at the next request. It opens both files at each request, because an NFS client asks
its server again only when a file is opened (nfs(5), close-to-open). It reads them when their inode, size or times have changed, and from time to time
in any case.
"""

import os
import select
import signal
import struct
import time
from contextlib import suppress
from pathlib import Path

MAX_BYTES = 8 << 20
FILES = ("passwd", "group")
WHOLE_READ_EVERY = 40
_SAME, _NOTHING, _CONTENT = b"=", b"!", b"+"
_LENGTHS = struct.Struct("<II")

Answer = tuple[bytes, bytes]


class PasswdReader:
    """Requests both files of one jail from a child process."""

    def __init__(self, jail: Path, deadline: float) -> None:
        self.jail, self.deadline = jail, deadline
        self._child = 0
        self._ask = self._hear = -1
        self._last: Answer | None = None

    def read(self) -> Answer | None:
        """Return both files, or None if they could not be read before the deadline."""
        if not self._child:
            self._start()
        end = time.monotonic() + self.deadline
        with suppress(BrokenPipeError):
            os.write(self._ask, b"?")
        kind = self._take(1, end)
        if kind == _NOTHING:
            return None
        if kind == _CONTENT:
            sizes = _LENGTHS.unpack(self._take(_LENGTHS.size, end).ljust(_LENGTHS.size, b"\0"))
            content = self._take(sum(sizes), end)
            if len(content) == sum(sizes):
                self._last = content[: sizes[0]], content[sizes[0] :]
                return self._last
        if kind == _SAME:
            return self._last
        self.close()
        return None

    def close(self) -> None:
        """End the use of the child, whether it responds or not."""
        if self._child:
            os.close(self._ask)
            os.close(self._hear)
            os.kill(self._child, signal.SIGKILL)
            self._child, self._last = 0, None
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass

    def _start(self) -> None:
        asked, self._ask = os.pipe()
        self._hear, answer = os.pipe()
        self._child = os.fork()
        if self._child == 0:
            with suppress(BaseException):
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                os.close(self._ask)
                os.close(self._hear)
                _serve(self.jail, asked, answer)
            os._exit(0)
        os.close(asked)
        os.close(answer)

    def _take(self, size: int, end: float) -> bytes:
        """Return the given number of bytes, or fewer if the deadline passes or the child ends."""
        taken = bytearray()
        while len(taken) < size:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self._hear], [], [], left)[0]:
                break
            piece = os.read(self._hear, min(size - len(taken), 1 << 16))
            if not piece:
                break
            taken += piece
        return bytes(taken)


def _serve(jail: Path, asked: int, answer: int) -> None:
    """The child process: answers each byte from the parent with one message, until the parent ends."""
    known: object = None
    count = 0
    while os.read(asked, 1):
        try:
            state, content = _read_changed(jail, known if count % WHOLE_READ_EVERY else None)
        except OSError:
            known = None
            os.write(answer, _NOTHING)
            continue
        if content is None:
            os.write(answer, _SAME)
        else:
            _write(answer, _CONTENT + _LENGTHS.pack(*map(len, content)) + b"".join(content))
        known = state
        count += 1


def _read_changed(jail: Path, known: object) -> tuple[object, list[bytes] | None]:
    """Return both files, or None if they are unchanged. The paths are opened without following a link out of the jail's etc."""
    etc = os.open(jail / "etc", os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    opened: list[int] = []
    try:
        for name in FILES:
            opened.append(os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=etc))
        stats = [os.fstat(each) for each in opened]
        state = [(each.st_ino, each.st_size, each.st_mtime_ns, each.st_ctime_ns) for each in stats]
        return state, None if state == known else [_content(each) for each in opened]
    finally:
        for each in (etc, *opened):
            os.close(each)


def _content(descriptor: int) -> bytes:
    """Return the file's bytes, at most one more than the limit; that byte shows that the file is too large."""
    pieces, left = [], MAX_BYTES + 1
    while left and (piece := os.read(descriptor, min(left, 1 << 20))):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


def _write(descriptor: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]
