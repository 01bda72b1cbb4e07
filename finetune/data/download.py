"""The files of evaluation sets."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from pydantic.dataclasses import dataclass

from finetune.data import conll, json_rows
from finetune.data.registry import NamedSet, known_set, registry
from nerbert.commands.options import CHECKED, Location, Text, Texts, option
from nerbert.errors import RunError, UserError
from nerbert.fetch.download import Downloader, report
from nerbert.fetch.wanted import Wanted, source


@dataclass(frozen=True, config=CHECKED)
class SetsOptions:
    r"""Downloads evaluation sets to the folder that NERBERT_DATA names.

        nerbert fetch sets crossner wikigold --output ner-data
        NERBERT_DATA=ner-data nerbert evaluate --models bert-base-cased --data 'crossner/*' \
            --output report

    Without names it lists the sets, and says which of them --output has. Of sets that nobody may
    pass on it says where to ask for them.
    """

    data: Texts = option((), "names of sets", positional=True, metavar="SET", recipe=False)
    output: Location = option(
        os.environ.get("NERBERT_DATA", "data"),
        "folder for the sets (default: NERBERT_DATA, or data)",
        metavar="DIR",
        recipe=False,
    )
    mirror: Text | None = option(None, "address of a mirror of the sets", metavar="URL")
    dry_run: bool = option(False, "print the files, download nothing")


def fetch(options: SetsOptions) -> str:
    """Downloads data sets, or lists them; returns text to print."""
    if not options.data:
        return _table(options.output)
    downloader = Downloader()
    requests, asked = sets_files(options, downloader)
    for line in asked:
        print(line)
    if not requests:
        raise UserError("none of these sets may be downloaded")
    new = [file.path for file in requests if file.digest is None and not os.path.exists(file.path)]
    text = report(requests, options.dry_run, downloader, options.output)
    if not options.dry_run:
        _check_readable(new)
    return text


def _check_readable(paths: Sequence[str]) -> None:
    """Checks that new files, of which no checksum is published, are sets, or labels of sets.

    Raises:
        RunError: a server has sent something else. It is removed.
    """
    for path in paths:
        is_table = os.path.basename(path) in json_rows.LABEL_FILES
        try:
            _ = json_rows.numbered(Path(path)) if is_table else conll.read(path)
        except (UserError, ValueError) as error:
            os.remove(path)
            raise RunError(
                f"{error}; the server sends something else; run it again later"
            ) from None


def sets_files(options: SetsOptions, downloader: Downloader) -> tuple[list[Wanted], list[str]]:
    """The files of some sets, and a line about each set that must be asked for.

    Raises:
        UserError: there is no such set, or a file is missing on the server.
        RunError: the server does not answer.
    """
    ask = source("sets")["ask"]
    base = (options.mirror or source("sets")["url"]).rstrip("/")
    requests: list[Wanted] = []
    asked: list[str] = []
    for named_set in _named(options.data):
        if named_set.name in ask:
            asked.append(f"{named_set.name}: {ask[named_set.name]}")
            continue
        for split, path in _files(named_set):
            url = _url(base, remote_path(named_set, path), options.mirror is not None)
            digest = named_set.sha256.get(split)
            checked = ("sha256", digest) if digest else None
            place = options.output / path
            if place not in {request.path for request in requests}:  # two sets may share an archive
                requests.append(Wanted(url, place, downloader.client.size(url), checked))
    return requests, asked


def _files(named_set: NamedSet) -> list[tuple[str, str]]:
    """Split and path of each file of a set; other files have no split. Archives come once."""
    paths = {path.split(":", 1)[0]: split for split, path in named_set.files.items()}
    return [(split, path) for path, split in paths.items()] + [
        ("", path) for path in named_set.beside
    ]


def _url(base: str, path: str, mirrored: bool) -> str:
    """Address of a file; a mirror has those of other hosts, too, by their path."""
    if path.startswith("https://") and mirrored:
        path = path.split("/", 3)[3]
    return path if path.startswith("https://") else f"{base}/{path}"


def _named(names: Sequence[str]) -> list[NamedSet]:
    """The sets with these names; `crossner` means all whose names begin with `crossner/`."""
    sets: dict[str, NamedSet] = {}
    for name in names:
        start = name.removesuffix("/*") + "/"
        members = [set_name for set_name in sorted(registry()) if set_name.startswith(start)]
        for member in members or [name]:
            named_set = known_set(member)
            if named_set is None:
                raise UserError(f"no such set; there are {', '.join(sorted(registry()))}", member)
            if named_set.elsewhere:
                raise UserError(f"it is not downloaded; {named_set.elsewhere}", member)
            sets[member] = named_set
    return list(sets.values())


def remote_path(named_set: NamedSet, file: str) -> str:
    """Where a file of a set is, below the address of the sets, or with its own host."""
    places = source("sets")["files"]
    place = places.get(named_set.owner) or places[named_set.owner.partition("/")[0] + "/*"]
    split = next((split for split, path in named_set.files.items() if path == file), "")
    path = Path(file)
    pattern: str = place[split] if isinstance(place, dict) else place
    part = named_set.owner.partition("/")[2]
    return pattern.format(part=part, split=split, name=path.name, stem=path.stem)


def _table(folder: str) -> str:
    """The sets as columns; sentences are those of train, dev and test, if they were counted."""
    # It loads numpy, which --help does not need.
    from finetune.data.sets import DataSets

    ask, sets = source("sets")["ask"], DataSets(folder)
    rows = [("set", "language", "types", "sentences", "have it", "terms: source")]
    for name, named_set in sorted(registry().items()):
        if named_set.like:
            continue
        counted = [
            named_set.counts[split][0] for split in named_set.files if split in named_set.counts
        ]
        sentences = f"{sum(counted):,}" if len(counted) == len(named_set.files) else "-"
        have = "yes" if all(sets.exists(named_set, split) for split in named_set.files) else ""
        terms = f"{named_set.licence}: {ask.get(name, named_set.source)}"
        rows.append((name, named_set.language, str(named_set.labels), sentences, have, terms))
    form = "{:20} {:8} {:>5} {:>9}  {:7}  {}"
    return "\n".join(form.format(*row) for row in rows)
