import pytest

from nerbert.text.sentences import SentenceModel
from pipeline.documents.rows import bold_names, document, kept_as
from pipeline.documents.sentences import holes_by_sentence, markup_by_sentence
from pipeline.dump.pages import Page
from pipeline.dump.site import ENGLISH

MODEL = SentenceModel("test")


def page(wikitext="", title="Foo", namespace=0, redirect=None):
    return Page(1, namespace, title, redirect, 2, "2020-01-01T00:00:00Z", wikitext)


@pytest.mark.parametrize(
    ("namespace", "redirect", "kind"),
    [
        (0, None, "article"),
        (0, "X", "redirect"),
        (10, "Template:X", "redirect"),
        (14, None, "category"),
        (14, "Category:X", "redirect"),
        (10, None, "other-namespace"),
        (4, "X", "other-namespace"),
        (1, None, "other-namespace"),
    ],
)
def test_kinds(namespace, redirect, kind):
    assert kept_as(page(namespace=namespace, redirect=redirect)) == kind


def test_article():
    row = document(
        page("A [[foo]] is [[Bar|a bar]]. It has {{x}} parts.\n[[Category:C]]"), ENGLISH, MODEL
    )
    assert row["text"] == "A foo is a bar. It has parts."
    assert row["anchors"] == [(9, 14, "Bar", False, False)]  # no link to itself
    assert (row["sentence_starts"], row["sentence_ends"]) == ([0, 16], [15, 29])
    assert row["sentence_holes"] == [False, True]
    assert row["categories"] == ["C"]
    assert row["templates"] == ["X"]


def test_redirects_and_categories_have_no_text():
    assert document(page("#REDIRECT [[X]]", redirect="X"), ENGLISH, MODEL)["text"] == ""
    row = document(page("Text. [[Category:Up]]", "Category:Down", 14), ENGLISH, MODEL)
    assert (row["text"], row["categories"]) == ("", ["Up"])


@pytest.mark.parametrize(
    ("wikitext", "title", "expected"),
    [
        ("{{disambig}}", "Foo", True),
        ("{{Disambiguation|x}}", "Foo", True),
        ("x", "Foo (disambiguation)", True),
        ("__DISAMBIG__", "Foo", True),
        ("{{disambiguation needed}}", "Foo", False),
        ("x", "Foo", False),
    ],
)
def test_disambiguation(wikitext, title, expected):
    assert document(page(wikitext, title), ENGLISH, MODEL)["is_disambiguation"] is expected


def test_holes_by_sentence():
    assert holes_by_sentence([(0, 2), (3, 5), (6, 8)], (3, 8)) == [False, True, True]
    assert holes_by_sentence([], (3,)) == []


def test_markup_left_in_a_paragraph_marks_its_sentences():
    text = "A. B.\nOne [[. Two.\nThree."
    spans = [(0, 2), (3, 5), (6, 13), (14, 18), (19, 25)]
    assert markup_by_sentence(text, spans) == [False, False, True, True, False]
    assert markup_by_sentence("A. B.", spans[:2]) == [False, False]
    row = document(page("Fine.\n\nNot [[closed. Here."), ENGLISH, MODEL)
    assert row["sentence_markup"] == [False, True, True]


@pytest.mark.parametrize(
    ("wikitext", "names"),
    [
        ("'''Ulm''' or '''''Ulma''''' is [[old]].\n\n== '''No''' ==\n'''Bonn'''", ["Ulm", "Ulma"]),
        ("{{x|'''[[Ulm]]'''}} '''Ulm''' '''Ulm''' '''a b\nc''' '''<b>x</b>''' '''U'''", ["Ulm"]),
        ("''Ulm'' 'Ulm' '''Nowhere {{x}}'''", []),
    ],
)
def test_bold_names(wikitext, names):
    assert bold_names(wikitext, "Ulm or Ulma is old. No Bonn. U") == names
