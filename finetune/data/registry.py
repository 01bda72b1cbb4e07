"""The registry of named data sets: their files below the data root, and facts about them."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files

from nerbert.errors import UserError


@dataclass(frozen=True)
class NamedSet:
    """A named data set.

    Attributes:
        name: name of the set.
        files: path of each split's file, below the data root.
        source: where to get the files.
        citation: paper to cite.
        licence: terms of use.
        domain: subject of the texts.
        labels: number of types; 0 if not known.
        language: language of the texts, of Wikipedia's codes.
        counts: numbers of sentences, tokens and mentions of each split, if measured.
        sha256: SHA-256 of each split's decompressed file, if measured.
        also: other usual names of each split's file.
        beside: other files that the set needs.
        parts: what may stand for the star of a pattern; empty if anything may.
        fetched: what may stand for the star in sets that can be downloaded; empty if all can.
        elsewhere: where to get the set if not by download, and what it is called below the root.
        like: name of the set whose files it has; empty if it has its own.
        carved: number of dev sentences that are drawn from the train split; 0 for none.
        types: new name of a type -> its names in the files; other mentions are dropped. Empty if
            all types are kept.
        words: "mecab" if the sentences are split into MeCab's words; empty for those of the files.
        note: what differs from the paper that uses the set.
    """

    name: str
    files: dict[str, str]
    source: str
    citation: str
    licence: str
    domain: str
    labels: int = 0
    language: str = "en"
    counts: dict[str, list[int]] = field(default_factory=dict)
    sha256: dict[str, str] = field(default_factory=dict)
    also: dict[str, list[str]] = field(default_factory=dict)
    beside: list[str] = field(default_factory=list)
    parts: list[str] = field(default_factory=list)
    fetched: list[str] = field(default_factory=list)
    elsewhere: str = ""
    like: str = ""
    carved: int = 0
    types: dict[str, list[str]] = field(default_factory=dict)
    words: str = ""
    note: str = ""

    @property
    def owner(self) -> str:
        """Name of the set that has its files."""
        return self.like or self.name

    @property
    def splits(self) -> tuple[str, ...]:
        """Its splits."""
        return (*self.files, *(["dev"] if self.carved else []))


GROUPS = {
    "nerbert11": (
        *(f"crossner/{name}" for name in ("politics", "science", "music", "literature", "ai")),
        *("twitter2017", "btc", "nerbert/bionlp13cg", "nerbert/bionlp13pc"),
        *("nerbert/finance", "nerbert/defense"),
    )
}
"""Name of a group -> its sets. Source: Liu et al. 2021 (NER-BERT), table 2."""


@cache
def _entries() -> dict[str, NamedSet]:
    """All entries of `sets.toml`, including patterns such as `wikiann/*`."""
    return parsed((files("finetune.data") / "sets.toml").read_text(encoding="utf-8"))


def parsed(text: str) -> dict[str, NamedSet]:
    """The entries of a text in the form of `sets.toml`, by name."""
    entries: dict[str, NamedSet] = {}
    for name, entry in tomllib.loads(text).items():
        if "like" in entry:
            base_entry = replace(entries[entry["like"]], counts={}, sha256={})
            entries[name] = replace(base_entry, name=name, **entry)
        else:
            entries[name] = NamedSet(name=name, **entry)
    return entries


def registry() -> dict[str, NamedSet]:
    """The sets with a fixed name."""
    return {name: entry for name, entry in _entries().items() if "*" not in name}


def known_names() -> str:
    """The names and patterns, for messages."""
    return ", ".join(sorted([*_entries(), *GROUPS]))


def known_set(name: str) -> NamedSet | None:
    """The set with this name, also if it matches a pattern such as `wikiann/*`; None if unknown.

    Raises:
        UserError: it matches a pattern, but the set has no such part.
    """
    if name in registry():
        return registry()[name]
    for pattern, entry in _entries().items():
        start, star, end = pattern.partition("*")
        if star and name.startswith(start) and name.endswith(end) and not set(name) & set("*?["):
            part = name[len(start) : len(name) - len(end)]
            if entry.parts and part not in entry.parts:
                raise UserError(
                    f"{entry.source} has {', '.join(entry.parts)}; for others give a folder with "
                    "train, dev and test",
                    name,
                )
            paths = {split: path.replace("*", part) for split, path in entry.files.items()}
            also = {
                split: [path.replace("*", part) for path in other_paths]
                for split, other_paths in entry.also.items()
            }
            where = "" if part in entry.fetched else entry.elsewhere
            return replace(entry, name=name, files=paths, also=also, elsewhere=where, language=part)
    return None


def expand(names: Sequence[str]) -> list[str]:
    """Replaces groups, and patterns such as `crossner/*`, by names of sets; keeps other names.

    Raises:
        UserError: a pattern matches no set.
    """
    expanded: list[str] = []
    for name in names:
        fitting = [*GROUPS.get(name, ())] or [
            set_name for set_name in sorted(registry()) if fnmatchcase(set_name, name)
        ]
        if not fitting and set(name) & set("*?["):
            raise UserError(f"no set has such a name; use {known_names()}", name)
        expanded += fitting or [name]
    return list(dict.fromkeys(expanded))
