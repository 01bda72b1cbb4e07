"""Types pages of the dump that no other source types: trains a page typer, and applies it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nerbert.digests import digest64
from nerbert.storage import parts
from nerbert.storage.parts import Report
from nerbert.storage.places import Place
from ontology.entity_table import PAGE_TYPER
from ontology.titles import Keys
from ontology.voting.building import Facts, build
from ontology.voting.lone import LinkFeatures
from ontology.voting.page_features import Pages
from ontology.voting.page_typer import MOST_PAGES, PageTyper
from ontology.voting.statements import among
from pipeline.entities.facts import (
    FACTS,
    LINK_COLUMNS,
    LINK_FACTS,
    link_facts,
    read_facts,
    read_noun_facts,
    to_facts,
)
from pipeline.entities.type_facts import types_path
from pipeline.execution.part_pass import PartPass
from pipeline.plan import Plan, PlanPass

_FEATURES = ["key", "features"]
_WHOLE = 1 << 64


@dataclass
class TypedReport(Report):
    """Number of pages of a part that got a class."""

    typed: int


class TypePages(PlanPass, PartPass):
    """Writes the classes that the typer gives to the pages of each part, and its LINK_FACTS."""

    name = "page types"
    report = TypedReport

    def elements(self) -> Sequence[str]:
        return self._plan.parts if self._plan.settings.uses_page_typer else ()

    def part(self, element: Place) -> Place:
        return self._plan.entities.path / "page_types" / element.name

    @cached_property
    def _typer(self) -> PageTyper | None:
        content = _typer_path(self._plan).read_bytes()
        return PageTyper.from_bytes(content) if content else None

    @cached_property
    def _stated_keys(self) -> Keys:
        """Keys of all titles that files of types know."""
        keys = [
            batch.column("key").to_numpy()
            for number in range(len(self._plan.settings.types))
            for batch in parts.read_batches(types_path(self._plan, number), ["key"])
        ]
        return np.unique(np.concatenate([np.zeros(0, np.uint64), *keys]))

    def make(self, element: Place, part: Place, gathered: object) -> TypedReport:
        typed = 0
        with parts.writer(part, FACTS) as writer:
            facts = self._plan.entities.path / "pages" / element.name
            for batch in parts.read_batches(facts, _FEATURES, rows=65_536):
                pages = _pages(batch)
                if self._typer is None or not len(pages.keys):
                    continue
                classes = self._typer.classes_of(pages)
                rows = np.flatnonzero(classes >= 0)
                names = [self._typer.names[index] for index in classes[rows].tolist()]
                writer.write_batch(to_facts(pages.keys[rows], names))
                typed += len(rows)
        if self._plan.settings.judges_lone:
            batches = parts.read_batches(element, LINK_COLUMNS, rows=1024)
            with parts.writer(_links_path(self._plan, element), LINK_FACTS) as writer:
                writer.write_batch(link_facts(batches, self._stated_keys))
        return TypedReport(typed)


def typed_facts(plan: Plan) -> list[Facts]:
    """Statements of first sentences and of the page typer about the pages of the dump."""
    if not plan.settings.uses_page_typer:
        return []
    names = sorted(part.name for part in plan.parts)
    return [
        read_noun_facts(plan.entities.path / "pages", names),
        read_facts(plan.entities.path / "page_types", names, voter=PAGE_TYPER),
    ]


def train_typer(plan: Plan, types: Sequence[tuple[str, str]]) -> None:
    """Trains the page typer on pages of the dump that the other voters type.

    Args:
        plan: the plan.
        types: name of the part and of the file, for each file of instance types.
    """
    if not plan.settings.uses_page_typer:
        return
    folder = plan.entities.path / "pages"
    pages = sorted(part.name for part in plan.parts)
    sample = _sample([folder / name for name in pages], plan.settings.seed)
    sample_keys = np.sort(sample.keys)

    def of_sample(keys: pa.Array) -> pa.Array:
        return pa.array(among(keys.to_numpy(), sample_keys))

    facts = read_facts(folder, pages, of_sample)
    sources = [read_noun_facts(folder, pages, of_sample)]
    folder = plan.entities.path / "types"
    sources += [read_facts(folder, [part], of_sample, file) for part, file in types]
    table = build(facts, sources, plan.tree).table
    indices = table.classes[table.lookup_keys(sample.keys)] if len(sample.keys) else ()
    classes = [table.class_names[index] if index >= 0 else None for index in indices]
    typer = PageTyper.train(sample, classes, plan.tree, plan.settings.typer_precision)
    _typer_path(plan).write_bytes(typer.to_bytes() if typer else b"")


def _typer_path(plan: Plan) -> Place:
    return plan.entities.path / "page_typer.npz"


def typer_counts(plan: Plan) -> dict[str, float | int] | None:
    """How the typer was calibrated; None if there is none."""
    content = _typer_path(plan).read_bytes() if plan.settings.uses_page_typer else b""
    return vars(PageTyper.from_bytes(content).calibration) if content else None


def _pages(batch: pa.RecordBatch, is_wanted: Callable[[pa.Array], pa.Array] | None = None) -> Pages:
    """The pages of a batch that have features."""
    lengths = pc.list_value_length(batch.column("features"))
    wanted_rows = pc.fill_null(pc.greater(lengths, 0), False)
    if is_wanted is not None:
        wanted_rows = pc.and_(wanted_rows, is_wanted(batch.column("key")))
    batch = batch.filter(wanted_rows)
    features = batch.column("features")
    return Pages(
        batch.column("key").to_numpy(),
        features.flatten().to_numpy(),
        pc.list_value_length(features).to_numpy().astype(np.int64),
    )


def _sample(paths: Sequence[Place], seed: int) -> Pages:
    """Pages for training, drawn by a keyed digest of their titles."""
    total = sum(
        int(pc.sum(pc.greater(pc.list_value_length(batch.column("features")), 0)).as_py() or 0)
        for batch in _batches(paths, ["features"])
    )
    mask = np.uint64(digest64(seed, PAGE_TYPER, ""))
    bound = np.uint64(min(_WHOLE - 1, _WHOLE * MOST_PAGES // max(total, 1)))

    def is_drawn(keys: pa.Array) -> pa.Array:
        return pa.array((keys.to_numpy() ^ mask) <= bound)

    return _read_pages(paths, is_drawn)


def _read_pages(paths: Sequence[Place], is_wanted: Callable[[pa.Array], pa.Array]) -> Pages:
    """The wanted pages of some parts that have features."""
    batches = [_pages(batch, is_wanted) for batch in _batches(paths, _FEATURES)]
    return Pages(
        np.concatenate([np.zeros(0, np.uint64), *(pages.keys for pages in batches)]),
        np.concatenate([np.zeros(0, np.int32), *(pages.features for pages in batches)]),
        np.concatenate([np.zeros(0, np.int64), *(pages.sizes for pages in batches)]),
    )


def _links_path(plan: Plan, part: Place) -> Place:
    """Path of LINK_FACTS of a part of documents."""
    return plan.entities.path / "links" / part.name


def linked_features(plan: Plan) -> LinkFeatures | None:
    """Features of the pages that the dump has or links; None if no voter is doubted."""
    if not plan.settings.judges_lone:
        return None
    folder = plan.entities.path / "pages"
    pages = [folder / part.name for part in plan.parts]
    links = [_links_path(plan, part) for part in plan.parts]
    paths = [*pages, *links]

    def read(wanted_keys: Keys) -> Pages:
        return _read_pages(
            paths, lambda page_keys: pa.array(among(page_keys.to_numpy(), wanted_keys))
        )

    none = np.zeros(0, np.uint64)
    of_dump = np.concatenate([none, *(_pages(batch).keys for batch in _batches(pages, _FEATURES))])
    linked = (batch.column("key").to_numpy() for batch in _batches(links, ["key"]))
    return LinkFeatures(np.unique(np.concatenate([of_dump, *linked])), of_dump, read)


def _batches(paths: Sequence[Place], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The rows of some parts."""
    for path in paths:
        yield from parts.read_batches(path, columns, rows=65_536)
