"""`EntityTable`: page title -> (redirects followed) -> entity -> class, in memory-mapped arrays."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ontology.classes import ClassTree
from ontology.titles import Keys, title_keys

Int32 = npt.NDArray[np.int32]
Int16 = npt.NDArray[np.int16]
Int8 = npt.NDArray[np.int8]

NO_CLASS = -1
SOURCES = ("none", "dbpedia", "infobox")
"""Where the class of an entity comes from. The table stores the index into this tuple."""

_ARRAYS = ("keys", "entities", "classes", "sources")


@dataclass(frozen=True)
class PageFacts:
    """Facts from the dump: one entry per page.

    Attributes:
        keys: keys of the titles, shape (pages,).
        targets: key of the title that a redirect leads to, 0 for other pages, shape (pages,).
        classes: names of the classes that infoboxes give.
        class_indices: index into `classes` of each page, -1 for none, shape (pages,).
    """

    keys: Keys
    targets: Keys
    classes: Sequence[str]
    class_indices: Int32


@dataclass(frozen=True)
class TypeFacts:
    """Facts from DBpedia: one entry per statement "this resource has this class".

    Attributes:
        keys: keys of the titles, shape (statements,).
        classes: names of classes.
        class_indices: index into `classes` of each statement, shape (statements,).
    """

    keys: Keys
    classes: Sequence[str]
    class_indices: Int32


class EntityTable:
    """Maps titles to entities, and entities to classes.

    An entity is a page that is not a redirect. Titles that only DBpedia knows are entities, too.

    Attributes:
        class_names: names of the classes, by class index.
        keys: sorted title keys, shape (titles,).
        entities: entity index of each key, shape (titles,).
        classes: class index of each entity, or NO_CLASS, shape (entities,).
        sources: index into SOURCES of each entity, shape (entities,).
    """

    def __init__(
        self, class_names: Sequence[str], keys: Keys, entities: Int32, classes: Int16, sources: Int8
    ) -> None:
        self.class_names = list(class_names)
        self.keys = keys
        self.entities = entities
        self.classes = classes
        self.sources = sources

    def __len__(self) -> int:
        return len(self.keys)

    @classmethod
    def build(cls, pages: PageFacts, types: TypeFacts, tree: ClassTree) -> EntityTable:
        """Builds the table of a dump.

        Chains of redirects are followed. Titles in a cycle of redirects are entities without class.
        An entity has its most specific class of DBpedia; without one, the most specific class that
        DBpedia states for a redirect to it; without one, the class of its infobox.
        """
        names = sorted({*pages.classes, *types.classes}, key=lambda n: (-tree.depth(n), n))
        rank = {name: index for index, name in enumerate(names)}  # most specific first
        is_redirect = pages.targets != 0
        keys = np.unique(np.concatenate([pages.keys, pages.targets[is_redirect], types.keys]))
        final, circular = _follow(keys, pages.keys, pages.targets, is_redirect)
        entity_nodes, entities = np.unique(final, return_inverse=True)
        entity_of = entities.astype(np.int32)

        node = np.searchsorted(keys, types.keys)
        ranks = _ranks(types.classes, types.class_indices, rank)
        direct = final[node] == node
        classes = np.full(len(entity_nodes), len(names), np.int32)
        redirected = classes.copy()
        np.minimum.at(classes, entity_of[node[direct]], ranks[direct])
        np.minimum.at(redirected, entity_of[node[~direct]], ranks[~direct])
        classes = np.where(classes < len(names), classes, redirected)
        sources = (classes < len(names)).astype(np.int8)

        boxed = (pages.class_indices >= 0) & ~is_redirect
        node = np.searchsorted(keys, pages.keys[boxed])
        from_box = np.full(len(entity_nodes), len(names), np.int32)
        np.minimum.at(
            from_box, entity_of[node], _ranks(pages.classes, pages.class_indices[boxed], rank)
        )
        gaps = (classes == len(names)) & (from_box < len(names))
        classes[gaps] = from_box[gaps]
        sources[gaps] = 2
        lost = np.isin(entity_nodes, circular)
        classes[lost], sources[lost] = len(names), 0
        classes[classes == len(names)] = NO_CLASS
        return cls(names, keys, entity_of, classes.astype(np.int16), sources)

    def lookup(self, titles: pa.Array | Sequence[str]) -> Int32:
        """Entity index of each normal title, -1 for unknown ones, shape (titles,)."""
        return self.lookup_keys(title_keys(titles))

    def lookup_keys(self, keys: Keys) -> Int32:
        """Entity index of each title key, -1 for unknown ones, shape (keys,)."""
        order = np.argsort(keys)  # sorted keys read the memory-mapped table from front to back
        ordered = keys[order]
        place = np.minimum(np.searchsorted(self.keys, ordered), max(len(self.keys) - 1, 0))
        result = np.full(len(keys), -1, np.int32)
        if len(self.keys):
            hit = self.keys[place] == ordered
            result[order] = np.where(hit, self.entities[place], -1)
        return result

    def class_of(self, title: str) -> str | None:
        """Class of the page that a normal title leads to; None if it has none."""
        entity = int(self.lookup([title])[0])
        index = NO_CLASS if entity < 0 else int(self.classes[entity])
        return None if index == NO_CLASS else self.class_names[index]

    def save(self, folder: str | Path) -> None:
        """Writes the table: .npy files, and a JSON file with the names of the classes."""
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        for name in _ARRAYS:
            np.save(path / f"{name}.npy", getattr(self, name))
        text = json.dumps({"classes": self.class_names}, ensure_ascii=False, indent=1)
        (path / "classes.json").write_text(text + "\n", encoding="utf-8")

    @classmethod
    def open(cls, folder: str | Path) -> EntityTable:
        """Opens a saved table, memory-mapped."""
        path = Path(folder)
        names = json.loads((path / "classes.json").read_text(encoding="utf-8"))["classes"]
        arrays = [np.load(path / f"{name}.npy", mmap_mode="r") for name in _ARRAYS]
        return cls(names, *arrays)


def _ranks(names: Sequence[str], indices: Int32, rank: dict[str, int]) -> Int32:
    """Rank of the class at each index into `names`."""
    by_index = np.fromiter((rank[name] for name in names), np.int32, len(names))
    return by_index[indices] if len(names) else np.zeros(len(indices), np.int32)


def _follow(
    keys: Keys, sources: Keys, targets: Keys, is_redirect: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Index of the key where the redirects of each key end, and indices of keys in cycles."""
    following = np.arange(len(keys))
    source = np.searchsorted(keys, sources[is_redirect])
    following[source] = np.searchsorted(keys, targets[is_redirect])
    pages = np.searchsorted(keys, sources[~is_redirect])
    # Two titles may share a normal form; an article wins over a redirect.
    following[pages] = pages
    step = following.copy()
    # Each round doubles the number of redirects that are followed.
    for _ in range(len(keys).bit_length()):
        further = step[step]
        if np.array_equal(further, step):
            break
        step = further
    circular = np.flatnonzero(following[step] != step)
    step[circular] = circular
    return step, circular
