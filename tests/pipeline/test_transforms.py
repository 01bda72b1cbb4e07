"""The transforms of Beam: the rows of `nerbert corpus`, and pipelines that change them."""

import os
import re
import subprocess
import sys

import pytest

beam = pytest.importorskip("apache_beam")

from apache_beam.testing.test_pipeline import TestPipeline as BeamTest  # noqa: E402
from apache_beam.testing.util import assert_that, equal_to  # noqa: E402

from nerbert import load_corpus  # noqa: E402
from nerbert.errors import UserError  # noqa: E402
from nerbert.storage.places import Place  # noqa: E402
from pipeline.transforms import (  # noqa: E402
    ExtractDocuments,
    FilterSentences,
    LinkEntities,
    ReadPages,
    Resample,
    WikiPage,
    WriteExamples,
    counts,
)
from tests.helpers.runs import ROOT  # noqa: E402

DUMP = Place(ROOT / "pipeline" / "data" / "demo.xml")


@pytest.fixture
def run(demo):
    return str(demo[0])


def tagged(folder):
    """The rows of a corpus by id, with tags instead of label ids."""
    corpus = load_corpus(folder)
    return {
        row["id"]: {**row, "ner_tags": [corpus.labels.tags[tag] for tag in row["ner_tags"]]}
        for split in ("train", "validation")
        for row in corpus.table(split).to_pylist()
    }


def linked(pipeline, dump, run):
    pages = ReadPages(dump)
    return pipeline | pages | ExtractDocuments(run, pages.site) | LinkEntities(run)


def test_rows_of_the_demo_are_those_of_the_command(run, tmp_path):
    out = tmp_path / "corpus"
    with beam.Pipeline() as pipeline:
        examples = linked(pipeline, DUMP, run) | FilterSentences(run) | Resample()
        examples | WriteExamples(str(out))
    assert tagged(out) == tagged(run)
    funnel = {name: n for name, n in counts(pipeline.result).items() if n}
    assert funnel["pages article"] == 123
    assert funnel["sentences no-category"] == 40
    assert funnel["sentences boilerplate"] == 21


def test_the_pipeline_of_the_docs(run, tmp_path):
    text = (ROOT / "docs" / "beam.md").read_text(encoding="utf-8")
    script, printed = re.search(
        "```python\n(.*?)```.*?for the demo,\n\n(.*?)\n\nand", text, re.DOTALL
    ).groups()
    (tmp_path / "own.py").write_text(script, encoding="utf-8")
    command = [sys.executable, "own.py", DUMP, run, "own-corpus"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    out = subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True)
    assert out.stdout.decode().split() == printed.split()
    assert len(load_corpus(tmp_path / "own-corpus")) == 373


def page(number, title, text):
    return (
        f"<page><title>{title}</title><ns>0</ns><id>{number}</id><revision><id>{number}</id>"
        f"<text>{text}</text></revision></page>\n"
    )


TEXT = "'''A page''' is about the town of [[Zürich]], and [[Albert Einstein]] lived there once."


@pytest.fixture
def dump(tmp_path):
    """Rubbish between two good pages."""
    path = tmp_path / "dump.xml"
    bad = "<page><title>Bad</title><ns>0</ns><revision><text>&nosuch;</text></revision></page>\n"
    pages = page(1, "First", TEXT), bad, page(2, "Second", TEXT.replace("page", "second page"))
    path.write_text(f"<mediawiki xml:lang='en'>\n{''.join(pages)}</mediawiki>\n", encoding="utf-8")
    return Place(path)


def test_rubbish_between_good_pages_is_counted(run, dump):
    with BeamTest() as pipeline:
        titles = pipeline | ReadPages(dump) | beam.Map(lambda page: page.title)
        assert_that(titles, equal_to(["First", "Second"]))
    bad = {name: n for name, n in counts(pipeline.result).items() if name.startswith("pages")}
    assert list(bad.values()) == [1], bad


def test_rows_between_two_steps_can_be_changed(run, dump):
    """Without one of its mentions, and with another category of the other."""

    def changed(row):
        mentions = [
            mention._replace(category="River")
            for mention in row.mentions
            if mention.target == "Zürich"
        ]
        return row._replace(mentions=mentions)

    with BeamTest() as pipeline:
        rows = linked(pipeline, dump, run)
        words = rows | "As it is" >> FilterSentences(run) | "words" >> beam.FlatMap(mentioned)
        assert_that(
            words,
            equal_to(
                [
                    (title, word, category)
                    for title in ("First", "Second")
                    for word, category in (("Zürich", "City"), ("Albert", "Scientist"))
                ]
            ),
        )
        other = rows | beam.Map(changed) | "Changed" >> FilterSentences(run)
        assert_that(
            other | "others" >> beam.FlatMap(mentioned),
            equal_to([("First", "Zürich", "River"), ("Second", "Zürich", "River")]),
            label="changed",
        )


def mentioned(example):
    for token, tag in zip(example.tokens, example.tags, strict=True):
        if tag.startswith("B-"):
            yield example.title, token, tag[2:]


def test_settings_of_the_filters(run, dump):
    with BeamTest() as pipeline:
        rows = linked(pipeline, dump, run) | FilterSentences(run, min_tokens=40)
        assert_that(rows, equal_to([]))
    assert counts(pipeline.result)["sentences too-short"] == 2


def test_rows_have_schemas(dump):
    """Beam SQL and dataframes read them."""
    with BeamTest() as pipeline:
        pages = pipeline | ReadPages(dump)
        assert pages.element_type is WikiPage
        numbers = pages | beam.Select("page_id", length=lambda page: len(page.title))
        assert_that(numbers | beam.Map(tuple), equal_to([(1, 5), (2, 6)]))


def test_what_cannot_be(run, tmp_path):
    with pytest.raises(UserError, match="nosuch: no finished run of nerbert corpus"):
        LinkEntities("nosuch")
    with pytest.raises(UserError, match="min_entities: decided by the run; change drop_entity"):
        FilterSentences(run, min_entities=3)
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(UserError, match="not empty; give a new folder"):
        WriteExamples(str(tmp_path))
