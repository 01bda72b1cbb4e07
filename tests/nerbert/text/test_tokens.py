import random

import pytest

from nerbert.text import tokens as tokens_module
from nerbert.text.tokens import tokenize, word_spans
from tests.helpers.lazy import lazy

destructive = lazy("nltk.tokenize.destructive")


def tokens(text, edges=()):
    return [text[start:end] for start, end in tokenize(text, edges)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I can't.", ["I", "ca", "n't", "."]),
        (
            "He said \"hi\" and ''bye''.",
            ["He", "said", '"', "hi", '"', "and", "''", "bye", "''", "."],
        ),
        ("東京はBonn市。", ["東", "京", "は", "Bonn", "市", "。"]),
        ("ภาษาไทย", list("ภาษาไทย")),
        ("（「京」）。", list("（「京」）。")),
        ("서울 특별시", ["서울", "특별시"]),
        ("", []),
    ],
)
def test_tokenize(text, expected):
    assert tokens(text) == expected


def test_edges_of_anchors_are_edges_of_tokens():
    text = "pre-Columbian era's"
    assert tokens(text, [0, 3, 13, 17]) == ["pre", "-Columbian", "era", "'s"]
    assert tokens("abcdef", [2, 4, 2]) == ["ab", "cd", "ef"]


def test_random_texts_as_nltk():
    draw = random.Random(11)
    pieces = [
        "can't",
        "cannot",
        "'tis",
        "U.S.",
        "3,000.5",
        "$5",
        "(a)",
        "[b]",
        "--",
        "…",
        "it's",
        "“q”",
        "«x»",
        "a/b",
        "don't",
        "rock'n'roll",
        "end.",
        "x:",
        "y;",
        "50%",
        "é",
        "O'Neil",
        "wanna",
    ]
    for quotes in ([], ['"a"'], ["``b''"]):
        for _ in range(700):
            chosen = [draw.choice(pieces + quotes) for _ in range(draw.randint(1, 12))]
            text = " ".join(chosen)
            assert word_spans(text) == list(destructive.NLTKWordTokenizer().span_tokenize(text)), (
                text
            )


PIECES = [
    "a",
    "b",
    "n't",
    "n",
    "t",
    "'",
    "s",
    "'s",
    "'S",
    "'ll",
    "'re",
    "'d",
    "'t",
    "1",
    "2",
    ".",
    ",",
    ":",
    ";",
    "-",
    "--",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "<",
    ">",
    '"',
    "“",
    "”",
    "‘",
    "’",
    "«",
    "»",
    "!",
    "?",
    "*",
    "$",
    "%",
    "é",
    "т",
    "म",
    "ि",
    " ",
    " ",
    " ",
    " ",
    "_",
    "/",
    "\\",
    "…",
    "–",
    "can",
    "not",
    "N'T",
    "more",
    "'n",
    "d'ye",
    "Wanna",
    "²",
    "½",
    "'tis",
    "@",
    "#",
    "&",
    "=",
    "+",
    "~",
    "|",
    "^",
    "。",
    "が",
    "\u0301",
    "``",
    "''",
    "\u00a0",
]


def test_nasty_texts_as_nltk():
    draw = random.Random(5)
    for _ in range(6000):
        text = "".join(draw.choice(PIECES) for _ in range(draw.randint(1, 14))).strip()
        try:
            expected = tokens_module._aligned(text, destructive.NLTKWordTokenizer().tokenize(text))
        except ValueError:  # NLTK gives back what is not in the text
            continue
        assert word_spans(text) == expected, text


def test_real_sentences_as_nltk(shared):
    from nerbert.text.sentences import SentenceModel
    from pipeline.dump import units
    from pipeline.dump.pages import Page
    from pipeline.wikitext.render import render

    source = units.inspect(str(shared / "dumps" / "enwiki-201205-pages-articles-p2.xml.bz2"))
    model = SentenceModel("test")
    compared = 0
    for unit in units.cut([source]):
        for page in units.read_unit(unit):
            if isinstance(page, Page) and page.redirect is None:
                text = render(page.wikitext, unit.site).text
                for start, end in model.split(text):
                    sentence = text[start:end]
                    if '"' in sentence and "''" in sentence:
                        continue  # NLTK's own alignment fails on both kinds of quotes
                    assert word_spans(sentence) == list(
                        destructive.NLTKWordTokenizer().span_tokenize(sentence)
                    )
                    compared += 1
    assert compared > 2000
