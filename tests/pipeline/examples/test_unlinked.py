import numpy as np
import pytest

from nerbert.text.tokens import Tokens
from pipeline.examples.unlinked import Names, PageWords, Unlinked


def marks(*sentences, linked=()):
    """The sentences without any mark, and their words."""
    tokens = Tokens.of(sentences)
    words = tokens.words()
    return Unlinked(tokens, words, np.array([word in linked for word in words], np.int64)), words


def marked(sentence, title, surfaces, linked=(), capitals=False, text="the in he ulm"):
    unlinked, words = marks(sentence, linked=linked)
    if capitals:
        unlinked.mark_capitals()
        unlinked.unmark_first(range(1), PageWords([text]), 0)
    unlinked.mark_names(range(1), Names(title, surfaces))
    return [word for word, mark in zip(words, unlinked.marked, strict=True) if mark]


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


def test_no_sentences():
    unlinked, _ = marks()
    unlinked.mark_capitals()
    assert unlinked.marked == []


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


def test_what_stands_before_persons_is_not_marked():
    unlinked, words = marks("President Lincoln met Dr. II", "Lincoln met Ulm", linked=("Lincoln",))
    unlinked.mark_capitals()
    second_sentence = words.index("Lincoln", 2)
    unlinked.unmark_before([words.index("Lincoln"), words.index("II"), second_sentence])
    found = [word for word, mark in zip(words, unlinked.marked, strict=True) if mark]
    assert found == ["II", "Ulm"]


def test_dates_are_not_marked_beside_a_number_of_their_sentence():
    unlinked, words = marks("He came in May 1990 .", "April saw May", "7 June and 5")
    unlinked.mark_capitals()
    unlinked.unmark_dates(frozenset({"May", "June", "April"}))
    found = [word for word, mark in zip(words, unlinked.marked, strict=True) if mark]
    assert found == ["He", "April", "May"]


@pytest.mark.parametrize(
    ("sentence", "linked", "expected"),
    [
        ("a German physicist", (), []),
        ("a non - Muslim group", (), []),
        ("he wrote in German", (), ["German"]),
        ("in German and more", (), ["German"]),  # a frequent word
        ("the Greeks held it", (), ["Greeks"]),
        ("the British held it", (), ["British"]),
        ("by British troops", (), []),
        ("the German troops", (), []),
        ("some Germans attacked", (), ["Germans"]),
        ("a German attacked it", (), ["German"]),
        ("Holy Roman emperor", (), ["Holy", "Roman"]),
        ("the Kaiser German emperor", ("Kaiser",), ["German"]),
        ("a Reagan aide", (), ["Reagan"]),
    ],
)
def test_words_of_peoples_in_front_of_nouns_are_not_marked(sentence, linked, expected):
    unlinked, words = marks("x", sentence, linked=linked)
    unlinked.mark_capitals()
    unlinked.unmark_adjectives("en", {"and", "in"})
    assert [word for word, mark in zip(words, unlinked.marked, strict=True) if mark] == expected
    unlinked.mark_capitals()
    unlinked.unmark_adjectives("fr", {"and", "in"})
    assert sum(unlinked.marked) == sum(word[0].isupper() and word not in linked for word in words)


def test_frequent_words_are_no_names_at_the_beginning():
    unlinked, _ = marks("However it is .", "Ulm is .")
    unlinked.mark_capitals()
    unlinked.unmark_first(range(2), PageWords(["is"]), 0, {"however"})
    assert [n for n, mark in enumerate(unlinked.marked) if mark] == [4]
