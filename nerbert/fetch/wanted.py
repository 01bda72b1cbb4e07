"""The files that are to be downloaded: where they are published, where they go, their checks."""

from __future__ import annotations

import hashlib
import os
import shutil
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

from nerbert.errors import UserError
from nerbert.storage.places import Place


@dataclass(frozen=True)
class Wanted:
    """A file to download.

    Attributes:
        url: its address.
        path: where it goes.
        size: published size in bytes; None if none is known.
        digest: name of a hash function and the published digest; None if none is published.
    """

    url: str
    path: Place
    size: int | None = None
    digest: tuple[str, str] | None = None

    @property
    def partial(self) -> Place:
        """Path of the bytes that have come so far."""
        return self.path.folder / f".{self.path.name}.part"

    @property
    def facts(self) -> Place:
        """Path of the record of where these bytes come from."""
        return Place(self.partial + ".json")

    @property
    def published(self) -> str:
        """Published size and digest, for messages."""
        size = f"{self.size:,} bytes" if self.size is not None else ""
        digest = f"{self.digest[0]} {self.digest[1][:12]}..." if self.digest else ""
        return ", ".join(filter(None, (size, digest)))

    def check(self, path: str) -> str | None:
        """How the bytes at `path` were checked; None if they are not the published ones."""
        if self.size is not None and os.path.getsize(path) != self.size:
            return None
        if self.digest is None:
            return "size" if self.size is not None else "no published size or checksum"
        name, published = self.digest
        digest = hashlib.new(name, usedforsecurity=False)
        with open(path, "rb") as stream:
            while block := stream.read(1 << 22):
                digest.update(block)
        return name if digest.hexdigest() == published.lower() else None


def is_html(path: str) -> bool:
    """Whether a file is an HTML page, such as a login form, instead of what was asked for."""
    with open(path, "rb") as stream:
        start = stream.read(1024).removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    return start.startswith((b"<!doctype html", b"<html"))


def check_space(requests: Sequence[Wanted]) -> None:
    """Checks that there is room for the bytes that are missing.

    Raises:
        UserError: there is not.
    """
    needed: dict[str, int] = {}
    for file in requests:
        paths = (file.path, file.partial)
        present = sum(os.path.getsize(path) for path in paths if os.path.exists(path))
        folder = _existing(os.path.dirname(file.path) or ".")
        needed[folder] = needed.get(folder, 0) + max(0, (file.size or 0) - present)
    for folder, size in needed.items():
        free = shutil.disk_usage(folder).free
        if size > free:
            raise UserError(
                f"{folder}: {size:,} bytes are needed, and {free:,} are free; choose another "
                "--output, or take fewer files"
            )


def _existing(folder: str) -> str:
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder) or "."
    return folder


@cache
def _table() -> dict[str, Any]:
    text = (files("nerbert.fetch") / "data" / "sources.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def source(name: str) -> dict[str, Any]:
    """The facts about one publisher: "dumps", "types", "mappings", "vectors" or "sets"."""
    facts: dict[str, Any] = _table()[name]
    return facts


@cache
def hosts() -> frozenset[str]:
    """Hosts that the table names; a server may redirect to them."""
    addresses = (text for text in _texts(_table()) if text.startswith("https://"))
    return frozenset(host for address in addresses if (host := urlsplit(address).hostname))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for inner in value.values() if isinstance(value, dict) else ():
        yield from _texts(inner)
    for inner in value if isinstance(value, list) else ():
        yield from _texts(inner)
