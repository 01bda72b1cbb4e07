"""The files of a wiki's dump."""

from __future__ import annotations

import re

from pydantic import BaseModel, Field, ValidationError
from pydantic.dataclasses import dataclass

from nerbert.commands.options import CHECKED, Location, Text, Texts, option
from nerbert.errors import RunError, UserError
from nerbert.fetch.client import Client
from nerbert.fetch.download import Downloader, report
from nerbert.fetch.wanted import Wanted, source

_ARTICLES = re.compile(
    r".*-pages-articles-multistream(?P<part>[0-9]{0,9})\.xml(-p[0-9]{1,18}p[0-9]{1,18})?\.bz2"
)
_DATE = re.compile(r'href="([0-9]{8})/?"')
_CHECKSUM = re.compile(r"^([0-9a-f]{40})\s+\*?(\S+)$", re.MULTILINE)
_LONGEST_NAME = 255


class File(BaseModel):
    """A file of a dump, as `dumpstatus.json` describes it. Unfinished ones have no address."""

    url: str = ""
    size: int | None = Field(None, ge=0, le=1 << 50)
    sha1: str | None = Field(None, pattern=r"^[0-9a-fA-F]{40}$")
    md5: str | None = Field(None, pattern=r"^[0-9a-fA-F]{32}$")

    @property
    def digest(self) -> tuple[str, str] | None:
        """Name of a hash function, and the published digest."""
        return next(((n, d) for n, d in (("sha1", self.sha1), ("md5", self.md5)) if d), None)


Files = dict[str, File]


class _Job(BaseModel):
    status: str = ""
    files: Files = {}


class Status(BaseModel):
    """`dumpstatus.json`: the jobs of a dump."""

    jobs: dict[str, _Job]

    def files(self, job: str) -> Files:
        """Files of a job, by name; empty if it is not finished."""
        listed = self.jobs.get(job, _Job())
        is_complete = all(file.url and file.size is not None for file in listed.files.values())
        return listed.files if listed.status == "done" and is_complete else {}


@dataclass(frozen=True, config=CHECKED)
class DumpOptions:
    """Downloads the dumps of wikis: the articles, and tables about their pages.

        nerbert fetch dump --wiki uk --output dumps
        nerbert fetch dump --wiki en uk de --tables --output dumps
        nerbert fetch dump --wiki enwiki --date 20250201 --parts 1-3 --tables --output dumps

    Files that are published in parts are taken in parts, never the whole file beside them. All
    files are checked against the published checksums. If the command is stopped, run it again.
    """

    wiki: Texts = option(help="language of the wiki, or its database: uk, ukwiki", metavar="NAME")
    output: Location = option(help="folder for the files", metavar="DIR", recipe=False)
    date: Text = option("latest", "date of the dump, YYYYMMDD, or latest", metavar="DATE")
    parts: Text | None = option(
        None, "numbers of parts, such as 3 or 1-3 (default: all)", metavar="N-M"
    )
    tables: bool = option(False, "also page_props and langlinks, for Wikidata ids and titles")
    mirror: Text | None = option(None, "address of a mirror of the dumps", metavar="URL")
    dry_run: bool = option(False, "print the files and their sizes, download nothing")

    def __post_init__(self) -> None:
        if not re.fullmatch(r"latest|[0-9]{8}", self.date):
            raise ValueError(f"--date {self.date}: write YYYYMMDD, or latest")
        if self.parts is not None and not re.fullmatch(r"[0-9]{1,4}(-[0-9]{1,4})?", self.parts):
            raise ValueError(f"--parts {self.parts}: write a number, or two such as 1-3")
        for name in self.wiki:
            if not re.fullmatch(r"[a-z][a-z0-9_-]*", name):
                raise ValueError(f"--wiki {name}: write a language, or a database such as ukwiki")

    @property
    def databases(self) -> list[str]:
        """The wikis' databases, each once."""
        names = (name.replace("-", "_") for name in self.wiki)
        return list(dict.fromkeys(n if "wik" in n else f"{n}wiki" for n in names))


def fetch(options: DumpOptions) -> str:
    """Downloads the files of a dump, or lists them; returns text to print."""
    downloader = Downloader()
    requests = [
        file for wiki in options.databases for file in dump_files(wiki, options, downloader)
    ]
    return report(requests, options.dry_run, downloader, options.output)


