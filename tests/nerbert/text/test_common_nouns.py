"""Common nouns of German, learnt from sentences."""

import pytest

from nerbert.text.common_nouns import NO_NOUNS, CommonNouns

TEXT = (
    "Er wohnte in einer Stadt am Rhein, und seine Stadt lag nahe Berlin. Jeder Mensch kennt den "
    "Rhein und das Gesetz. Dieses Gesetz nennt Berlin, ein großes Gesetz. Das leben der Menschen, "
    "sein Leben, leben wir."
)


@pytest.fixture(scope="module")
def nouns():
    return CommonNouns.train([TEXT], "de")


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("Stadt", True),
        ("Gesetz", True),
        ("Mensch", True),
        ("Rhein", False),  # only articles stand before it
        ("Berlin", False),
        ("Leben", False),  # in lower case it is a verb
        ("Ermächtigungsgesetz", True),
        ("Hauptstadt", False),  # many names of places end so
        ("Verwaltungen", True),
        ("USA", False),
        ("MacGesetz", False),
    ],
)
def test_a_common_noun(nouns, word, expected):
    assert nouns.has(word) == expected


@pytest.mark.parametrize(
    ("text", "before", "expected"),
    [
        ("Gesetz", "", True),
        ("deutsches Gesetz", "", True),
        ("Sezession", "keine der wegen der ", True),
        ("Sezession", "Eine schnelle ", True),
        ("Berlin", "wohnte in ", False),
        ("Deutschen Bank", "bei der ", False),
    ],
)
def test_a_concept(nouns, text, before, expected):
    assert nouns.are_concept(text, before) == expected
    assert not NO_NOUNS.are_concept(text, before)


@pytest.mark.parametrize(
    ("text", "title", "expected"),
    [("Stadt", "Ulm", True), ("Hamburger", "Hamburg", True), ("Ulm", "Ulm (Stadt)", False)],
)
def test_a_description(nouns, text, title, expected):
    assert nouns.describe(text, title) == expected
    assert not NO_NOUNS.describe(text, title)


def test_other_languages_learn_nothing():
    assert not CommonNouns.train([TEXT], "en")
    assert not NO_NOUNS.has("Verwaltungen")
