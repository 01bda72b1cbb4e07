"""What the program computes is the same on every Python, processor and machine: digests of it.

`.ci/pythons` runs these tests on every Python of the machine.
"""

import json
import random
import re
from hashlib import blake2b

import pytest

from nerbert.text.punkt import Parameters, SentenceSplitter
from nerbert.text.tokens import tokenize
from tests.helpers.runs import DEMO, ROOT, examples, run

PIECES = (
    *(
        "Hello,",
        "don't",
        "U.S.",
        "3,000.5",
        "e.g.",
        "[[A|B]]",
        "(born",
        "1990)",
        "--",
        "...",
        "a.b.c",
    ),
    *(
        "He",
        "Zürich",
        "A.",
        "“so”",
        "東京",
        "no?",
        "yes!",
        "etc.).",
        "-",
        "'tis",
        "state-of-the-art",
        "x:y",
    ),
)


def digest(value):
    return blake2b(json.dumps(value, ensure_ascii=False).encode(), digest_size=8).hexdigest()


def texts():
    draw = random.Random(7)
    return [" ".join(draw.choice(PIECES) for _ in range(draw.randint(1, 40))) for _ in range(500)]


def test_tokens():
    assert digest([tokenize(text) for text in texts()]) == "c5977b1ec434dc73"


def test_sentence_ends():
    parameters = Parameters(
        frozenset(("e.g", "etc")), frozenset((("u.s", "he"),)), frozenset(("he",)), {"he": 34}
    )
    splitter = SentenceSplitter(parameters)
    assert digest([splitter.spans(text) for text in texts()]) == "97ec1d913ba1efae"


def test_demo_corpus(tmp_path):
    code, _, err = run("--dump", DEMO, "--output", "out", "--min-entities", 2, cwd=tmp_path)
    assert code == 0, err
    corpus = tmp_path / "out" / "corpus"
    rows = [row for split in ("train", "validation") for row in examples(corpus, split)]
    assert len(rows) == 393
    assert digest(rows) == "5b5ceb82a127d72d"


PACKAGES = ("nerbert", "ontology", "pipeline", "pretrain", "finetune")


@pytest.mark.parametrize("package", PACKAGES)
def test_no_possessive_groups(package):
    """Python before 3.11.5 matches `(...)*+` and `(?>...)` wrongly (cpython issues 106052, 100061)."""
    for path in (ROOT / package).rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for line in text.splitlines():
            assert not re.search(r"\)(?:[*+?]|\{[0-9,]+\})\+[^=+ ]|\(\?>", line), f"{path}: {line}"