def dump_files(wiki: str, options: DumpOptions, downloader: Downloader) -> list[Wanted]:
    """The files of a wiki's dump, with their sizes and checksums.

    Raises:
        UserError: there is no such wiki, date or part.
        RunError: the server does not answer, or the dump is not finished.
    """
    facts = source("dumps")
    base = (options.mirror or facts["url"]).rstrip("/")
    date, status = _status(base, wiki, options, downloader.client)
    files = status.files(facts["articles"])
    articles = {name: file for name, file in files.items() if _ARTICLES.fullmatch(name)}
    if not articles:
        raise RunError(f"{wiki} {date}: no pages-articles-multistream file in this dump")
    selected = _in_parts(articles, wiki, options)
    for job in facts["tables"] if options.tables else ():
        selected |= _table(status, job, f"{wiki} {date}")
    folder = f"{wiki}/{date}"
    for name, file in selected.items():
        _check_name(name, file, folder)
    if not all(file.digest for file in selected.values()):
        place = f"{base}/{facts['checksums'].format(wiki=wiki, date=date)}"
        sums = {name: digest for digest, name in _CHECKSUM.findall(downloader.client.text(place))}
        selected = {
            name: file.model_copy(update={"sha1": sums.get(name)})
            for name, file in selected.items()
        }
    return [
        Wanted(f"{base}{file.url}", options.output / name, file.size, file.digest)
        for name, file in selected.items()
    ]


def _check_name(name: str, file: File, folder: str) -> None:
    """Checks that a file of the mirror's list is one of this dump, by its name and address.

    Raises:
        RunError: it is not; it could be written, or come, anywhere.
    """
    start = re.escape(folder.replace("/", "-"))
    is_plain = re.fullmatch(rf"{start}-[A-Za-z0-9._-]+", name) and len(name) <= _LONGEST_NAME
    if not is_plain or not re.fullmatch(rf"/(?:[\w-][\w.-]*/)*{re.escape(name)}", file.url):
        raise RunError(
            f"{folder}: the server lists {name[:80]!r} at {file.url[:80]!r}, which is no file of "
            "this dump; try another --mirror"
        )


def _table(status: Status, job: str, dump: str) -> Files:
    """The files of a table.

    Raises:
        RunError: it is not finished, or not there.
    """
    if not (files := status.files(job)):
        state = status.jobs[job].status or "not finished" if job in status.jobs else "missing"
        raise RunError(f"{dump}: {job} is {state[:40]!r} there; take an earlier --date")
    return files


def _status(base: str, wiki: str, options: DumpOptions, client: Client) -> tuple[str, Status]:
    """Date and status of a dump whose articles are finished, the newest one for "latest"."""
    facts = source("dumps")
    if options.date != "latest":
        status = _read_status(base, wiki, options.date, client)
        if not status.files(facts["articles"]):
            raise RunError(
                f"{wiki} {options.date}: the articles are not finished; take an earlier --date"
            )
        return options.date, status
    page = client.text(f"{base}/{facts['dates'].format(wiki=wiki)}")
    jobs = [facts["articles"], *(facts["tables"] if options.tables else ())]
    missing = "there is no date"
    for date in sorted(set(_DATE.findall(page)), reverse=True):
        status = _read_status(base, wiki, date, client)
        unfinished = [job for job in jobs if not status.files(job)]
        if not unfinished:
            return date, status
        missing = f"{date} lacks {', '.join(unfinished)}"
    raise RunError(
        f"{base}/{wiki}: no finished dump there ({missing}); try another --mirror"
        + (", or leave out --tables" if options.tables else "")
    )


def _read_status(base: str, wiki: str, date: str, client: Client) -> Status:
    place = f"{base}/{source('dumps')['status'].format(wiki=wiki, date=date)}"
    try:
        return Status.model_validate_json(client.text(place))
    except ValidationError:
        raise RunError(f"{place}: not the status of a dump; try another --mirror") from None


def _in_parts(articles: Files, wiki: str, options: DumpOptions) -> Files:
    """The articles' files that are wanted, in the order of their parts."""
    number = {name: int(_part(name) or 0) for name in articles}
    if any(number.values()):  # the whole file beside its parts has the same pages
        articles = {name: file for name, file in articles.items() if number[name]}
    elif options.parts:
        raise UserError(f"--parts {options.parts}: {wiki} has no parts; leave this out")
    if options.parts:
        first, _, last = options.parts.partition("-")
        part_range = range(int(first), int(last or first) + 1)
        articles = {name: file for name, file in articles.items() if number[name] in part_range}
        if not articles:
            n_parts = max(number.values())
            raise UserError(f"--parts {options.parts}: no such parts; there are 1 to {n_parts}")
    return dict(sorted(articles.items(), key=lambda item: (number[item[0]], _first_page(item[0]))))


def _first_page(name: str) -> int:
    """Id of the first page of a part; 0 if the name does not say."""
    match = re.search(r"-p([0-9]+)p", name)
    return int(match[1]) if match else 0


def _part(name: str) -> str:
    match = _ARTICLES.fullmatch(name)
    return match["part"] if match else ""
