r"""Downloads the dump of a wiki: the articles, and tables about its pages.

    nerbert fetch dump --wiki ukwiki --output dumps
    nerbert fetch dump --wiki enwiki --date 20250201 --parts 1-3 --tables --output dumps

Files that are published in parts are taken in parts, never the whole file beside them. All files
are checked against the published checksums. If the command is stopped, run it again.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from typing import Any

from pydantic.dataclasses import dataclass

from nerbert.command import Command
from nerbert.errors import RunError, UserError
from nerbert.fetch.download import Downloader
from nerbert.fetch.report import report
from nerbert.fetch.sources import source
from nerbert.fetch.wanted import Wanted
from nerbert.options import CHECKED, Text, option

_ARTICLES = re.compile(r".*-pages-articles-multistream(?P<part>\d*)\.xml(-p\d+p\d+)?\.bz2")
_DATE = re.compile(r'href="(\d{8})/?"')
_CHECKSUM = re.compile(r"^([0-9a-f]{40})\s+\*?(\S+)$", re.MULTILINE)
_HASHES = ("sha1", "md5")


@dataclass(frozen=True, config=CHECKED)
class DumpOptions:
    """The options of `nerbert fetch dump`."""

    wiki: Text = option(help="name of the wiki's database, such as ukwiki", metavar="NAME")
    output: Text = option(help="folder for the files", metavar="DIR", recipe=False)
    date: Text = option("latest", "date of the dump, YYYYMMDD, or latest", metavar="DATE")
    parts: Text | None = option(
        None, "numbers of parts, such as 3 or 1-3 (default: all)", metavar="N-M"
    )
    tables: bool = option(False, "also page_props and langlinks, for Wikidata ids and titles")
    mirror: Text | None = option(None, "address of a mirror of the dumps", metavar="URL")
    dry_run: bool = option(False, "print the files and their sizes, download nothing")

    def __post_init__(self) -> None:
        if not re.fullmatch(r"latest|\d{8}", self.date):
            raise ValueError(f"--date {self.date}: write YYYYMMDD, or latest")
        if self.parts is not None and not re.fullmatch(r"\d+(-\d+)?", self.parts):
            raise ValueError(f"--parts {self.parts}: write a number, or two such as 1-3")
        if not re.fullmatch(r"[a-z][a-z0-9_]*", self.wiki):
            raise ValueError(f"--wiki {self.wiki}: write the database's name, such as ukwiki")


COMMAND = Command(__doc__, DumpOptions)


def main(argv: Sequence[str] | None = None, prog: str | None = None) -> int:
    """Runs the command line and returns its exit code."""
    return COMMAND.main(_work, argv, prog)


def _work(options: DumpOptions) -> None:
    downloader = Downloader()
    wanted = dump_files(options, downloader)
    print(report(wanted, options.dry_run, downloader, options.output))


def dump_files(options: DumpOptions, downloader: Downloader) -> list[Wanted]:
    """The files of a dump, with their sizes and checksums.

    Raises:
        UserError: there is no such wiki, date or part.
        RunError: the server does not answer, or the dump is not finished.
    """
    facts = source("dumps")
    base = (options.mirror or facts["url"]).rstrip("/")
    date, status = _status(base, options, downloader)
    files = _files(status, facts["articles"])
    articles = {name: file for name, file in files.items() if _ARTICLES.fullmatch(name)}
    chosen = _chosen(articles, options)
    for job in facts["tables"] if options.tables else ():
        if not (found := _files(status, job)):
            raise RunError(f"{options.wiki} {date}: {job} is not finished; take an earlier --date")
        chosen |= found
    if not all(_digest(file) for file in chosen.values()):
        place = f"{base}/{facts['checksums'].format(wiki=options.wiki, date=date)}"
        sums = {name: digest for digest, name in _CHECKSUM.findall(downloader.text(place))}
        chosen = {name: {**file, "sha1": sums.get(name)} for name, file in chosen.items()}
    return [
        Wanted(
            f"{base}{file['url']}", os.path.join(options.output, name), file["size"], _digest(file)
        )
        for name, file in chosen.items()
    ]


def _status(base: str, options: DumpOptions, downloader: Downloader) -> tuple[str, Any]:
    """Date and status of a dump whose articles are finished, the newest one for "latest"."""
    facts = source("dumps")
    if options.date != "latest":
        status = _read_status(base, options.wiki, options.date, downloader)
        if not _files(status, facts["articles"]):
            raise RunError(
                f"{options.wiki} {options.date}: the articles are not finished; take an earlier "
                "--date"
            )
        return options.date, status
    page = downloader.text(f"{base}/{facts['dates'].format(wiki=options.wiki)}")
    for date in sorted(set(_DATE.findall(page)), reverse=True):
        status = _read_status(base, options.wiki, date, downloader)
        jobs = [facts["articles"], *(facts["tables"] if options.tables else ())]
        if all(_files(status, job) for job in jobs):
            return date, status
    raise RunError(f"{base}/{options.wiki}: no finished dump there; try another --mirror")


def _read_status(base: str, wiki: str, date: str, downloader: Downloader) -> Any:
    place = f"{base}/{source('dumps')['status'].format(wiki=wiki, date=date)}"
    try:
        status = json.loads(downloader.text(place))
        assert isinstance(status["jobs"], dict)
    except (ValueError, KeyError, TypeError, AssertionError):
        raise RunError(f"{place}: not the status of a dump; try another --mirror") from None
    return status


def _files(status: Any, job: str) -> dict[str, Any]:
    """Files of a job of a dump, by name; empty if the job is not finished."""
    found = status["jobs"].get(job, {})
    files: dict[str, Any] = found.get("files", {})
    complete = all("url" in file and "size" in file for file in files.values())
    return files if found.get("status") == "done" and complete else {}


def _chosen(articles: dict[str, Any], options: DumpOptions) -> dict[str, Any]:
    """The articles' files that are wanted, in the order of their parts."""
    number = {name: int(_part(name) or 0) for name in articles}
    if any(number.values()):  # the whole file beside its parts has the same pages
        articles = {name: file for name, file in articles.items() if number[name]}
    elif options.parts:
        raise UserError(f"--parts {options.parts}: {options.wiki} has no parts; leave this out")
    if options.parts:
        first, _, last = options.parts.partition("-")
        wanted = range(int(first), int(last or first) + 1)
        articles = {name: file for name, file in articles.items() if number[name] in wanted}
        if not articles:
            there = max(number.values())
            raise UserError(f"--parts {options.parts}: no such parts; there are 1 to {there}")
    return dict(sorted(articles.items(), key=lambda item: (number[item[0]], _first_page(item[0]))))


def _first_page(name: str) -> int:
    """Id of the first page of a part; 0 if the name does not say."""
    match = re.search(r"-p(\d+)p", name)
    return int(match[1]) if match else 0


def _part(name: str) -> str:
    match = _ARTICLES.fullmatch(name)
    return match["part"] if match else ""


def _digest(file: Any) -> tuple[str, str] | None:
    return next(((name, file[name]) for name in _HASHES if file.get(name)), None)
