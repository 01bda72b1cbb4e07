r"""Draws how encoders represent the entities of a set: t-SNE, a panel for each model.

    python -m finetune.tsne --models bert-base-cased ner-bert --data crossner/ai --output ai.png

A point is an entity of the test split, by the last hidden state of its first sub-word.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from finetune import flags, plots
from finetune.conll import Sentence
from finetune.runs import read_view
from pipeline.errors import UserError
from pretrain import commandline

_LOGGER = logging.getLogger("nerbert")
_LEAST = 10  # entities; t-SNE needs more points than neighbours

FLAGS: dict[str, dict[str, Any]] = {
    **flags.MODELS,
    "--data": {"required": True, "metavar": "SET", "help": "name of a set, hf:NAME, or folder"},
    **flags.DATA,
    "--points": {"type": int, "default": 2000, "metavar": "N",
                 "help": "entities, drawn at random (default: 2000)"},
    "--seed": {"type": int, "default": 0, "help": "of every random choice (default: 0)"},
    "--output": {"default": "tsne.png", "metavar": "FILE", "help": "default: tsne.png"},
}  # fmt: skip


def representations(model: str, rows: Sequence[Sentence]) -> tuple[Any, list[str]]:
    """Last hidden state of the first sub-word of each gold entity, (entities, hidden size); types.

    Source: Liu et al. 2021 (NER-BERT), figures 3 to 7.

    Raises:
        UserError: there is no such encoder.
    """
    import numpy as np

    from finetune.prediction import WordTagger
    from ontology.labels import tags_to_spans
    from pretrain.tagging import load_encoder, load_tokenizer

    encoder = load_encoder(model)
    limit = min(int(getattr(encoder.config, "max_position_embeddings", 512)), 128)
    words = WordTagger(encoder, load_tokenizer(model), limit, hidden=True)
    states = words.logits([row.tokens for row in rows])
    spans = [tags_to_spans(row.tags) for row in rows]
    found = [state[start] for state, spans_here in zip(states, spans, strict=True)
             for start, _, _ in spans_here]  # fmt: skip
    return np.array(found), [name for spans_here in spans for _, _, name in spans_here]


def parser() -> argparse.ArgumentParser:
    """The command line."""
    return commandline.parser("finetune.tsne", __doc__, FLAGS)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit code."""
    commandline.begin()
    options = parser().parse_args(argv)
    flags.use_data_root(options)
    return commandline.run(lambda: _draw(options))


def _draw(options: argparse.Namespace) -> None:
    rows = read_view(flags.view(options, several=False), options.data, "test")
    panels = {model: _panel(model, rows, options.points, options.seed)
              for model in options.models}  # fmt: skip
    path = Path(options.output)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(plots.scatter(panels))
    print(path)


def _panel(model: str, rows: Sequence[Sentence], points: int, seed: int) -> tuple[Any, list[str]]:
    import numpy as np
    from sklearn.manifold import TSNE

    from pretrain.data import quiet_libraries

    quiet_libraries()
    states, types = representations(model, rows)
    if len(states) < _LEAST:
        raise UserError(f"--data: {len(states)} entities; t-SNE needs {_LEAST} or more")
    picks = np.sort(np.random.default_rng(seed).permutation(len(states))[:points])
    perplexity = min(30, (len(picks) - 1) / 3)
    places = TSNE(perplexity=perplexity, init="pca", random_state=seed).fit_transform(states[picks])
    _LOGGER.info("%s: %d entities", model, len(picks))
    return places, [types[pick] for pick in picks]


if __name__ == "__main__":
    sys.exit(main())
