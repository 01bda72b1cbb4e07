"""A finished run of `nerbert corpus`, as what transforms work with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nerbert.errors import UserError
from nerbert.storage.places import Place, local_copies
from nerbert.text.overlap import SentenceIndex
from nerbert.text.sentences import SENTENCES, SentenceModel
from ontology.categories import CategorySet
from ontology.classes import ClassTree
from ontology.entity_table import EntityTable
from pipeline.entities.resolve import open_table
from pipeline.examples.mentions import Labelling
from pipeline.examples.propagation import Propagation
from pipeline.examples.selector import Selector
from pipeline.language import CommonWords
from pipeline.plan import MANIFEST, WORDS
from pipeline.settings import CorpusSettings

CHANGEABLE = (
    *("drop_entity", "keep_untyped", "drop_other_languages", "min_tokens", "max_tokens"),
    *("split", "validation_share", "exclude", "columns", "seed"),
)
"""Settings that a pipeline may change; the tables of the run depend on the others."""


class Run:
    """What a finished run of `nerbert corpus` knows; it is opened on the machines that need it."""

    def __init__(self, folder: str, changes: Mapping[str, Any] | None = None) -> None:
        """Raises a UserError for no finished run, or a setting that it decides."""
        self.folder = Place(folder)
        manifest = (self.folder / MANIFEST).read_json_or_none() or {}
        report = (self.folder / "corpus" / "report.json").read_json_or_none()
        if not manifest or not report:
            raise UserError(f"{folder}: no finished run of nerbert corpus; make one first")
        settings = manifest["settings"]
        if settings["resolve"]["ontology"] != "shipped":
            raise UserError(f"{folder}: made with --ontology, which transforms cannot read")
        self.language: str = report["language"]
        self.list_items: bool = settings["extract"]["list_items"]
        if fixed := sorted({*(changes or {})} - {*CHANGEABLE}):
            raise UserError(f"{fixed[0]}: decided by the run; change {', '.join(CHANGEABLE)}")
        self.settings = CorpusSettings(**{**settings["select"], **(changes or {})})
        self.frequent: Sequence[str] = report["categories"]["frequent"]
        self.categories: Sequence[str] = list(report["categories"]["table"])

    def sentence_model(self) -> SentenceModel:
        """The model of sentences."""
        return SentenceModel.from_json((self.folder / "documents" / SENTENCES).read_bytes())

    def common_words(self) -> CommonWords:
        """The most frequent words of the dump."""
        return CommonWords.from_json((self.folder / "documents" / WORDS).read_bytes())

    def selector(self) -> tuple[Selector, EntityTable, Labelling]:
        """The selector, the entity table, and the categories of its entities."""
        table = open_table(self.folder / "entities")
        labelling = Labelling.of(
            table, CategorySet.load(self.settings.categories), ClassTree.shipped()
        ).keep(self.categories)
        common, examples = self.common_words(), self.folder / "examples"
        propagation = Propagation.of_run(table, examples, self.settings, common, self.language)
        with local_copies(self.settings.exclude) as paths:
            excluded = SentenceIndex.of_files(paths, self.settings.columns)
        frequent, settings = self.frequent, self.settings
        selector = Selector(
            table, labelling, frequent, settings, excluded, propagation, self.language, common
        )
        return selector, table, labelling
