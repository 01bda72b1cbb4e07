import random
import subprocess
import sys

import pytest

from nerbert.text import tokens as tokens_module
from nerbert.text.tokens import Tokens, tokenize
from tests.helpers.lazy import lazy
from tests.helpers.pieces import pieces

destructive = lazy("nltk.tokenize.destructive")


def by_nltk(text):
    return pieces(text, destructive.NLTKWordTokenizer().span_tokenize(text))


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
            assert tokenize(text) == by_nltk(text), text


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


def nasty_texts(count):
    """Texts, and the spans of NLTK's tokens."""
    draw = random.Random(5)
    while count:
        text = "".join(draw.choice(PIECES) for _ in range(draw.randint(1, 14))).strip()
        try:
            spans = tokens_module._aligned(text, destructive.NLTKWordTokenizer().tokenize(text))
        except ValueError:  # NLTK gives back what is not in the text
            continue
        yield text, pieces(text, spans)
        count -= 1


def test_nasty_texts_as_nltk():
    for text, expected in nasty_texts(6000):
        assert tokenize(text) == expected, text


def test_many_texts_at_once_as_one_by_one():
    """With edges of anchors anywhere, hard texts between easy ones, and empty texts."""
    draw = random.Random(6)
    texts = [*(text for text, _ in nasty_texts(400)), "", "I cannot.", "It's (so)."]
    for _ in range(40):
        some = draw.sample(texts, draw.randint(0, 30))
        edges = [
            (number, draw.randint(0, len(text)))
            for number, text in enumerate(some)
            for _ in range(draw.randint(0, 3))
        ]
        numbers, offsets = [number for number, _ in edges], [offset for _, offset in edges]
        found = Tokens.of(some, numbers, offsets)
        one_by_one = [
            tokenize(text, [offset for n, offset in edges if n == number])
            for number, text in enumerate(some)
        ]
        assert list(found.spans()) == one_by_one
        words = [text[a:b] for text, spans in zip(some, one_by_one, strict=True) for a, b in spans]
        assert found.words() == words


def test_nltk_loads_without_what_it_does_not_need():
    """scikit-learn takes a second and 110 MiB; afterwards it can be loaded as before."""
    code = (
        "import sys; from nerbert.text.tokens import words_of; words_of('I cannot.'); "
        "assert 'sklearn' not in sys.modules and 'scipy.stats' not in sys.modules; "
        "import sklearn, scipy.stats"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


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
                    assert tokenize(sentence) == by_nltk(sentence)
                    compared += 1
    assert compared > 2000
