r"""Prediction: what parting texts into sentences is worth, and speed beside transformers' pipeline.

    python -m benchmarks.predict --model politics-tagger --data crossner/politics

The first table joins test sentences by one, two, five and ten, and scores the mentions that are
found in the joined texts, with and without parting. The second one tags the same short texts with
`Tagger.predict` and with transformers' pipeline of the same batch size, in turn; three rounds each,
the fastest counts.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence

from finetune.data.sets import DataSets
from finetune.scoring.metrics import strict_scores
from finetune.tagger.entities import Entity
from finetune.tagger.tagger import Tagger
from nerbert.text.columns import Sentence
from nerbert.text.tags import spans_to_tags

JOINED = (1, 2, 5, 10)
ROUNDS = 3


def joined(rows: Sequence[Sentence], count: int) -> list[Sentence]:
    """Sentences, `count` of which are one text."""
    groups = [rows[first : first + count] for first in range(0, len(rows), count)]
    return [
        Sentence([t for row in group for t in row.tokens], [t for row in group for t in row.tags])
        for group in groups
    ]


def tags_at_tokens(tokens: Sequence[str], entities: Sequence[Entity]) -> list[str]:
    """The mentions of a text of tokens that single spaces join, as tags of these tokens.

    A mention whose edges are no edges of tokens is moved to the tokens that it touches.
    """
    ends: list[int] = []
    for token in tokens:
        ends.append((ends[-1] + 1 if ends else 0) + len(token))
    starts = [end - len(token) for end, token in zip(ends, tokens, strict=True)]
    spans = []
    after = 0
    for entity in entities:
        touched = [
            place
            for place, (start, end) in enumerate(zip(starts, ends, strict=True))
            if start < entity.end and entity.start < end and place >= after
        ]
        if touched:
            after = touched[-1] + 1
            spans.append((touched[0], after, entity.type))
    return spans_to_tags(spans, len(tokens))


def f1_of_joined(tagger: Tagger, rows: Sequence[Sentence], split: bool) -> float:
    """Strict F1 of the mentions that are found in texts."""
    texts = [" ".join(row.tokens) for row in rows]
    found = [
        tags_at_tokens(row.tokens, entities)
        for row, entities in zip(rows, tagger.predict(texts, split), strict=True)
    ]
    return strict_scores([row.tags for row in rows], found).f1


def fastest(*ways: Callable[[], object]) -> list[float]:
    """Shortest time of each way, in seconds; the ways take turns."""
    times: list[list[float]] = [[] for _ in ways]
    for _ in range(ROUNDS):
        for kept, way in zip(times, ways, strict=True):
            start = time.perf_counter()
            way()
            kept.append(time.perf_counter() - start)
    return [min(kept) for kept in times]


def main() -> None:
    """Prints both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True, help="a fine-tuned tagger")
    parser.add_argument("--data", required=True, help="a set with a test split")
    parser.add_argument("--sentences", type=int, default=400)
    parser.add_argument("--texts", type=int, default=600)
    options = parser.parse_args()
    rows = DataSets().sentences(options.data, "test")[: options.sentences]
    tagger = Tagger.load(options.model)
    print("| sentences of a text | one sequence | parted |\n|---|---|---|")
    for count in JOINED:
        cells = [100 * f1_of_joined(tagger, joined(rows, count), split) for split in (False, True)]
        print(f"| {count} | {cells[0]:.2f} | {cells[1]:.2f} |")

    from transformers import pipeline

    texts = [" ".join(row.tokens) for row in DataSets().sentences(options.data, "test")]
    texts = (texts * (-(-options.texts // len(texts))))[: options.texts]
    pipe = pipeline("token-classification", options.model, aggregation_strategy="first")
    theirs = {size: lambda size=size: pipe(texts, batch_size=size) for size in (1, 32)}
    times = fastest(lambda: tagger.predict(texts), *theirs.values())
    words = statistics.mean(len(text.split()) for text in texts)
    print(f"\n{len(texts)} texts of {words:.0f} words, texts per second")
    for name, seconds in zip(("Tagger.predict", "pipeline, 1", "pipeline, 32"), times, strict=True):
        print(f"{name:15} {len(texts) / seconds:7.1f}  {seconds / times[0]:.2f} times ours")


if __name__ == "__main__":
    main()
