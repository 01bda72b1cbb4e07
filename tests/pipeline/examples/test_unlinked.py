import pytest

from nerbert.text.tokens import tokenize
from pipeline.examples.mentions import Names


def marked(sentence, title, surfaces, linked=(), capitals=False, text="the in he ulm"):
    spans = tokenize(sentence)
    words = [sentence[start:end] for start, end in spans]
    tags = [1 if word in linked else 0 for word in words]
    marks = Names(title, surfaces, text).mark(sentence, spans, words, tags, capitals)
    assert len(marks) == len(words)
    return [word for word, mark in zip(words, marks, strict=True) if mark]


@pytest.mark.parametrize(
    ("sentence", "title", "surfaces", "expected"),
    [
        ("He saw New York in May .", "Dante", ["New York"], ["New", "York"]),
        ("He saw York in May .", "Dante", ["New York"], ["York"]),
        ("A Newer York .", "Dante", ["New"], []),
        (
            "New York City and New York",
            "Dante",
            ["New York", "New York City"],
            ["New", "York", "City", "New", "York"],
        ),
        ("Lincoln met Abraham Lincoln .", "Abraham Lincoln", [], ["Lincoln", "Abraham", "Lincoln"]),
        ("The Who sang who .", "The Who", [], ["The", "Who"]),
        ("Mercury is hot; mercury is a metal .", "Mercury (planet)", [], ["Mercury"]),
        ("Nothing here .", "", ["", " "], []),
    ],
    ids=[
        "surface",
        "part",
        "inside-a-word",
        "longest",
        "title-word",
        "short-word",
        "bracket",
        "empty",
    ],
)
def test_names_are_marked(sentence, title, surfaces, expected):
    assert marked(sentence, title, surfaces) == expected


def test_a_name_that_holds_a_linked_word_is_not_marked():
    found = marked("Paris and New Paris", "Dante", ["Paris", "New Paris"], linked=("New",))
    assert found == ["Paris", "Paris"]


@pytest.mark.parametrize(
    ("sentence", "surfaces", "expected"),
    [
        ("The man from Ulm saw Bern .", [], ["Ulm", "Bern"]),
        ('" Ulm is far , said I .', [], []),  # the first word begins the sentence
        ("Lincoln left , and Lincoln came .", ["Abraham Lincoln"], ["Lincoln", "Lincoln"]),
        ("In 1990 the French team won 3 cups .", [], ["French"]),
        ("東京 は Bonn 市", [], ["Bonn"]),
    ],
)
def test_capitals_are_marked(sentence, surfaces, expected):
    assert marked(sentence, "Dante", surfaces, capitals=True) == expected


def test_mentions_are_not_marked():
    assert marked("He saw Ulm and Bern .", "X", [], linked=("Ulm",), capitals=True) == ["Bern"]


def test_first_words_that_the_page_has_nowhere_in_lower_case():
    sentence = '" Nathaniel saw Ulm .'
    assert marked(sentence, "X", [], capitals=True) == ["Nathaniel", "Ulm"]
    assert marked(sentence, "X", [], capitals=True, text="a nathaniel .") == ["Ulm"]
    assert marked(sentence, "X", []) == []
