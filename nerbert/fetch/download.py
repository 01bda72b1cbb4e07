"""Downloads files: whole, checked, and continued where an earlier download was cut."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests
import urllib3

from nerbert import __version__, files
from nerbert.errors import RunError, UserError
from nerbert.fetch.progress import Progress
from nerbert.fetch.wanted import Wanted

CONNECTIONS = 2
"""Downloads at a time. Wikimedia's server refuses more."""

TRIES = 6
"""How often a file is asked for, as long as nothing comes."""

_PASSING = {408, 425, 429, 500, 502, 503, 504}
"""Answers that say: try again later."""
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 300.0
_TIMEOUT_S = (15.0, 60.0)  # to connect, and between two pieces
_BLOCK = 1 << 18
_LOGGER = logging.getLogger("nerbert")


@dataclass(frozen=True)
class Fetched:
    """A file that is there now: what was downloaded of it, and how it was checked."""

    path: str
    bytes: int
    check: str


class Downloader:
    """Downloads files with at most two connections."""

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
            RunError: the server does not answer.
        """
        found: bytes = self._tried(url, lambda answer: answer.content)
        return found.decode("utf-8", "replace")

    def size(self, url: str) -> int | None:
        """Size of a file in bytes, None if the server does not say.

        Raises:
            UserError: there is no such file.
            RunError: the server does not answer.
        """

        def length(answer: requests.Response) -> int | None:
            told = answer.headers.get("Content-Length")
            return int(told) if told else None

        found: int | None = self._tried(url, length)
        return found

    def fetch(self, wanted: Sequence[Wanted]) -> list[Fetched]:
        """Downloads files. Those that are there already are only checked.

        Raises:
            UserError: a file is missing on the server, or another file is in its place.
            RunError: the server does not answer, or sends another file than was published.
        """
        self._stop.clear()
        with (
            Progress(sum(file.size or 0 for file in wanted), len(wanted)) as progress,
            ThreadPoolExecutor(CONNECTIONS) as pool,
        ):
            waiting = [pool.submit(self._fetch, file, progress) for file in wanted]
            try:
                return [future.result() for future in waiting]
            except BaseException:
                self._stop.set()
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _fetch(self, file: Wanted, progress: Progress) -> Fetched:
        if os.path.exists(file.path):
            check = file.check(file.path)
            if check is None:
                raise UserError(
                    f"{file.path}: not the published file ({file.published}); move it away, or "
                    "choose another --output"
                )
            progress.add(file.path, os.path.getsize(file.path))
            progress.done(file.path, f"there already, {check}")
            return Fetched(file.path, 0, check)
        Path(file.path).parent.mkdir(parents=True, exist_ok=True)
        got = 0
        for last in (False, True):
            got += self._download(file, progress)
            check = file.check(file.partial)
            if check is not None:
                break
            for path in (file.partial, file.facts):
                Path(path).unlink(missing_ok=True)
            if last:
                raise RunError(
                    f"{file.url}: twice another file than was published ({file.published}); "
                    "try again later, or give another --mirror"
                )
            _LOGGER.warning("%s: %s differs; once more", file.url, file.published)
            progress.add(file.path, -(file.size or 0))
        os.replace(file.partial, file.path)
        Path(file.facts).unlink(missing_ok=True)
        progress.done(file.path, str(check))
        return Fetched(file.path, got, str(check))

    def _download(self, file: Wanted, progress: Progress) -> int:
        """Downloads the missing bytes of a file to its partial file; returns their number."""
        partial = file.partial
        got = 0
        kept = files.read_json_or_none(file.facts) or {}
        if kept.get("url") != file.url:
            Path(partial).unlink(missing_ok=True)
        start = os.path.getsize(partial) if os.path.exists(partial) else 0
        progress.add(file.path, start)

        def receive(answer: requests.Response) -> None:
            nonlocal got
            mode = "wb"
            if answer.status_code == requests.codes.partial:
                there = os.path.getsize(partial)
                if not answer.headers.get("Content-Range", "").startswith(f"bytes {there}-"):
                    Path(partial).unlink()
                    progress.add(file.path, -there)
                    raise requests.ConnectionError("the server sent another range")
                mode = "ab"
            facts = {"url": file.url, "etag": answer.headers.get("ETag")}
            files.write_json(file.facts, facts)
            if mode == "wb" and os.path.exists(partial):
                progress.add(file.path, -os.path.getsize(partial))
            with open(partial, mode) as output:
                # read1 gives what came before a cut; iter_content would lose up to a block of it.
                while block := answer.raw.read1(_BLOCK):
                    output.write(block)
                    got += len(block)
                    progress.add(file.path, len(block))
                    self._check_stop()

        def headers() -> dict[str, str]:
            size = os.path.getsize(partial) if os.path.exists(partial) else 0
            etag = (files.read_json_or_none(file.facts) or {}).get("etag")
            if not size or not (etag or file.digest):
                return {}  # without either nobody could tell whether the rest fits
            return {"Range": f"bytes={size}-"} | ({"If-Range": etag} if etag else {})

        if file.size is None or start < file.size:
            self._tried(file.url, receive, headers, lambda: got)
        return got

    def _tried(
        self,
        url: str,
        use: Callable[[requests.Response], Any],
        headers: Callable[[], dict[str, str]] = dict,
        received: Callable[[], int] = int,
    ) -> Any:
        """Asks for a file, and again with growing pauses as long as the server may answer later.

        Args:
            url: its address.
            use: takes the answer. What it returns is returned. If the connection is cut while it
                reads, it is called again.
            headers: gives the headers of each request.
            received: gives the number of bytes that have come so far.
        """
        pause, left, before = _FIRST_PAUSE_S, TRIES, 0
        while True:
            wait = 0.0
            try:
                with self._session.get(
                    url, headers=headers(), stream=True, timeout=_TIMEOUT_S
                ) as answer:
                    status = answer.status_code
                    if status == requests.codes.requested_range_not_satisfiable:
                        return None  # all bytes are there
                    if status not in _PASSING:
                        _check_status(url, answer)
                        return use(answer)
                    reason, wait = f"{status} {answer.reason}", _retry_after(answer)
            except (
                requests.ConnectionError,
                requests.Timeout,
                requests.exceptions.ChunkedEncodingError,
                urllib3.exceptions.HTTPError,
            ) as error:
                reason = _why(error)
            except requests.RequestException as error:
                raise UserError(f"{url}: {_why(error)}; check the address") from None
            if received() > before:
                pause, left, before = _FIRST_PAUSE_S, TRIES, received()
            left -= 1
            if not left:
                raise RunError(f"{url}: {reason}; {TRIES} tries; run the same command again later")
            wait = min(max(pause, wait), _LONGEST_PAUSE_S)
            _LOGGER.info("%s: %s; once more in %g s", url, reason, wait)
            self._pause(wait)
            self._check_stop()
            pause *= 2

    def _check_stop(self) -> None:
        """Ends a thread if another one failed, or after Ctrl-C."""
        if self._stop.is_set():
            raise KeyboardInterrupt


def _check_status(url: str, answer: requests.Response) -> None:
    if answer.status_code in (requests.codes.not_found, requests.codes.gone):
        raise UserError(f"{url}: no such file on the server; check name and date, or --mirror")
    if not answer.ok:
        raise UserError(f"{url}: the server says {answer.status_code} {answer.reason}")


def _retry_after(answer: requests.Response) -> float:
    told = answer.headers.get("Retry-After", "")
    return float(told) if told.isdigit() else 0.0


def _why(error: Exception) -> str:
    """The innermost reason of an error of requests, without the address of objects."""
    inner: BaseException = error
    while inner.__context__ is not None:
        inner = inner.__context__
    return str(inner).partition(">: ")[2] or str(inner) or type(inner).__name__
