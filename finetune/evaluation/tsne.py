"""Plots how encoders represent the entities of a set, by t-SNE."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.manifold import TSNE

from finetune.data.sets import DataSets
from finetune.evaluation import plots
from finetune.models.windows import WordTagger
from finetune.options import Device, TsneOptions
from nerbert.errors import UserError
from nerbert.text.columns import Sentence
from nerbert.text.tags import tags_to_spans
from pretrain.logs import quiet_libraries
from pretrain.models import device_of, load_encoder, longest_input, place
from pretrain.tokenizer import load_tokenizer

_LOGGER = logging.getLogger("nerbert")
_LEAST = 10  # smallest number of entities: t-SNE needs more points than neighbours


def draw_entities(options: TsneOptions) -> Path:
    """Writes the plot and returns its path.

    Raises:
        UserError: a model or the set is missing, or the set has too few entities.
    """
    rows = DataSets.chosen(options).sentences(options.data, "test")
    panels = {model: _panel(model, rows, options) for model in options.models}
    path = Path(options.output)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(plots.scatter(panels))
    return path


def _panel(model: str, rows: Sequence[Sentence], options: TsneOptions) -> tuple[Any, list[str]]:
    """Coordinates of the entities in the panel of a model (entities, 2), and their types."""
    quiet_libraries()
    states, types = representations(model, rows, options)
    if len(states) < _LEAST:
        raise UserError(f"{len(states)} entities; t-SNE needs {_LEAST} or more", options.data)
    picks = np.sort(np.random.default_rng(options.seed).permutation(len(states))[: options.points])
    perplexity = min(30, (len(picks) - 1) / 3)
    places = TSNE(perplexity=perplexity, init="pca", random_state=options.seed).fit_transform(
        states[picks]
    )
    _LOGGER.info("%s: %d entities", model, len(picks))
    return places, [types[pick] for pick in picks]


def representations(model: str, rows: Sequence[Sentence], placing: Device) -> tuple[Any, list[str]]:
    """Last hidden states of the first sub-word of each gold entity (entities, size), and types.

    Source: Liu et al. 2021 (NER-BERT), figures 3 to 7.

    Raises:
        UserError: there is no such encoder.
    """
    encoder = load_encoder(model)
    place(encoder, device_of(placing.device), placing.half)
    words = WordTagger(encoder, load_tokenizer(model), longest_input(encoder), hidden=True)
    states = words.logits([row.tokens for row in rows])
    spans = [tags_to_spans(row.tags) for row in rows]
    found = [
        state[start]
        for state, spans_here in zip(states, spans, strict=True)
        for start, _, _ in spans_here
    ]
    return np.array(found), [name for spans_here in spans for _, _, name in spans_here]
