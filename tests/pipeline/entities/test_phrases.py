"""Phrases by descriptions, MediaWiki's table and first sentences, as far as the corpus."""

import pyarrow.parquet as pq
import pytest

from ontology.entity_table import EntityTable
from tests.helpers.runs import run
from tests.helpers.tables import write_table

ALGORITHMS = ("Quicksort", "Heapsort", "Bubble sort")
TEXTS = {
    **{name: f"'''{name}''' is a sorting algorithm that sorts a list." for name in ALGORITHMS},
    "Merge sort": "'''Merge sort''' was invented by [[Ada Jones]] in 1945, after [[Quicksort]].",
    "Radix sort": "{{Short description|Sorting algorithm for numbers}}\n'''Radix sort''' sorts.",
    "Ada Jones": "{{Short description|}}{{short description}}'''Ada Jones''' wrote programs.",
    "Max Roe": "'''Max Roe''' was a British programmer, and [[Radix sort]] is his work.",
    "Old sort": "#REDIRECT [[Quicksort]]",
    "Reader": "The [[quicksort]] of [[Max Roe]] and [[Ada Jones]] and [[Old sort]] is fast today.",
    "Sam Poe": "'''Sam Poe''' was a programmer, and nothing else is said on this page of him.",
    "Kim Doe": "'''Kim Doe''' is a French programmer, and nothing else is said on this page.",
    "Other": "Nobody of the [[Nowhere Band]] plays for [[Anna Poe]] on a sunny day any more.",
}
DESCRIPTIONS = {
    "Merge sort": "sorting algorithm, the author\\'s",
    "Ada Jones": "British programmer",
    "Max Roe": "programmer (1900),(2000)",
    "Reader": "",
}


@pytest.fixture(scope="module")
def corpora(tmp_path_factory):
    folder = tmp_path_factory.mktemp("phrases")
    ids = {title: number for number, title in enumerate(TEXTS, 1)}
    pages = "".join(
        f"<page><title>{title}</title><ns>0</ns><id>{ids[title]}</id>"
        + ('<redirect title="Quicksort" />' if "REDIRECT" in text else "")
        + f"<revision><id>{ids[title]}</id><timestamp>2023-05-01T00:00:00Z</timestamp>"
        f"<text>{text}</text></revision></page>\n"
        for title, text in TEXTS.items()
    )
    dump = folder / "enwiki-20230501-pages-articles.xml"
    dump.write_text(f'<mediawiki xml:lang="en">\n{pages}</mediawiki>\n', encoding="utf-8")
    props = [
        (ids[title], name, value, None)
        for title, text in DESCRIPTIONS.items()
        for name, value in (("wikibase-shortdesc", text), ("wikibase_item", f"Q{ids[title]}"))
    ]
    rows = [*props, (99, "wikibase-shortdesc", "river", None), (1, "defaultsort", "a),(b", None)]
    write_table(folder / "enwiki-20230501-page_props.sql.gz", "page_props", rows, wiki="enwiki")
    flags = ("--dump", dump, "--page-props", folder / "enwiki-20230501-page_props.sql.gz")
    flags += ("--no-names-only", "--min-entities", 1, "--validation-share", 0.3)
    for name, more in {"described": ["--keep-described"], "plain": ["--keep-untyped"]}.items():
        code, _, err = run(*flags, *more, "--output", name, cwd=folder)
        assert code == 0, err
    return folder


def rows_of(corpus):
    paths = sorted(corpus.glob("*/part-*.parquet"))
    return [row for path in paths for row in pq.read_table(path).to_pylist()]


def test_the_entity_table_has_what_several_pages_are(corpora):
    table = EntityTable.open(corpora / "described" / "entities")
    table.check()
    assert sorted(table.phrase_names) == ["programmer", "sorting algorithm"]
    titles = ["Heapsort", "Old sort", "Merge sort", "Radix sort", "Ada Jones", "Reader", "Nowhere"]
    sorting = ["sorting algorithm"]
    expected = [sorting, sorting, sorting, sorting, ["programmer"], [], []]
    assert table.phrases_of(table.lookup(titles)) == expected
    assert table.has_phrases(table.lookup(titles)).tolist() == [bool(row) for row in expected]


def test_each_mention_has_the_phrases_of_its_page(corpora):
    rows = rows_of(corpora / "plain" / "corpus")
    assert rows
    table = EntityTable.open(corpora / "plain" / "entities")
    for row in rows:
        assert len(row["phrases"]) == len(row["targets"])
        assert row["phrases"] == table.phrases_of(table.lookup(row["targets"]))


def test_sentences_of_described_mentions_stay(corpora):
    described, plain = (rows_of(corpora / name / "corpus") for name in ("described", "plain"))
    assert {"Reader", "Merge sort", "Max Roe"} <= {row["title"] for row in described}
    assert {row["title"] for row in plain} - {row["title"] for row in described} == {"Other"}
    assert all(any(row["phrases"]) for row in described)


def test_a_described_page_is_mentioned_by_its_title(corpora):
    described, plain = (rows_of(corpora / name / "corpus") for name in ("described", "plain"))
    pairs = {
        name: {
            (row["title"], target)
            for row in rows
            for target, source in zip(row["targets"], row["sources"], strict=True)
            if source == "title"
        }
        for name, rows in (("described", described), ("plain", plain))
    }
    known = {*ALGORITHMS, "Merge sort", "Radix sort", "Ada Jones", "Max Roe", "Sam Poe", "Kim Doe"}
    own = {title for title, target in pairs["described"] if title == target}
    assert own == known - {"Radix sort"}  # its only sentence has four words
    assert pairs["plain"] == set()
