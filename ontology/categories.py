"""Category sets: `specific`, `nerbert315`, `nerbert212`, `coarse4`, or a user's table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path

from ontology.classes import ClassTree

ENTITY = "ENTITY"
"""Category of anchors whose page has no class, or a class without category."""

SHIPPED = ("specific", "nerbert315", "nerbert212", "coarse4")
"""Names of the shipped sets. `specific` makes every class its own category."""


class CategorySet:
    """Maps classes to categories.

    A class without a row in the table has the category of its nearest ancestor with a row; without
    such an ancestor its category is ENTITY.
    """

    def __init__(self, name: str, table: Mapping[str, str] | None) -> None:
        """Builds a set.

        Args:
            name: name of the set.
            table: class -> category; None makes every class its own category.
        """
        self.name = name
        self._table = table

    @classmethod
    def load(cls, name: str) -> CategorySet:
        """Loads a shipped set by name, or a user's file with lines `class TAB category`.

        Raises:
            ValueError: there is no such set or file, or a line is not of this form.
        """
        if name == "specific":
            return cls(name, None)
        if name in SHIPPED:
            return cls(name, _shipped(name))
        path = Path(name)
        if not path.is_file():
            raise ValueError(
                f"unknown category set {name!r}: use {', '.join(SHIPPED)}, or the path of a table "
                "with lines 'class TAB category'"
            )
        return cls(path.name, _read_table(path.read_text(encoding="utf-8-sig"), name))

    def category(self, class_name: str | None, tree: ClassTree) -> str:
        """Category of a class; ENTITY for None."""
        if class_name is None:
            return ENTITY
        if self._table is None:
            return class_name
        for name in (class_name, *tree.ancestors(class_name)):
            if (category := self._table.get(name)) is not None:
                return category
        return ENTITY

    def coarsening(self, categories: Sequence[str], tree: ClassTree) -> list[str]:
        """Maps the categories of a corpus, made with a finer set, to categories of this set.

        Args:
            categories: classes of the ontology, or categories of a shipped set. A user's table may
                also have rows for other names.
            tree: the classes.

        Raises:
            ValueError: a category is unknown, or its classes have several categories in this set.
        """
        return [self._coarser(name, tree) for name in categories]

    def _coarser(self, name: str, tree: ClassTree) -> str:
        if name == ENTITY:
            return ENTITY
        if self._table and name in self._table:
            return self._table[name]
        if name in tree:
            return self.category(name, tree)
        for finer in SHIPPED[1:]:
            classes = [row for row, category in _shipped(finer).items() if category == name]
            if coarser := {self.category(row, tree) for row in classes}:
                if len(coarser) > 1:
                    raise ValueError(
                        f"category {name!r} of the corpus would become several "
                        f"({', '.join(sorted(coarser)[:3])}); make the corpus with finer categories"
                    )
                return coarser.pop()
        raise ValueError(
            f"category {name!r} of the corpus is neither a class nor a category of a shipped set; "
            "give a table 'category TAB category'"
        )

    def names(self, tree: ClassTree) -> list[str]:
        """All categories of the classes of a tree: ENTITY, then the others, sorted."""
        used = {self.category(name, tree) for name in tree.names} - {ENTITY}
        return [ENTITY, *sorted(used)]


def _read_table(text: str, where: str) -> dict[str, str]:
    table: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        pair = [cell.strip() for cell in line.split("\t")]
        if len(pair) != 2 or not all(pair) or any(c.isspace() for c in pair[1]):
            raise ValueError(
                f"{where}:{number}: {line!r} is not 'class TAB category' (no spaces inside)"
            )
        table[pair[0]] = pair[1]
    if not table:
        raise ValueError(f"{where}: it has no line 'class TAB category'")
    return table


@cache
def _shipped(name: str) -> dict[str, str]:
    folder = files("ontology") / "data"
    classes = _read_table((folder / "nerbert315.tsv").read_text(encoding="utf-8"), "nerbert315.tsv")
    if name == "nerbert315":
        return classes
    merge = _read_table((folder / f"{name}.tsv").read_text(encoding="utf-8"), f"{name}.tsv")
    return {class_name: merge[category] for class_name, category in classes.items()}
