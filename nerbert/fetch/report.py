"""What a download did, or would do, in a few lines."""

from __future__ import annotations

from collections.abc import Sequence

from nerbert import files
from nerbert.fetch.download import Downloader
from nerbert.fetch.wanted import Wanted, check_space


def report(wanted: Sequence[Wanted], dry_run: bool, downloader: Downloader, output: str) -> str:
    """Downloads files, or only lists them.

    Args:
        wanted: the files.
        dry_run: whether they are only listed, with their sizes.
        downloader: downloads them.
        output: folder of the files, which is locked.

    Returns:
        Text to print.
    """
    if dry_run:
        lines = [f"{_bytes(file.size):>15} {file.url}" for file in wanted]
        total = sum(file.size or 0 for file in wanted)
        lines.append(f"{_bytes(total):>15} bytes in {_files(len(wanted))}; nothing was downloaded")
        check_space(wanted)
        return "\n".join(lines)
    check_space(wanted)
    with files.locked(output):
        fetched = downloader.fetch(wanted)
    new = sum(file.bytes for file in fetched)
    lines = [file.path for file in fetched]
    return "\n".join([*lines, f"{_files(len(lines))}, {new:,} bytes downloaded"])


def _bytes(size: int | None) -> str:
    return "unknown" if size is None else f"{size:,}"


def _files(count: int) -> str:
    return "1 file" if count == 1 else f"{count:,} files"
