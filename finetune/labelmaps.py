"""Entity types under other names, and how the sentences of a set are read."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from finetune.conll import Sentence
from ontology.categories import ENTITY
from ontology.classes import ClassTree
from pipeline.errors import UserError

UNIFIED = "unified"
"""Name of the shipped label map."""

NONE = "none"
"""Name of the label map that leaves types as they are."""

OUTSIDE = "O"
"""New name of a type whose mentions go."""


def _key(name: str) -> str:
    return name.casefold().replace("_", "-")


class LabelMap:
    """New names for entity types; a type that it does not know keeps its name."""

    def __init__(self, names: Mapping[str, str]) -> None:
        """Takes old name -> new name; old names in any case, `-` and `_` alike."""
        self._names = {_key(old): new for old, new in names.items()}

    @classmethod
    def load(cls, name: str) -> LabelMap:
        """`none`, `unified`, or a TOML file of lines `new = ["old", ...]`; new name "O" drops.

        Raises:
            UserError: there is no such file, it is no such table, or a name stands in it twice.
        """
        if name == NONE:
            return cls({})
        try:
            path = files("finetune") / "labels.toml" if name == UNIFIED else Path(name)
            table = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise UserError(
                f"--label-map {name}: {error}; use none, unified, or a TOML file of lines "
                'new = ["old", ...]'
            ) from error
        names: dict[str, str] = {}
        for new, olds in table.items():
            if not isinstance(olds, list) or not all(isinstance(old, str) for old in olds):
                raise UserError(f'--label-map {name}, {new}: write {new} = ["old", ...]')
            for old in map(_key, olds):
                if names.setdefault(old, new) != new:
                    raise UserError(f"--label-map {name}: {old} is both {names[old]} and {new}")
        return cls(names)

    def type(self, name: str) -> str:
        """New name of a type."""
        return self._names.get(_key(name), name)

    def tags(self, tags: Sequence[str]) -> list[str]:
        """IOB2 tags under the new names."""
        return renamed(tags, self.type)


def renamed(tags: Sequence[str], new_name: Callable[[str], str]) -> list[str]:
    """IOB2 tags whose types have other names; mentions whose new name is "O" go."""
    result = []
    for tag in tags:
        prefix, _, name = tag.partition("-")
        new = new_name(name) if name else OUTSIDE
        result.append(OUTSIDE if new == OUTSIDE else f"{prefix}-{new}")
    return result


@dataclass(frozen=True)
class View:
    """How the sentences of sets are read.

    Attributes:
        label_map: `none`, `unified`, or a file of `LabelMap.load`.
        lowercase: whether words are put in lower case.
    """

    label_map: str = NONE
    lowercase: bool = False

    def of(self, sentences: Iterable[Sentence]) -> list[Sentence]:
        """The sentences so read."""
        names = LabelMap.load(self.label_map)
        return [
            Sentence([word.lower() for word in row.tokens] if self.lowercase else row.tokens,
                     names.tags(row.tags))
            for row in sentences
        ]  # fmt: skip


def same_name(name: str, types: Sequence[str]) -> list[str]:
    """The type of that very name, if there is one."""
    return [name] if name in types else []


def nearest(name: str, types: Sequence[str]) -> list[str]:
    """Types of a pre-trained head that are nearest to a type of a data set.

    That of its name, in any case; else, in the DBpedia ontology, its nearest ancestor; else all
    classes below it; else ENTITY; else none.

    >>> nearest("politician", ["Person", "City", "Mountain"])
    ['Person']
    >>> nearest("location", ["Person", "City", "Mountain"])
    ['City', 'Mountain']
    """
    unified, tree = LabelMap.load(UNIFIED), ClassTree.shipped()
    by_key = {_key(unified.type(kind)): kind for kind in types}
    same = tree.known_name(name) or next(
        (kind for kind in tree.names if unified.type(kind) == unified.type(name)), None
    )
    above = tree.ancestors(same) if same else []
    for candidate in (name, *above):
        if (found := by_key.get(_key(unified.type(candidate)))) is not None:
            return [found]
    below = [kind for kind in types if same and kind in tree and same in tree.ancestors(kind)]
    return below or [kind for kind in types if kind == ENTITY]


def onto(types: Iterable[str], names: LabelMap) -> Callable[[str], str]:
    """For zero-shot: what a predicted type is called among the types of a target set.

    The type itself, under its new name; else, for a class of the DBpedia ontology, its nearest
    ancestor among them (a Politician is a person where there is no politician); else "O".

    Args:
        types: of the target set, under their new names.
        names: new names of predicted types.
    """
    wanted = {_key(name): name for name in types}
    tree = ClassTree.shipped()

    def find(name: str) -> str:
        above = tree.ancestors(name) if name in tree else []
        for candidate in (name, *above):
            for spelling in (_key(names.type(candidate)), _key(candidate)):
                if spelling in wanted:
                    return wanted[spelling]
        return OUTSIDE

    return find
