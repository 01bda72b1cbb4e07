"""What a domain is: its wiki categories, the classes of its entity types, and which are special."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from importlib.resources import files as resource_files
from pathlib import Path
from typing import Any

from ontology.categories import CategorySet
from ontology.classes import ClassTree
from pipeline.config import at_least
from pipeline.errors import UserError

MISC = "misc"
"""Type of a mention whose class has none of the domain's types."""


LEVELS = {"domain": ("domain",), "entity": ("entity",), "task": ("task",),
          "integrated": ("entity", "task", "task")}  # fmt: skip
"""Views of a domain corpus, and the flags whose sentences each holds; `domain` flags all.

Source: Liu et al. 2021 (CrossNER), arXiv:2012.04373, section 3.1.
"""


@dataclass(frozen=True)
class Domain:
    """A domain's definition.

    Attributes:
        name: short, for files.
        title: for people.
        roots: wiki categories that it begins with.
        depth: steps down from them.
        skip: patterns of wiki categories that are not entered (`*` and `?` as in file names).
        special: entity types that only this domain has.
        types: pairs of a class and the entity type that it and the classes below it have.
    """

    name: str
    title: str
    roots: tuple[str, ...]
    depth: int = 4
    skip: tuple[str, ...] = ()
    special: tuple[str, ...] = ()
    types: tuple[tuple[str, str], ...] = ()

    @property
    def categories(self) -> CategorySet:
        """Class -> type; of a class's own and its ancestors' the nearest wins."""
        return CategorySet(self.name, dict(self.types))

    def check(self, tree: ClassTree) -> None:
        """Whether its classes are the ontology's.

        Raises:
            UserError: one is not.
        """
        for name, _ in self.types:
            if name not in tree:
                near = get_close_matches(name, tree.names, 1)
                hint = f"; did you mean {near[0]}?" if near else ""
                raise UserError(f"domain {self.name}: the ontology has no class {name}{hint}")

    def changed(
        self, roots: Sequence[str], depth: int | None, skip: Sequence[str], special: Sequence[str]
    ) -> Domain:
        """The same with what flags say instead.

        Args:
            roots: none for the domain's own.
            depth: likewise.
            skip: patterns beside its own.
            special: types of the domain, or classes, which become types of their own.
        """
        known = {kind for _, kind in self.types}
        new = [name for name in special if name not in known]
        return replace(
            self,
            roots=tuple(roots) or self.roots,
            depth=self.depth if depth is None else depth,
            skip=(*self.skip, *skip),
            types=(*self.types, *((name, name.lower()) for name in new)),
            special=tuple(n if n in known else n.lower() for n in special) or self.special,
        )


@dataclass(frozen=True)
class DomainSettings:
    """Everything that decides a domain corpus.

    Attributes:
        documents: output folder of a run of the pipeline, with `documents/` and `entities/`.
        output: folder of the domain corpus.
        domain: its definition.
        entity_mentions: distinct mentions with a class that a sentence of the entity level has.
        task_mentions: mentions of special types that a sentence of the task level has.
        exclude: column files of evaluation sets to keep out.
    """

    documents: str
    output: str
    domain: Domain
    entity_mentions: int = 2
    task_mentions: int = 1
    exclude: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        at_least("--depth", self.domain.depth, 0)
        at_least("--entity-mentions", self.entity_mentions, 1)
        at_least("--task-mentions", self.task_mentions, 1)


def names() -> list[str]:
    """The shipped domains."""
    folder = resource_files("pipeline") / "domains"
    return sorted(p.name[:-5] for p in folder.iterdir() if p.name.endswith(".toml"))


def load(name: str) -> Domain:
    """A shipped domain by name, or a user's TOML file by path.

    Raises:
        UserError: there is no such domain, or the file does not describe one.
    """
    if name in names():
        text = (resource_files("pipeline") / "domains" / f"{name}.toml").read_text("utf-8")
    elif Path(name).is_file():
        text = Path(name).read_text(encoding="utf-8-sig")
    else:
        near = get_close_matches(name.lower(), names(), 1, cutoff=0.4)
        hint = f"did you mean {near[0]}? " if near else ""
        raise UserError(f"--domain {name}: no such domain; {hint}There are {', '.join(names())}; "
                        "or give a TOML file like those, or --roots")  # fmt: skip
    try:
        return _parsed(Path(name).stem, tomllib.loads(text))
    except (tomllib.TOMLDecodeError, TypeError, AttributeError) as error:
        raise UserError(f"{name}: no domain: {error}") from None


def _parsed(name: str, table: dict[str, Any]) -> Domain:
    types = [(cls, kind) for kind, classes in table.pop("types", {}).items() for cls in classes]
    fields: dict[str, Any] = {}
    for key, value in table.items():
        if key in ("roots", "skip", "special"):
            if not isinstance(value, list):
                raise TypeError(f"{key} is no list")
            value = tuple(value)
        fields[key] = value
    domain = Domain(**{"name": name, "title": name, "types": tuple(types), **fields})
    for special in domain.special:
        if special not in {kind for _, kind in types}:
            raise UserError(f"{name}: special type {special!r} has no classes in [types]")
    return domain
