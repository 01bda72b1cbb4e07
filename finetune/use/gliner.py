"""Labelled texts as the training of GLiNER and GLiNER2 reads them: a part of the seam `exports`."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from finetune.use.formats import Rows, write_list
from ontology.classes import ClassTree, spaced

_SEED = 0
_LEAST = 2
"""Types that a sentence does not have, at least; else as many as it has mentions."""


def write_gliner(rows: Rows, path: Path) -> int:
    """Writes the list of GLiNER's training: tokens, mentions by first and last token, other types.

    Types are in words. Mentions inside of mentions are among them. GLiNER learns that a span which
    is no mention has none of the types, so texts with names of unknown type, such as links to pages
    without class, are left out. `ner_negatives` are types that the text does not have, drawn by how
    often earlier texts have them; no class above or below one of its own is among them.
    """
    return write_list(_examples(rows), path)


def _examples(rows: Rows) -> Iterator[dict[str, Any]]:
    tree, draw = ClassTree.shipped(), random.Random(_SEED)
    counts: Counter[str] = Counter()
    for row in rows:
        if row.has_unknown:
            continue
        types = [name for *_, name in row.spans]
        example: dict[str, Any] = {
            "tokenized_text": row.tokens,
            "ner": [[start, end - 1, spaced(name)] for start, end, name in row.spans],
        }
        if negatives := _negatives(types, counts, tree, draw):
            example["ner_negatives"] = [spaced(name) for name in negatives]
        counts.update(types)
        yield example


def _negatives(
    types: list[str], counts: Counter[str], tree: ClassTree, draw: random.Random
) -> list[str]:
    """Types that a text does not have, without their relatives in the tree."""
    if not counts:
        return []
    size = max(_LEAST, len(types))
    names = dict.fromkeys(draw.choices(list(counts), list(counts.values()), k=size))
    return [
        name for name in names if not any(_are_related(name, present, tree) for present in types)
    ]


def _are_related(first: str, second: str, tree: ClassTree) -> bool:
    if first == second:
        return True
    if first not in tree or second not in tree:
        return False
    return first in tree.ancestors(second) or second in tree.ancestors(first)
