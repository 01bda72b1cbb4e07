"""The files of DBpedia: classes of pages, the ontology, infobox mappings."""

from __future__ import annotations

import os
import re

from pydantic.dataclasses import dataclass

from nerbert.commands.options import CHECKED, Location, Text, Texts, option
from nerbert.errors import RunError, UserError
from nerbert.fetch.download import Downloader, report
from nerbert.fetch.wanted import Wanted, source

_RELEASE = re.compile(r'href="(\d{4}\.\d{2}\.\d{2})/?"')
_MOST_RELEASES = 6
"""Releases that are looked at for the newest one that has a file."""


@dataclass(frozen=True, config=CHECKED)
class TypesOptions:
    """Downloads what DBpedia says about the classes of pages.

        nerbert fetch types --language uk --output dbpedia

    The files are the instance types of a language (mapping-based, the most specific classes), those
    of Wikidata's ids, which hold for every language, the mapping of the language's infoboxes, and
    the ontology. Give the first two to `nerbert corpus --types`, with `--page-props` for the
    second.
    """

    language: Texts = option(help="codes of languages, such as uk", metavar="CODE")
    output: Location = option(help="folder for the files", metavar="DIR", recipe=False)
    date: Text = option("latest", "release, such as 2022.12.01, or latest", metavar="DATE")
    wikidata: bool = option(True, "also the types of Wikidata's ids")
    mirror: Text | None = option(
        None, "address of a mirror of DBpedia's downloads and mappings", metavar="URL"
    )
    dry_run: bool = option(False, "print the files and their sizes, download nothing")

    def __post_init__(self) -> None:
        if not re.fullmatch(r"latest|\d{4}\.\d{2}\.\d{2}", self.date):
            raise ValueError(f"--date {self.date}: write YYYY.MM.DD, or latest")
        for code in self.language:
            if not re.fullmatch(r"[a-z][a-z_-]*", code):
                raise ValueError(f"--language {code}: write a code such as uk")


def fetch(options: TypesOptions) -> str:
    """Downloads DBpedia's files, or lists them; returns text to print."""
    downloader = Downloader()
    requests, missing = types_files(options, downloader)
    for line in missing:
        print(line)
    return report(requests, options.dry_run, downloader, options.output)


def types_files(options: TypesOptions, downloader: Downloader) -> tuple[list[Wanted], list[str]]:
    """The files of some languages, and a line about each file that DBpedia does not have.

    Raises:
        UserError: DBpedia has none of the files.
        RunError: the server does not answer.
    """
    facts = source("types")
    names = [
        (facts["instances"], facts["instances_file"].format(language=code))
        for code in options.language
    ]
    if options.wikidata:
        names.append((facts["wikidata"], facts["wikidata_file"]))
    requests, missing = [], []
    for artifact, name in names:
        file = _in_release(options, artifact, name, downloader)
        if file is None:
            missing.append(f"{name}: DBpedia has no such file, left out")
        else:
            requests.append(file)
    facts = source("mappings")
    base = (options.mirror or facts["url"]).rstrip("/")
    paths = [facts["mapping_file"].format(language=code) for code in options.language]
    for path in (*paths, facts["ontology_file"]):
        try:
            size = downloader.client.size(f"{base}/{path}")
        except UserError:
            missing.append(f"{path}: DBpedia has no such file, left out")
            continue
        place = options.output / os.path.basename(path)
        requests.append(Wanted(f"{base}/{path}", place, size))
    if not requests:
        raise UserError("DBpedia has none of these files; check --language and --date")
    return requests, missing


def _in_release(
    options: TypesOptions, artifact: str, name: str, downloader: Downloader
) -> Wanted | None:
    """A file in the newest release that has it, or in the one that was asked for."""
    facts = source("types")
    base = f"{(options.mirror or facts['url']).rstrip('/')}/{artifact}"
    releases = [options.date]
    if options.date == "latest":
        releases = sorted(set(_RELEASE.findall(downloader.client.text(f"{base}/"))), reverse=True)
        if not releases:
            raise RunError(f"{base}/: no release there; try another --mirror")
    for release in releases[:_MOST_RELEASES]:
        try:
            size = downloader.client.size(f"{base}/{release}/{name}")
        except UserError:
            continue
        digest = _digest(f"{base}/{release}", name, downloader)
        place = options.output / name
        return Wanted(f"{base}/{release}/{name}", place, size, digest)
    return None


def _digest(folder: str, name: str, downloader: Downloader) -> tuple[str, str] | None:
    """The published SHA-256 of a file, by the description of its release; None without one."""
    facts = source("types")
    try:
        text = downloader.client.text(f"{folder}/{facts['checksums']}")
    except UserError:
        return None
    for block in re.split(r"\n\s*\n", text):
        if name in block and (match := re.search(r'sha256sum\s+"([0-9a-f]{64})"', block)):
            return "sha256", match[1]
    return None
