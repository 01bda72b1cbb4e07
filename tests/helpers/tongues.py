"""Two made-up languages that share names: only the first one has labels."""

import numpy as np

from finetune.data.conll import Sentence, write
from tests.helpers.lazy import lazy

datasets = lazy("datasets")
tiny = lazy("pretrain.training.tiny")

SYLLABLES = ("ka", "lo", "mi", "nu", "pe", "ri", "so", "ta", "ve", "zu")
TYPES = ("person", "city")
VERBS = {"first": ("spoke", "sang", "slept", "shone"), "second": ("hodil", "pel", "spal", "zaril")}
FILLERS = ("the", "old", "and", "then", "again")
RARE = tuple(
    f"{a}{b}{c}"
    for a in "bdg"
    for b in ("ar", "er", "or", "ur")
    for c in ("as", "es", "is", "os", "us")
)


def _sentences(draw, verbs, names, count):
    """WORD* FILLER NAME NAME* VERB WORD*: a mention has one to three names of its type."""
    found = []
    for _ in range(count):
        kind = str(draw.choice(TYPES))
        mention = [str(name) for name in draw.choice(names[kind], int(draw.integers(1, 4)))]
        before = [str(word) for word in draw.choice(RARE, int(draw.integers(0, 3)))]
        before += [str(draw.choice(FILLERS))]
        after = [str(word) for word in draw.choice((*RARE, *FILLERS), int(draw.integers(1, 4)))]
        words = [*before, *mention, str(draw.choice(verbs)), *after]
        tags = ["O"] * len(words)
        tags[len(before)] = f"B-{kind}"
        for place in range(len(before) + 1, len(before) + len(mention)):
            tags[place] = f"I-{kind}"
        found.append(Sentence(words, tags))
    return found


def write_world(folder, seed=0, train=300, text=300, names=15):
    """Two sets, `first` with labels to learn and `second` with other verbs, and an encoder.

    In `first` a verb always stands behind a mention, and that is how a model may know where the
    mention ends. In `second` the verbs are strange to it; but that a name goes on, and which words
    are names, its tags still say.
    """
    draw = np.random.default_rng(seed)
    known = {
        kind: ["".join(draw.choice(SYLLABLES, 3)).capitalize() for _ in range(names)]
        for kind in TYPES
    }
    every = []
    for name, verbs in VERBS.items():
        (folder / name).mkdir(parents=True)
        for split, count in (
            ("train", train if name == "first" else text),
            ("dev", 60),
            ("test", 200),
        ):
            rows = _sentences(draw, verbs, known, count)
            every += [row.tokens for row in rows]
            write(rows, str(folder / name / f"{split}.txt"))
    tiny.build(datasets.Dataset.from_dict({"tokens": every}), folder / "base")
    return folder / "first", folder / "second", folder / "base"
