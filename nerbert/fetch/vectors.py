"""Vectors of words and of n-grams, which models without pre-training start from."""

from __future__ import annotations

import lzma
import os
import shutil
import tarfile
import zipfile
import zlib
from contextlib import ExitStack
from typing import IO

from pydantic.dataclasses import dataclass

from nerbert.commands.options import CHECKED, Location, Text, Texts, option
from nerbert.errors import UserError
from nerbert.fetch.download import Downloader, report
from nerbert.fetch.wanted import Wanted, source
from nerbert.storage.places import Place


@dataclass(frozen=True, config=CHECKED)
class VectorsOptions:
    r"""Downloads vectors of words and of n-grams, and unpacks them.

        nerbert fetch vectors glove-6b-300 charngram-100 --output vectors
        nerbert evaluate --models bilstm --recipe bilstm-crf --data crossner/politics \
            --vectors vectors/glove.6B.300d.txt vectors/charNgram.txt

    Without names it lists them. Their publishers state no checksum, so only the size is checked.
    """

    names: Texts = option((), "names of vectors", positional=True, metavar="NAME", recipe=False)
    output: Location = option("vectors", "folder for the files", metavar="DIR", recipe=False)
    mirror: Text | None = option(None, "address of a mirror of the archives", metavar="URL")
    dry_run: bool = option(False, "print the files and their sizes, download nothing")


def fetch(options: VectorsOptions) -> str:
    """Downloads and unpacks vectors, or lists them; returns text to print.

    Raises:
        UserError: there are no such vectors, or an archive cannot be unpacked.
        RunError: the server does not answer.
    """
    sources = source("vectors")
    if not options.names:
        return "\n".join(
            f"{name:15} {entry['licence']}: {entry['url']}" for name, entry in sources.items()
        )
    for name in options.names:
        if name not in sources:
            raise UserError(f"no such vectors; there are {', '.join(sources)}", name)
    selected = [sources[name] for name in dict.fromkeys(options.names)]
    downloader = Downloader()
    archives: dict[str, Wanted] = {}  # by archive, which may have several
    for entry in selected:
        file = os.path.basename(entry["url"])
        if file in archives:
            continue
        url = f"{options.mirror.rstrip('/')}/{file}" if options.mirror else entry["url"]
        size = downloader.client.size(url)
        archives[file] = Wanted(url, options.output / file, size)
    text = report([*archives.values()], options.dry_run, downloader, options.output)
    if options.dry_run:
        return text
    unpacked = [
        _unpack(archives[os.path.basename(entry["url"])].path, entry["member"])
        for entry in selected
    ]
    return "\n".join([text, *unpacked])


_UNREADABLE = (
    *(LookupError, ValueError, RuntimeError, EOFError, zlib.error, lzma.LZMAError),
    *(zipfile.BadZipFile, tarfile.TarError),
)
"""What archives raise that are damaged, encrypted, packed by a method that Python lacks, or whose
links lead to themselves."""


def _unpack(archive: Place, member: str) -> Place:
    """Writes a member of an archive beside it, unless it is there; returns its path.

    Raises:
        UserError: the archive is damaged, or has no such member.
    """
    path = archive.folder / os.path.basename(member)
    if path.exists():
        return path
    try:
        with ExitStack() as stack:
            stream: IO[bytes] | None
            if zipfile.is_zipfile(archive):
                stream = stack.enter_context(zipfile.ZipFile(archive)).open(member)
            else:
                stream = stack.enter_context(tarfile.open(archive)).extractfile(member)
            if stream is None:
                raise KeyError(member)
            stack.enter_context(stream)
            shutil.copyfileobj(stream, stack.enter_context(path.atomic_write()), 1 << 20)
    except _UNREADABLE as error:
        reason = " ".join(str(error).split())[:100]
        raise UserError(
            f"{archive}: {member} cannot be unpacked ({reason}); remove the archive, and run the "
            "same command again"
        ) from error
    return path
