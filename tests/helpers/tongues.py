"""Two made-up languages that share names: only the first one has labels."""

import json

import numpy as np
from datasets import Dataset

from finetune.conll import Sentence, write
from pretrain import tiny

SYLLABLES = ("ka", "lo", "mi", "nu", "pe", "ri", "so", "ta", "ve", "zu")
ENTITY = {"person": ("spoke", "sang", "slept"), "city": ("shone", "grew", "burned")}
FILLERS = ("the", "old", "and", "then", "again")
RARE = tuple(
    f"{a}{b}{c}"
    for a in "bdg"
    for b in ("ar", "er", "or", "ur")
    for c in ("as", "es", "is", "os", "us")
)
OTHER = {"person": ("hodil", "pel", "spal"), "city": ("zaril", "ros", "gorel")}


def _names(draw, count):
    return ["".join(draw.choice(SYLLABLES, 3)).capitalize() for _ in range(count)]


def _sentences(draw, verbs, names, count, vague=0.0):
    """FILLER* NAME VERB FILLER*: a name's type shows in the verb behind it, or in the name alone.

    `vague` is the share of sentences in which some other rare word stands there.
    """
    found = []
    for _ in range(count):
        kind = str(draw.choice(list(verbs)))
        before = [str(word) for word in draw.choice(FILLERS, int(draw.integers(0, 3)))]
        after = [str(word) for word in draw.choice(FILLERS, int(draw.integers(1, 3)))]
        behind = draw.choice(RARE if draw.random() < vague else verbs[kind])
        words = [*before, str(draw.choice(names[kind])), str(behind), *after]
        tags = ["O"] * len(words)
        tags[len(before)] = f"B-{kind}"
        found.append(Sentence(words, tags))
    return found


def write_world(folder, seed=0, train=400):
    """Two sets, `first` with labels to learn and `second` with other verbs, and an encoder.

    Names in the test set of `second` are new: what they are shows in the verbs alone; what these
    mean shows in its train text, where the names are those of `first`. The encoder's sub-words are
    syllables, so that a new name looks like a name; its dropout is high, so that names are not all
    that a student learns from.
    """
    draw = np.random.default_rng(seed)
    known = {kind: _names(draw, 25) for kind in ENTITY}
    new = {kind: _names(draw, 40) for kind in ENTITY}
    for name, verbs, pools, vague in (
        ("first", ENTITY, (known, known, known), 0.5), ("second", OTHER, (known, new, new), 0.0),
    ):  # fmt: skip
        (folder / name).mkdir(parents=True)
        for split, names, count in zip(
            ("train", "dev", "test"), pools, (train, 60, 120), strict=True
        ):
            rows = _sentences(draw, verbs, names, count, vague)
            write(rows, str(folder / name / f"{split}.txt"))
    syllables = [s.capitalize() for s in SYLLABLES] + [f"x{s}" for s in SYLLABLES]
    words = [
        *FILLERS,
        *RARE,
        *(verb for kinds in (ENTITY, OTHER) for row in kinds.values() for verb in row),
    ]
    corpus = Dataset.from_dict({"tokens": [syllables * 50, words]})
    tiny.build(corpus, folder / "base", vocabulary=260)
    path = folder / "base" / "config.json"
    config = json.loads(path.read_text())
    config |= {"hidden_dropout_prob": 0.2, "attention_probs_dropout_prob": 0.2}
    path.write_text(json.dumps(config))
    return folder / "first", folder / "second", folder / "base"
