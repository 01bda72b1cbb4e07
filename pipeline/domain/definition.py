"""Domains: wiki categories, entity types, special types; and the options of `nerbert domain`."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from pydantic.dataclasses import dataclass

from nerbert.commands.options import CHECKED, Location, Locations, Text, Texts, option
from nerbert.commands.values import Given, build, near
from nerbert.errors import UserError
from nerbert.text.lines import ColumnsText
from ontology.categories import CategorySet
from ontology.classes import ClassTree

MISC = "misc"
"""Type of a mention whose class belongs to none of the domain's types."""


@dataclass(frozen=True, config=CHECKED)
class Domain:
    """The definition of a domain.

    Attributes:
        name: short name, for files.
        title: name for users.
        roots: wiki categories from which the walk starts.
        depth: largest number of steps below the roots.
        skip: patterns of wiki categories that are not entered (`*` and `?` as in file names).
        special: entity types that only this domain has.
        types: pairs of a class and the entity type of this class and the classes below it.
    """

    name: str
    title: str
    roots: Texts
    depth: int = option(4, ge=0)
    skip: Texts = ()
    special: Texts = ()
    types: tuple[tuple[str, str], ...] = ()

    @property
    def categories(self) -> CategorySet:
        """Class -> type; a class without type has the type of its nearest ancestor."""
        return CategorySet(self.name, dict(self.types))

    def check(self, tree: ClassTree) -> None:
        """Checks that the ontology has the classes.

        Raises:
            UserError: a class is unknown.
        """
        for name, _ in self.types:
            if name not in tree:
                hint = near(name, tree.names)
                raise UserError(f"domain {self.name}: the ontology has no class {name}{hint}")

    def changed(
        self, roots: Sequence[str], depth: int | None, skip: Sequence[str], special: Sequence[str]
    ) -> Domain:
        """The domain, changed by flags.

        Args:
            roots: other roots; empty for the domain's own.
            depth: other depth; None for the domain's own.
            skip: additional patterns.
            special: other special types: types of the domain, or classes, which become types; empty
                for the domain's own.
        """
        type_names = {kind for _, kind in self.types}
        new = [name for name in special if name not in type_names]
        return replace(
            self,
            roots=tuple(roots) or self.roots,
            depth=self.depth if depth is None else depth,
            skip=(*self.skip, *skip),
            types=(*self.types, *((name, name.lower()) for name in new)),
            special=tuple(n if n in type_names else n.lower() for n in special) or self.special,
        )


def names() -> list[str]:
    """The shipped domains."""
    folder = files("pipeline.domain") / "data"
    return sorted(p.name.removesuffix(".toml") for p in folder.iterdir() if ".toml" in p.name)


def load(name: str) -> Domain:
    """Loads a shipped domain by name, or a user's TOML file by path.

    Raises:
        UserError: there is no such domain, or the file does not describe one.
    """
    if name in names():
        path = Path(str(files("pipeline.domain") / "data" / f"{name}.toml"))
    else:
        path = Path(name)
    if not path.is_file():
        similar = get_close_matches(name.lower(), names(), 1, cutoff=0.4)
        hint = f"did you mean {similar[0]}? " if similar else ""
        raise UserError(
            f"--domain {name}: no such domain; {hint}There are {', '.join(names())}; "
            "or give a TOML file like those, or --roots"
        )
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not valid TOML: {error}") from error
    return _parsed(path, table)


def _parsed(path: Path, table: dict[str, Any]) -> Domain:
    types = table.pop("types", {})
    if not isinstance(types, dict) or not all(isinstance(names, list) for names in types.values()):
        raise UserError(f'{path}: types: write type = ["Class", ...] below [types]')
    pairs = tuple((cls, kind) for kind, classes in types.items() for cls in classes)
    values = {"name": path.stem, "title": path.stem, **table, "types": pairs}
    entries = {key: Given(value, f"{path}: {key} =") for key, value in values.items()}
    domain = build(Domain, entries, str(path))
    for special in domain.special:
        if special not in types:
            raise UserError(f"{path}: special type {special!r} has no classes in [types]")
    return domain


_INPUT, _DOMAIN, _LEVELS = "input and output", "domain", "levels"


@dataclass(frozen=True, config=CHECKED)
class DomainSettings:
    r"""Makes a domain corpus: the sentences of some wiki categories, from a corpus run.

        nerbert domain --documents enwiki-corpus --domain music --output music-corpus
        nerbert domain --documents enwiki-corpus --roots "Rock music" --depth 2 \
            --special Band Song --output rock-corpus

    Our flags come first, Beam's follow.
    """

    documents: Location = option(
        help="output folder of a corpus run whose resolve stage is done",
        metavar="DIR",
        group=_INPUT,
        recipe=False,
        path="workers",
    )
    output: Location = option(
        help="folder of the domain corpus",
        metavar="DIR",
        group=_INPUT,
        recipe=False,
        path="workers",
    )
    workers: int | None = option(
        None, "local worker processes (default: one per core)", group=_INPUT, ge=1
    )
    domain: Text | None = option(
        None, f"{', '.join(names())}, or a TOML file", metavar="NAME", group=_DOMAIN
    )
    roots: Texts = option(
        (), "wiki categories to start from, instead of the domain's", metavar="NAME", group=_DOMAIN
    )
    depth: int | None = option(
        None, "steps down from the roots (default: the domain's, or 4)", group=_DOMAIN, ge=0
    )
    skip: Texts = option(
        (),
        "patterns of wiki categories that are not entered, beside the domain's, such as '* stubs'",
        metavar="PATTERN",
        group=_DOMAIN,
    )
    special: Texts = option(
        (),
        "types of the task level instead of the domain's, or classes",
        metavar="TYPE",
        group=_DOMAIN,
    )
    mentions: Literal["all", "links"] = option(
        "all",
        "what names an entity: links, and the other names of linked pages in the text; or links",
        group=_LEVELS,
        decides="sentences",
    )
    entity_mentions: int = option(
        2,
        "different entities with a class that a sentence of the entity level names",
        group=_LEVELS,
        ge=1,
        decides="sentences",
    )
    task_mentions: int = option(
        1,
        "mentions of special types in a sentence of the task level",
        group=_LEVELS,
        ge=1,
        decides="sentences",
    )
    exclude: Locations = option(
        (),
        "evaluation sets (CoNLL columns) whose sentences must not be in the corpus",
        metavar="FILE",
        group=_LEVELS,
        path="workers",
        decides="sentences",
    )
    columns: ColumnsText = option(
        None,
        "columns of words and tags in these files, by number or name (default: the first and the "
        "last)",
        metavar="word=N,tag=N",
        group=_LEVELS,
        decides="sentences",
    )

    def definition(self) -> Domain:
        """The domain, changed by the other options.

        Raises:
            UserError: no domain is named, or it is unknown.
        """
        if self.domain is not None:
            domain = load(self.domain)
        elif self.roots:
            domain = Domain("roots", ", ".join(self.roots), ())
        else:
            raise UserError(f"--domain: give one of {', '.join(names())}, a TOML file, or --roots")
        roots = [name.removeprefix("Category:").replace("_", " ") for name in self.roots]
        return domain.changed(roots, self.depth, self.skip, self.special)
