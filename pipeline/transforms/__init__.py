"""The steps of a corpus as transforms of Apache Beam, for pipelines of your own.

    with beam.Pipeline() as pipeline:
        pages = ReadPages("dump.xml.bz2")
        (
            pipeline
            | pages
            | ExtractDocuments("run", pages.site)
            | LinkEntities("run")
            | FilterSentences("run")
            | Resample(alpha=0.7)
            | WriteExamples("corpus")
        )

`run` is the output folder of a finished `nerbert corpus`: its model of sentences, entity table,
dictionary and categories. The rows between two steps are typed, so they can be changed, filtered,
joined, and queried by Beam SQL. Draws are keyed by the example: they depend on no order.

Metrics count, under the name `nerbert`, what is left out, by reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import apache_beam as beam
from apache_beam.io.parquetio import WriteToParquet
from apache_beam.metrics.metric import MetricsFilter
from apache_beam.pvalue import AsSingleton, PCollection

from nerbert.errors import UserError
from nerbert.storage.places import Place
from nerbert.text.corpus import SPLITS
from pipeline.dump.site import Site
from pipeline.dump.streams import find_dumps
from pipeline.dump.units import cut, inspect
from pipeline.examples.rows import COLUMNS
from pipeline.transforms.rows import Anchor, Document, Example, LinkedDocument, Mention, WikiPage
from pipeline.transforms.run import Run
from pipeline.transforms.steps import (
    NAMESPACE,
    Choose,
    CountCategories,
    Extract,
    Link,
    category_weights,
    copies_of,
    corpus_row,
    first_page,
    label_ids,
    read_pages,
    write_labels,
)

__all__ = [
    "Anchor",
    "Document",
    "Example",
    "ExtractDocuments",
    "FilterSentences",
    "LinkEntities",
    "LinkedDocument",
    "Mention",
    "ReadPages",
    "Resample",
    "WikiPage",
    "WriteExamples",
    "counts",
]


def counts(result: Any) -> dict[str, int]:
    """What the transforms of a finished pipeline counted, such as "sentences hole"."""
    counters = result.metrics().query(MetricsFilter().with_namespace(NAMESPACE))["counters"]
    return {counter.key.metric.name: counter.result for counter in counters}


class ReadPages(beam.PTransform[Any, Any]):
    """Reads the pages of a dump. Damaged ones are counted.

    Attributes:
        site: the wiki, which `ExtractDocuments` needs.
    """

    def __init__(self, dump: str | Sequence[str], language: str | None = None) -> None:
        """Takes paths, globs or folders, and the wiki's language if the dump does not say it.

        Raises:
            UserError: a file is missing, or no dump of a Wikipedia.
        """
        super().__init__()
        paths = find_dumps([Place(path) for path in ([dump] if isinstance(dump, str) else dump)])
        inputs = [inspect(path, language) for path in paths]
        self._units = cut(inputs)
        self.site: Site = inputs[0].site

    def expand(self, root: Any) -> PCollection[Any]:
        units = root | beam.Create(self._units)
        return units | "Pages" >> beam.FlatMap(read_pages).with_output_types(WikiPage)


class ExtractDocuments(beam.PTransform[Any, Any]):
    """Pages -> documents of the articles. Other pages, and those that fail, are counted."""

    def __init__(self, run: str, site: Site) -> None:
        """Takes the folder of a run, whose model of sentences is used, and the wiki."""
        super().__init__()
        self._run, self._site = Run(run), site

    def expand(self, pages: PCollection[Any]) -> PCollection[Any]:
        return pages | beam.ParDo(Extract(self._run, self._site)).with_output_types(Document)


class LinkEntities(beam.PTransform[Any, Any]):
    """Documents -> documents with mentions and their categories, by a run's entity table."""

    def __init__(self, run: str) -> None:
        """Takes the folder of a run."""
        super().__init__()
        self._run = Run(run)

    def expand(self, documents: PCollection[Any]) -> PCollection[Any]:
        batches = documents | beam.BatchElements(1, 64)
        return batches | beam.ParDo(Link(self._run)).with_output_types(LinkedDocument)


class FilterSentences(beam.PTransform[Any, Any]):
    """Documents with mentions -> examples: filters and tokenises as `nerbert corpus` does."""

    def __init__(self, run: str, **settings: Any) -> None:
        """Takes the folder of a run, whose settings hold but for those given: `min_tokens=8`."""
        super().__init__()
        self._run = Run(run, settings)

    def expand(self, documents: PCollection[Any]) -> PCollection[Any]:
        batches = documents | beam.BatchElements(1, 64)
        examples = batches | beam.ParDo(Choose(self._run))
        by_tokens = examples | "By tokens" >> beam.GroupByKey()
        return by_tokens | "First page" >> beam.FlatMap(first_page).with_output_types(Example)


class Resample(beam.PTransform[Any, Any]):
    """Repeats train examples by p(E) ~ |E|^alpha; validation stays as it is."""

    def __init__(self, alpha: float = 0.7, every_sentence: bool = True, seed: int = 0) -> None:
        """Takes the exponent, whether each example stays at least once, and a seed."""
        super().__init__()
        self._alpha, self._least, self._seed = alpha, int(every_sentence), seed

    def expand(self, examples: PCollection[Any]) -> PCollection[Any]:
        train = examples | "Train" >> beam.Filter(lambda example: example.split == SPLITS[0])
        counted = train | beam.CombineGlobally(CountCategories())  # type: ignore[no-untyped-call]
        weights = counted | beam.Map(category_weights, self._alpha)
        copies = beam.FlatMap(copies_of, AsSingleton(weights), self._least, self._seed)
        return examples | copies.with_output_types(Example)


class WriteExamples(beam.PTransform[Any, Any]):
    """Writes examples as a corpus that `nerbert pretrain` reads: Parquet by split, labels.json."""

    def __init__(self, folder: str) -> None:
        """Takes a folder that is new or empty; raises a UserError for another."""
        super().__init__()
        self._folder = Place(folder)
        if self._folder.is_used_folder():
            raise UserError(f"{folder}: not empty; give a new folder")

    def expand(self, examples: PCollection[Any]) -> PCollection[Any]:
        counted = examples | beam.CombineGlobally(CountCategories())  # type: ignore[no-untyped-call]
        label_of_tag = counted | "Labels" >> beam.Map(label_ids)
        for split in SPLITS:
            write = WriteToParquet(
                self._folder / split / "part", COLUMNS, file_name_suffix=".parquet"
            )
            of_split = beam.Filter(lambda example, name=split: example.split == name)
            to_row = beam.Map(corpus_row, AsSingleton(label_of_tag))
            rows = examples | split >> of_split | f"Rows of {split}" >> to_row
            _ = rows | f"Write {split}" >> write
        return counted | beam.Map(write_labels, self._folder / "labels.json")
