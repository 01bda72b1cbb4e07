"""Mentions inside of mentions."""

import numpy as np
import pyarrow as pa
import pytest

from ontology.categories import CategorySet
from ontology.classes import ClassTree
from ontology.dictionary import Dictionary
from pipeline.documents.rows import empty_row, to_batch
from pipeline.examples.dictionary import agreed, counted
from pipeline.examples.inner import LINKS, InnerMentions, linked_inside
from pipeline.examples.mentions import Labelling, sentences_of
from pipeline.examples.rows import Tokenised
from pipeline.wikitext.names import SURE
from tests.helpers.entities import table_of

TREE = ClassTree.shipped()
CLASSES = {
    "University of Ulm": "University",
    "Ulm": "City",
    "Rom": "City",
    "Ulm, Texas": "City",
    "Texas": "AdministrativeRegion",
    "Anna Ulm": "Writer",
    "New Rom": "City",
    "Rom City": "City",
    "Kelts": "EthnicGroup",
    "Kelts of Rom": "Band",
    "Ulm (song)": "Song",
}


def page(title, *links, own_names=()):
    """A page of one sentence: its links, each a text or a pair of text and title."""
    text, anchors = "", []
    for link in links:
        shown, target = link if isinstance(link, tuple) else (link, link)
        anchors.append((len(text), len(text) + len(shown), target, True, SURE))
        text += f"{shown} and "
    return empty_row(
        title=title,
        text=text,
        names=list(own_names),
        sentence_starts=[0],
        sentence_ends=[len(text)],
        sentence_holes=[False],
        sentence_markup=[False],
        anchors=anchors,
    )


def inner_of(dump, reading):
    """The inner mentions on a page, when other pages are the dump."""
    table = table_of(CLASSES)
    batch = to_batch(dump)
    sentences = sentences_of(batch, table)
    documents = sentences.documents[sentences.anchor_sentences]
    texts = batch.column("text").to_pylist()
    spans = zip(documents, sentences.anchor_starts, sentences.anchor_ends, strict=True)
    surfaces = [texts[document][start:end] for document, start, end in spans]
    names = batch.column("names").to_pylist()
    keys, rows = linked_inside(
        batch.column("title"), names, documents, surfaces, sentences, table, "en"
    )
    targets = sentences.targets.take(pa.array(rows))
    counts = counted(keys, sentences.entities[rows], targets, LINKS)
    is_typed = np.append(table.classes >= 0, False)
    titled = table.lookup_keys(counts.column("key").to_numpy())
    dictionary = Dictionary(agreed(counts, 5, is_typed, titled))
    batch = to_batch([reading])
    sentences = sentences_of(batch, table)
    labelling = Labelling.of(table, CategorySet.load("specific"), TREE)
    tokenised = Tokenised.of(sentences, np.array([0]), [reading["text"]], "en")
    (found,) = InnerMentions(dictionary, labelling).read(sentences, tokenised).to_pylist()
    return [
        (" ".join(tokenised.words[one["start"] : one["end"]]), one["label"], one["target"])
        for one in found
    ]


@pytest.mark.parametrize(
    ("dump", "link", "expected"),
    [
        ([page("University of Ulm", "Ulm")], "University of Ulm", [("Ulm", "City", "Ulm")]),
        (
            [page("University of Ulm", ("Ulm", "Ulm, Texas"), "Rom")],
            ("The University of Ulm", "University of Ulm"),
            [("Ulm", "City", "Ulm, Texas")],
        ),
        ([page("University of Ulm", "Rom")], "University of Ulm", []),
        ([page("Rom", "Ulm")], "University of Ulm", []),  # another page links it
        (
            [page("Ulm, Texas", "Texas", "Ulm")],
            "Ulm, Texas",
            [("Texas", "AdministrativeRegion", "Texas")],
        ),
        ([page("Anna Ulm", "Ulm")], "Anna Ulm", []),  # persons are called after places
        ([page("New Rom", "Rom")], "New Rom", []),
        ([page("New Rom", "New", own_names=["City of New"])], "New Rom", []),
        ([page("Rom City", ("Rom", "Texas"), own_names=["City of Rom"])], "Rom City", []),
        ([page("Kelts of Rom", "Rom", "Kelts")], "Kelts of Rom", [("Rom", "City", "Rom")]),
        ([page("University of Ulm", "Ulm")], "Ulm", []),
        (
            [page("Rom", "Texas", own_names=["Rom, Texas"])],
            ("Rom, Texas", "Rom"),
            [("Texas", "AdministrativeRegion", "Texas")],
        ),
        (
            [page("University of Ulm", ("Ulm", "Ulm"), ("Ulm", "Ulm (song)"))],
            "University of Ulm",
            [],
        ),
    ],
)
def test_names_that_the_page_of_the_longer_name_links(dump, link, expected):
    assert inner_of(dump, page("Some page", "Rom", link)) == expected
