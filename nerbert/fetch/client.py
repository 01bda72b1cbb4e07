"""Asks servers for files: again as long as they may answer later, and only hosts that we know."""

from __future__ import annotations

import logging
import socket
import ssl
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from typing import Any
from urllib.parse import urljoin, urlsplit

import requests
import urllib3

from nerbert import __version__
from nerbert.errors import RunError, UserError
from nerbert.fetch.wanted import hosts

TRIES = 6
"""How often a file is asked for, as long as nothing new comes."""
BLOCK = 1 << 18
MOST_TEXT = 64 << 20
"""Bytes of a list of files; the one of the largest wiki has 3 MB."""

_PASSING = {408, 425, 429, 500, 502, 503, 504}
"""Answers that say: try again later."""
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 300.0
_TIMEOUT_S = (15.0, 60.0)  # to connect, and between two pieces
_MOST_REDIRECTS = 5
_CUTS = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)
_LEAST_BYTES = 1024
"""If a try brings fewer new bytes, it counts as a failed one."""
SLOW_S, SLOW_BYTES = 120.0, 1 << 16
"""A connection that brings fewer bytes in this time (seconds) is given up."""
_LOGGER = logging.getLogger("nerbert")

CONNECTION_ERRORS = (
    requests.ConnectionError,
    requests.Timeout,
    requests.exceptions.ChunkedEncodingError,
    urllib3.exceptions.HTTPError,
)


class Client:
    """Asks servers for files."""

    def __init__(self, pause: Callable[[float], object] | None = None) -> None:
        """Takes the function that waits between two tries; None for one that Ctrl-C ends."""
        self._stop = threading.Event()
        self._pause = pause or self._stop.wait
        self._session = requests.Session()
        self._session.headers["User-Agent"] = f"nerbert/{__version__} (named-entity corpora)"
        self._session.headers["Accept-Encoding"] = "identity"  # else the size is another one

    def text(self, url: str) -> str:
        """Reads a small page.

        Raises:
            UserError: there is no such page.
            RunError: the server does not answer, or sends more than MOST_TEXT bytes.
        """
        body: bytes = self.ask(url, lambda answer: _body(url, answer))
        return body.decode("utf-8", "replace")

    def size(self, url: str) -> int | None:
        """Size of a file in bytes, None if the server does not say.

        Raises:
            UserError: there is no such file.
            RunError: the server does not answer.
        """
        length: int | None = self.ask(url, lambda answer: _number(answer, "Content-Length"))
        return length

    def ask(
        self,
        url: str,
        use: Callable[[requests.Response], Any],
        headers: Callable[[], Mapping[str, str]] = dict,
        reached: Callable[[], int] = int,
    ) -> Any:
        """Asks for a file, and again with growing pauses as long as the server may answer later.

        Args:
            url: its address.
            use: takes the answer. What it returns is returned. If the connection is cut while it
                reads, it is called again.
            headers: gives the headers of each request.
            reached: gives the farthest byte that has come so far. As long as it grows, the server
                is asked again.

        Raises:
            UserError: there is no such file.
            RunError: the server does not answer.
        """
        pause, tries_left, before = _FIRST_PAUSE_S, TRIES, 0
        while True:
            wait = 0.0
            try:
                with closing(self._get(url, headers())) as answer:
                    status = answer.status_code
                    if status == requests.codes.requested_range_not_satisfiable:
                        return None  # all bytes are there
                    if status not in _PASSING:
                        _check_status(url, answer)
                        return use(answer)
                    reason, wait = f"{status} {answer.reason}", _number(answer, "Retry-After") or 0
            except CONNECTION_ERRORS as error:
                reason = _why(error)
                causes = _causes(error)
                # A cut connection is an EOF; other TLS errors would only repeat.
                if any(isinstance(c, ssl.SSLError) and not isinstance(c, _CUTS) for c in causes):
                    raise UserError(f"{url}: {reason}; check the address, or --mirror") from None
                if any(isinstance(cause, socket.gaierror) for cause in causes) and not reached():
                    raise RunError(f"{url}: {reason}; is there a network?") from None
            except requests.RequestException as error:
                raise UserError(f"{url}: {_why(error)}; check the address") from None
            if reached() >= before + _LEAST_BYTES:
                pause, tries_left, before = _FIRST_PAUSE_S, TRIES, reached()
            tries_left -= 1
            if not tries_left:
                raise RunError(f"{url}: {reason}; {TRIES} tries; run the same command again later")
            wait = min(max(pause, wait), _LONGEST_PAUSE_S)
            _LOGGER.info("%s: %s; retrying in %g s", url, reason, wait)
            self._pause(wait)
            self.check_stop()
            pause *= 2

    def _get(self, url: str, headers: Mapping[str, str]) -> requests.Response:
        """Sends a request, and follows redirects to hosts that we know."""
        place, session = url, self._session
        for _ in range(_MOST_REDIRECTS):
            request = session.prepare_request(requests.Request("GET", place, headers=headers))
            settings = session.merge_environment_settings(place, {}, True, None, None)
            # `session.get` reads the whole body of a redirect, and any address that it names.
            answer = session.get_adapter(place).send(request, timeout=_TIMEOUT_S, **settings)
            if not answer.is_redirect:
                return answer
            answer.close()
            place = _redirected(url, place, answer.headers["Location"])
        raise UserError(f"{url}: more than {_MOST_REDIRECTS} redirects; check the address")

    def stop(self) -> None:
        """Ends the pauses and the downloads of all threads."""
        self._stop.set()

    def check_stop(self) -> None:
        """Ends a thread if another one failed, or after Ctrl-C."""
        if self._stop.is_set():
            raise KeyboardInterrupt

    def restart(self) -> None:
        """Allows requests after `stop`."""
        self._stop.clear()


