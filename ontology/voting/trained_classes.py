"""The classes that a page typer is trained on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ontology.classes import ClassTree

FEWEST_PAGES = 3
"""A class needs so many pages; those of rarer ones count for the class above."""
UNTYPED = ""

LEFT_OUT = -1
"""Label of pages of rare classes, which are not trained on."""


def class_number(label: str | None, trained: Sequence[str]) -> int:
    """Label id: number of the class; that after the last one for untyped pages."""
    if label == UNTYPED:
        return len(trained)
    return trained.index(label) if label in trained else LEFT_OUT


def trained_classes(classes: Sequence[str | None], tree: ClassTree) -> list[str | None]:
    """The class that each page is trained with: its nearest one with enough pages, or None."""
    counts = Counter(
        name for cls in classes if cls is not None for name in (cls, *tree.ancestors(cls))
    )
    nearest: dict[str | None, str | None] = {None: UNTYPED}
    for cls in {cls for cls in classes if cls is not None}:
        line = (cls, *tree.ancestors(cls))
        nearest[cls] = next((name for name in line if counts[name] >= FEWEST_PAGES), None)
    return [nearest[cls] for cls in classes]
