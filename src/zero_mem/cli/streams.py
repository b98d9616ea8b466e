"""The standard streams: what can't be read or written ends in a code, not in a traceback."""

from __future__ import annotations

import codecs
import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO, NoReturn, TextIO, cast

from zero_mem.errors import InvalidInput, ZeroMemError


class OutputLost(ZeroMemError):
    """The result can't be written: a full disk, a closed stdout."""


class ReaderGone(OutputLost):
    """Nobody reads the pipe any more, as after `| head -1`; not worth a word."""


def say(text: str) -> None:
    """Write to stdout, now.

    Raises:
        OutputLost: It can't be written.
    """
    with reporting_loss():
        stream = _stdout()
        stream.write(text)
        stream.flush()


def say_bytes(data: bytes) -> None:
    """Write bytes to stdout as they are, now.

    Raises:
        OutputLost: They can't be written.
    """
    with reporting_loss():
        stream = _stdout()
        stream.flush()
        stream.buffer.write(data)
        stream.buffer.flush()


@contextmanager
def plain_lines() -> Iterator[TextIO]:
    """Give stdout as UTF-8, whatever the terminal's encoding is: JSON lines have no other.

    Raises:
        OutputLost: It can't be written.
    """
    with reporting_loss():
        stream = _stdout()
        stream.flush()
        yield cast(TextIO, codecs.getwriter("utf-8")(stream.buffer, "backslashreplace"))
        stream.buffer.flush()


def whisper(text: str) -> None:
    """Write a line to stderr, if anybody can hear it."""
    with suppress(OSError, AttributeError):
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


@contextmanager
def reporting_loss() -> Iterator[None]:
    """Let a fault in writing to stdout say what it is.

    Raises:
        OutputLost: The block could not write.
    """
    try:
        yield
    except OSError as error:
        _give_up(error)


def stdin() -> BinaryIO:
    """Give stdin as bytes.

    Raises:
        InvalidInput: It is closed.
    """
    if sys.stdin is None:
        raise InvalidInput("stdin is closed, so that - has nothing to read")
    return sys.stdin.buffer


def read_stdin() -> bytes:
    """Read stdin to its end.

    Raises:
        InvalidInput: It is closed, or can't be read.
    """
    try:
        return stdin().read()
    except OSError as error:
        raise InvalidInput(f"stdin can't be read: {error.strerror}") from error


def _stdout() -> TextIO:
    if sys.stdout is None:
        raise OutputLost("stdout is closed: the result has nowhere to go")
    return sys.stdout


def _give_up(error: OSError) -> NoReturn:
    # What is still buffered would fail again, noisily, when the interpreter ends.
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    if error.errno == errno.EPIPE:
        raise ReaderGone("nobody reads the pipe any more") from None
    where = error.filename or "stdout can't be written"
    raise OutputLost(f"{where}: {error.strerror}") from error
