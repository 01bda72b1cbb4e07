"""The documents of a run on an earlier dump: pages whose revision is the same are not parsed again.

Sentences and names are read anew if the models of the new dump are others, so the documents are
those that this dump gives by itself. Dumps are in the order of page ids, so each part is read once.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc

from nerbert.errors import UserError
from nerbert.storage import parts
from nerbert.storage.folders import Folder
from nerbert.storage.places import Place
from nerbert.text.punkt import Difference
from nerbert.text.sentences import SENTENCES, SentenceModel
from pipeline.documents.rows import Row
from pipeline.dump.pages import Page

_BLOCK = 256
"""Rows that are read together."""
_OPEN_PARTS, _KNOWN_PARTS = 2, 64
"""Parts that are kept in memory (a unit of the new dump lies across two of the earlier one), and
parts whose page ids are."""


def check_previous(run: Place, documents: Folder) -> None:
    """Checks that the documents of an earlier run were made as those of the new one are.

    Args:
        run: output folder of the earlier run.
        documents: folder of the new documents.

    Raises:
        UserError: it has none, or by another version, of another wiki, or with other options.
    """
    earlier = Folder(run / "documents", {})
    if not earlier.on_disk().get("complete"):
        raise UserError("has no finished documents/; name the output of an earlier run", run)
    old_facts, new_facts = earlier.on_disk()["made_from"], documents.state["made_from"]
    for key in sorted({*old_facts, *new_facts} - {"dump", "dump_files"}):
        if old_facts.get(key) != new_facts.get(key):
            name = {"version": "version of nerbert", "site": "wiki"}.get(key, key.replace("_", "-"))
            raise UserError(f"made with another {name}; leave it out", run)


class Previous:
    """Finds the documents of pages in the parts of an earlier run."""

    def __init__(self, run: Place, model: SentenceModel) -> None:
        """Takes the run's folder, and the model of sentences of this dump.

        Raises:
            UserError: the run's own model cannot be read.
        """
        folder = run / "documents"
        self._difference = _model_difference(folder / SENTENCES, model)
        self._ranges = [
            (report["first_page"], report["last_page"], folder / f"{stem}.parquet")
            for path in (folder / "reports" / "part-*.json").files()
            if (report := path.read_json())["first_page"] is not None
            for stem in [path.name.removesuffix(".json")]
        ]
        self._places = lru_cache(_KNOWN_PARTS)(_places)
        self._part = lru_cache(_OPEN_PARTS)(_part)
        self._block = lru_cache(_OPEN_PARTS)(
            lambda path, number: _rows(self._part(path).slice(number * _BLOCK, _BLOCK))
        )

    def keeps_sentences(self, text: str) -> bool:
        """Whether the model of this dump splits a text as that of the earlier one did."""
        return not (self._difference and self._difference.touches(text))

    def row(self, page: Page) -> Row | None:
        """The row of a page that has not changed since; None for others."""
        for first, last, path in self._ranges:
            if not first <= page.page_id <= last:
                continue
            place = self._places(path).get((page.page_id, page.revision_id))
            if place is not None:
                row = self._block(path, place // _BLOCK)[place % _BLOCK]
                if (page.namespace, page.title) == (row["namespace"], row["title"]):
                    return dict(row)
        return None


def _model_difference(path: Place, model: SentenceModel) -> Difference:
    """How the model of sentences of an earlier run differs from that of this dump."""
    try:
        earlier_model = SentenceModel.from_json(path.read_bytes())
    except ValueError as error:
        raise UserError(f"{error}; leave --previous out", path) from error
    return Difference(earlier_model.parameters, model.parameters)


def _places(path: Place) -> dict[tuple[int, int], int]:
    """The row of each page and revision of a part. Slices of a dump may lie in each other."""
    columns = ("page_id", "revision_id")
    pages = [
        page
        for batch in parts.read_batches(path, columns, rows=65_536)
        for page in zip(*(batch.column(name).to_pylist() for name in columns), strict=True)
    ]
    return {page: place for place, page in enumerate(pages)}


def _rows(table: pa.Table) -> list[Row]:
    """The rows of a table; by columns this is four times as fast as by rows."""
    columns = {
        name: table.column(name).to_pylist() for name in table.column_names if name != "anchors"
    }
    anchors = table.column("anchors").combine_chunks()
    fields = [field.to_pylist() for field in anchors.flatten().flatten()]
    flat = list(zip(*fields, strict=True))
    ends = pc.cumulative_sum(pc.list_value_length(anchors)).to_pylist()
    columns["anchors"] = [flat[start:end] for start, end in pairwise([0, *ends])]
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _part(path: Place) -> pa.Table:
    return pa.concat_tables(parts.read_groups(path))
