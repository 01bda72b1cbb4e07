"""Downloads files, whole, checked and continued; shows progress, and reports what was done."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests

from nerbert.errors import RunError, UserError
from nerbert.fetch.client import Client, blocks
from nerbert.fetch.wanted import Wanted, check_space, is_html
from nerbert.progress import Progress
from nerbert.storage.places import Place

CONNECTIONS = 2
"""Downloads at a time. Wikimedia's server refuses more."""
MOST_UNKNOWN = 1 << 30
"""Bytes of a file whose size nobody published."""
_LOGGER = logging.getLogger("nerbert")


@dataclass(frozen=True)
class Fetched:
    """A file that is there now: what was downloaded of it, and how it was checked."""

    path: Place
    bytes: int
    check: str


class Downloader:
    """Downloads files with at most two connections."""

    def __init__(self, pause: Callable[[float], object] | None = None) -> None:
        """Takes the function that waits between two tries; None for one that Ctrl-C ends."""
        self.client = Client(pause)

    def fetch(self, requests: Sequence[Wanted]) -> list[Fetched]:
        """Downloads files. Those that are there already are only checked.

        Raises:
            UserError: a file is missing on the server, or another file is in its place.
            RunError: the server does not answer, or sends another file than was published.
        """
        self.client.restart()
        size = sum(file.size or 0 for file in requests)
        with (
            Progress("fetch", size, "B", has_lines=False, unit_scale=True) as progress,
            ThreadPoolExecutor(CONNECTIONS) as pool,
        ):
            waiting = [pool.submit(self._fetch, file, progress) for file in requests]
            try:
                for number, future in enumerate(as_completed(waiting), 1):
                    path, check = future.result().path, future.result().check
                    progress.log(
                        f"{path.name}: {os.path.getsize(path):,} bytes, {check} "
                        f"({number} of {len(requests)} files)"
                    )
                return [future.result() for future in waiting]
            except BaseException:
                self.client.stop()
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _fetch(self, file: Wanted, progress: Progress) -> Fetched:
        if os.path.islink(file.path) and not os.path.exists(file.path):
            raise UserError(f"{file.path}: a link that leads nowhere; remove it")
        if os.path.exists(file.path):
            check = file.check(file.path)
            if check is None:
                raise UserError(
                    f"{file.path}: not the published file ({file.published}); move it away, or "
                    "choose another --output"
                )
            progress.add(os.path.getsize(file.path))
            return Fetched(file.path, 0, f"there already, {check}")
        Path(file.path).parent.mkdir(parents=True, exist_ok=True)
        got = 0
        for last in (False, True):
            partial = _Partial(file, progress, self.client)
            got += partial.download()
            if not os.path.exists(file.partial) or not os.path.getsize(file.partial):
                partial.remove()
                raise RunError(f"{file.url}: the server sends nothing; run it again later")
            check = file.check(file.partial)
            if check is not None and not (file.digest is None and is_html(file.partial)):
                break
            partial.remove()
            if check is not None:
                raise RunError(f"{file.url}: the server sends a page of HTML instead of this file")
            if last:
                raise RunError(
                    f"{file.url}: checksum mismatch after two downloads ({file.published}); "
                    "try again later, or give another --mirror"
                )
            _LOGGER.warning("%s: checksum mismatch (%s), retrying", file.url, file.published)
            progress.add(-(file.size or 0))
        os.replace(file.partial, file.path)
        Path(file.facts).unlink(missing_ok=True)
        return Fetched(file.path, got, str(check))


class _Partial:
    """The bytes of a file that have come so far."""

    def __init__(self, file: Wanted, progress: Progress, client: Client) -> None:
        self._file, self._progress, self._client = file, progress, client
        self._got = 0
        self._farthest = 0
        for path in (file.partial, file.facts):
            if os.path.islink(path):  # it may lead to any file of the user
                raise UserError(f"{path}: is a link; remove it")

    def download(self) -> int:
        """Downloads the missing bytes; returns their number."""
        file = self._file
        if self._facts().get("url") != file.url:
            self.remove()
        self._farthest = start = self._size()
        self._progress.add(start)
        if file.size is None or start < file.size:
            self._client.ask(file.url, self._receive, self._headers, lambda: self._farthest)
        return self._got

    def remove(self) -> None:
        """Removes the bytes."""
        for path in (self._file.partial, self._file.facts):
            Path(path).unlink(missing_ok=True)

    def _size(self) -> int:
        partial = self._file.partial
        return os.path.getsize(partial) if os.path.exists(partial) else 0

    def _facts(self) -> dict[str, Any]:
        """Where the bytes came from; empty if nobody knows."""
        facts = self._file.facts.read_json_or_none()
        return facts if isinstance(facts, dict) else {}

    def _headers(self) -> dict[str, str]:
        size, etag = self._size(), self._facts().get("etag")
        if not size or not (etag or self._file.digest):
            return {}  # without either nobody could tell whether the rest fits
        return {"Range": f"bytes={size}-"} | ({"If-Range": str(etag)} if etag else {})

    def _receive(self, answer: requests.Response) -> None:
        """Appends the rest of the file, or writes it anew if the server sends all of it."""
        file, n_bytes = self._file, self._size()
        if answer.status_code == requests.codes.partial:
            if not answer.headers.get("Content-Range", "").startswith(f"bytes {n_bytes}-"):
                self.remove()
                self._progress.add(-n_bytes)
                raise requests.ConnectionError("the server sent another range")
        elif n_bytes:
            self._progress.add(-n_bytes)
            n_bytes = 0
        file.facts.write_json({"url": file.url, "etag": answer.headers.get("ETag")})
        most = MOST_UNKNOWN if file.size is None else file.size
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | (0 if n_bytes else os.O_TRUNC)
        with open(os.open(file.partial, flags, 0o666), "wb") as output:  # does not truncate
            output.seek(n_bytes)
            for block in blocks(answer):
                output.write(block[: most + 1 - n_bytes])
                n_bytes += len(block)
                self._got += len(block)
                self._progress.add(len(block))
                self._farthest = max(self._farthest, n_bytes)
                self._client.check_stop()
                if n_bytes > most:
                    break
        if file.size is None and n_bytes > most:
            raise UserError(f"{file.url}: more than {most:,} bytes of a file without a known size")


def report(requests: Sequence[Wanted], dry_run: bool, downloader: Downloader, output: Place) -> str:
    """Downloads files, or only lists them.

    Args:
        requests: the files.
        dry_run: whether they are only listed, with their sizes.
        downloader: downloads them.
        output: folder of the files, which is locked.

    Returns:
        Text to print.
    """
    if dry_run:
        lines = [f"{_bytes(file.size):>15} {file.url}" for file in requests]
        total = sum(file.size or 0 for file in requests)
        lines.append(
            f"{_bytes(total):>15} bytes in {_files(len(requests))}; nothing was downloaded"
        )
        check_space(requests)
        return "\n".join(lines)
    check_space(requests)
    with output.locked():
        fetched = downloader.fetch(requests)
    new = sum(file.bytes for file in fetched)
    lines = [file.path for file in fetched]
    return "\n".join([*lines, f"{_files(len(lines))}, {new:,} bytes downloaded"])


def _bytes(size: int | None) -> str:
    return "unknown" if size is None else f"{size:,}"


def _files(count: int) -> str:
    return "1 file" if count == 1 else f"{count:,} files"