def _redirected(url: str, place: str, location: str) -> str:
    """Where a redirect leads.

    Raises:
        UserError: to a host that is neither that of `url` nor in our table.
    """
    try:
        following = urljoin(place, location)
        parts, old = urlsplit(following), urlsplit(place)
    except ValueError:
        raise UserError(f"{url}: redirects to a broken address; check --mirror") from None
    is_safe = parts.scheme == "https" or (parts.scheme == old.scheme == "http")
    if not is_safe or parts.hostname not in {urlsplit(url).hostname, *hosts()}:
        target = parts.hostname if is_safe else f"{parts.scheme}://{parts.hostname}"
        raise UserError(f"{url}: redirects to {target!r}, which is no known host; check --mirror")
    return following


def blocks(answer: requests.Response) -> Iterator[bytes]:
    """The bytes of an answer as they come.

    Raises:
        requests.Timeout: they come so slowly that the file would take days.
        urllib3.exceptions.HTTPError: the connection is cut.
    """
    begun, got = time.monotonic(), 0
    # read1 gives what came before a cut; iter_content would lose up to a block of it.
    while block := answer.raw.read1(BLOCK):
        yield block
        got += len(block)
        if time.monotonic() - begun > SLOW_S:
            if got < SLOW_BYTES:
                raise requests.Timeout(f"{got:,} bytes in {SLOW_S:g} s")
            begun, got = time.monotonic(), 0


def _body(url: str, answer: requests.Response) -> bytes:
    """The whole content of an answer.

    Raises:
        RunError: it has more than MOST_TEXT bytes, or an encoding that was not asked for.
    """
    data = bytearray()
    for block in blocks(answer):
        data += block
        if len(data) > MOST_TEXT:
            break
    encoding = answer.headers.get("Content-Encoding", "identity").lower()
    if encoding in ("gzip", "x-gzip"):
        try:
            data = bytearray(zlib.decompressobj(31).decompress(data, MOST_TEXT + 1))
        except zlib.error as error:
            raise RunError(f"{url}: damaged ({error}); try again later") from None
    elif encoding != "identity":
        raise RunError(f"{url}: sent as {encoding[:20]!r}, which we did not ask for")
    if len(data) > MOST_TEXT:
        raise RunError(
            f"{url}: more than {MOST_TEXT:,} bytes, which is no list of files; check --mirror"
        )
    return bytes(data)


def _check_status(url: str, answer: requests.Response) -> None:
    if answer.status_code in (requests.codes.not_found, requests.codes.gone):
        raise UserError(f"{url}: no such file on the server; check name and date, or --mirror")
    if not answer.ok:
        raise UserError(f"{url}: the server says {answer.status_code} {answer.reason}")


def _number(answer: requests.Response, header: str) -> int | None:
    """The number in a header; None if it is missing, or holds something else."""
    text = answer.headers.get(header, "").strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def _causes(error: BaseException) -> list[BaseException]:
    """An error and what caused it, the innermost last."""
    causes = [error]
    while (inner := causes[-1].__context__) is not None:
        causes.append(inner)
    return causes


def _why(error: Exception) -> str:
    """The innermost reason of an error of requests, without the address of objects."""
    inner = _causes(error)[-1]
    return str(inner).partition(">: ")[2] or str(inner) or type(inner).__name__
