"""The graph of wiki categories, and the walk from some roots."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nerbert.errors import UserError
from nerbert.storage import parts
from nerbert.storage.places import Place
from pipeline.dump.site import ARTICLE, CATEGORY

EDGES = pa.schema(
    [
        ("name", pa.string()),  # wiki category, without its namespace
        ("parent", pa.string()),  # wiki category that it is in, or redirects to; null for none
        ("kind", pa.string()),  # page: from a category page; redirect; used: from an article
    ]
)
"""Columns of `categories/part-*.parquet`: edges of the graph in a part of documents."""

WALKED = pa.schema(
    [("name", pa.string()), ("root", pa.string()), ("depth", pa.int32()), ("parent", pa.string())]
)
"""Columns of `wiki_categories.parquet`; `parent` is the category before it on the walk."""

_SUGGESTED_FROM = 20_000
_CHAIN = 8
"""Number of redirects that are followed in a chain."""

Ints = npt.NDArray[np.int64]


def edges(source: Place) -> pa.RecordBatch:
    """The distinct edges in a part of documents, sorted."""
    triples: set[tuple[str, str | None, str]] = set()
    columns = ["namespace", "title", "redirect", "categories"]
    for batch in parts.read_batches(source, columns):
        spaces = batch.column("namespace").to_numpy()
        used = batch.filter(pa.array(spaces == ARTICLE)).column("categories")
        triples.update((name, None, "used") for name in pc.unique(used.flatten()).to_pylist())
        for row in batch.filter(pa.array(spaces == CATEGORY)).to_pylist():
            name = row["title"].partition(":")[2]
            if row["redirect"] is not None:
                triples.add((name, row["redirect"].partition(":")[2], "redirect"))
            else:
                parents = row["categories"] or [None]
                triples.update((name, parent, "page") for parent in parents)
    rows = sorted(triples, key=lambda row: (row[0], row[1] or "", row[2]))
    fields = [pa.array([row[place] for row in rows], pa.string()) for place in range(len(EDGES))]
    return pa.RecordBatch.from_arrays(fields, schema=EDGES)


class Graph:
    """The wiki categories, and their direct sub-categories."""

    def __init__(self, table: pa.Table) -> None:
        """Builds the graph from the edges of all parts."""
        size = len(table)
        encoded = (
            pa.chunked_array(
                [*table.column("name").chunks, *table.column("parent").chunks], pa.string()
            )
            .combine_chunks()
            .dictionary_encode()
        )
        codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        kinds = table.column("kind").to_numpy()
        self.names: pa.Array = encoded.dictionary
        self.has_pages = bool((kinds == "page").any())
        child, parent = codes[:size], codes[size:]
        self._stands_for = _followed(len(self.names), child, parent, kinds == "redirect")
        real = (kinds == "page") & (parent >= 0)
        child, parent = self._stands_for[child[real]], self._stands_for[parent[real]]
        order = np.lexsort((child, parent))
        self._children, self._parents = child[order], parent[order]

    def codes(self, names: Sequence[str]) -> Ints:
        """Code of each category, -1 for unknown ones."""
        indices = pc.index_in(pa.array(names, pa.string()), value_set=self.names).fill_null(-1)
        codes: Ints = indices.to_numpy(zero_copy_only=False).astype(np.int64)
        return codes

    def below(self, nodes: Ints) -> tuple[Ints, Ints]:
        """Children of some categories, and the index of each child's parent among them."""
        first = np.searchsorted(self._parents, nodes, "left")
        counts = np.searchsorted(self._parents, nodes, "right") - first
        origin = np.repeat(np.arange(len(nodes)), counts)
        offsets = np.arange(len(origin)) - np.repeat(np.cumsum(counts) - counts, counts)
        return self._children[first[origin] + offsets], origin

    def walk(self, roots: Sequence[str], depth: int, skip: Sequence[str]) -> pa.Table:
        """Walks breadth first from the roots to the categories at most `depth` steps below.

        Each category is reached once, on its shortest path; of equally short paths, from the root
        that is named first. Categories that match `skip` are not entered. Redirects are followed.

        Returns:
            Rows of WALKED, sorted by depth and root.

        Raises:
            UserError: a root is unknown, or there are no category pages to walk along.
        """
        start, numbers = self._roots(roots)
        if depth and not self.has_pages:
            raise UserError(
                "the documents hold no category pages, so nothing is known to be below "
                f"{roots[0]!r}; take a dump with them, or --depth 0 and all wiki categories in "
                "--roots"
            )
        skipped = re.compile("|".join(map(fnmatch.translate, skip)) or r"(?!)")
        size = len(self.names)
        level, root, via = np.full(size, -1), np.full(size, -1), np.full(size, -1)
        level[start], root[start] = 0, numbers
        frontier = start
        for step in range(1, depth + 1):
            children, origin = self.below(frontier)
            fresh = level[children] < 0
            children, places = np.unique(children[fresh], return_index=True)
            origin = origin[fresh][places]
            entered = np.array(
                [not skipped.fullmatch(name) for name in self._named(children)], bool
            )
            children, origin = children[entered], origin[entered]
            parents = frontier[origin]
            level[children], root[children], via[children] = step, root[parents], parents
            frontier = children[np.argsort(root[children], kind="stable")]
        return self._table(roots, level, root, via)

    def _named(self, codes: Ints) -> list[str]:
        names: list[str] = self.names.take(pa.array(codes)).to_pylist()
        return names

    def _roots(self, roots: Sequence[str]) -> tuple[Ints, Ints]:
        """The distinct codes of the roots, and their places in the list."""
        codes = self.codes(roots)
        for name, code in zip(roots, codes.tolist(), strict=True):
            if code < 0:
                raise UserError(
                    f"--roots: no wiki category {name!r} in the documents{self._hint(name)}"
                )
        targets = self._stands_for[codes]
        first = np.sort(np.unique(targets, return_index=True)[1])
        return targets[first], first

    def _hint(self, name: str) -> str:
        """A hint with similar names, among those that share a word."""
        words = sorted(re.findall(r"\w{3,}", name), key=len, reverse=True)[:2] or [name]
        pattern = "|".join(re.escape(word[:5]) for word in words)
        like = self.names.filter(pc.match_substring_regex(self.names, pattern, ignore_case=True))
        near = get_close_matches(name, like.to_pylist()[:_SUGGESTED_FROM], 3, cutoff=0.4)
        return f"; did you mean {', '.join(map(repr, near))}?" if near else ""

    def _table(self, roots: Sequence[str], level: Ints, root: Ints, via: Ints) -> pa.Table:
        of = self._stands_for  # articles may be in categories that are redirects
        reached = np.flatnonzero(level[of] >= 0)
        order = np.lexsort((reached, root[of[reached]], level[of[reached]]))
        reached = reached[order]
        node = of[reached]
        columns: dict[str, Any] = {
            "name": self.names.take(pa.array(reached)),
            "root": pa.array(list(roots)).take(pa.array(root[node])),
            "depth": pa.array(level[node], pa.int32()),
            "parent": self.names.take(pa.array(via[node], mask=via[node] < 0)),
        }
        return pa.table(columns, schema=WALKED)


def _followed(size: int, child: Ints, parent: Ints, redirects: Any) -> Ints:
    """The category that each category redirects to, or itself; cycles are ignored."""
    target = np.arange(size)
    target[child[redirects]] = parent[redirects]
    reached = target
    for _ in range(_CHAIN):
        reached = target[reached]
    circular = target[reached] != reached
    return np.where(circular, np.arange(size), reached)
