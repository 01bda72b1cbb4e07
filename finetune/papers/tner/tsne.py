"""Plots how encoders represent the entities of a set, by t-SNE."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.manifold import TSNE

from finetune.data.registry import expand
from finetune.data.sets import DataSets
from finetune.options import Device
from finetune.papers.tner.options import TsneOptions
from finetune.papers.words.encoder import state_tagger
from finetune.scoring import plots
from finetune.tagger.shipped import folder_of
from finetune.tagger.tagger import Tagger
from nerbert.commands.process import quiet_libraries
from nerbert.errors import UserError
from nerbert.progress import Countdown
from nerbert.text.columns import Sentence
from nerbert.text.tags import tags_to_spans
from pretrain.training.checkpoints import check_vocabulary
from pretrain.training.models import device_of, load_encoder, place
from pretrain.training.tokenizer import load_tokenizer

_LOGGER = logging.getLogger("nerbert")
_LEAST = 10  # smallest number of entities: t-SNE needs more points than neighbours


def draw_entities(options: TsneOptions) -> Path:
    """Writes the plot and returns its path.

    Raises:
        UserError: a model or a set is missing, or the sets have too few entities.
    """
    names = expand(options.data)
    sets = DataSets.of_options(options, len(names) > 1)
    rows = {name: sets.sentences(name, "test") for name in names}
    countdown = Countdown(len(options.models))
    panels = {}
    for model in options.models:
        panels[model] = _panel(model, rows, options)
        _LOGGER.info("%s: %d entities; %s", model, len(panels[model][1]), countdown() or "the last")
    path = Path(options.output)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(plots.scatter(panels))
    return path


def _panel(
    model: str, rows: Mapping[str, Sequence[Sentence]], options: TsneOptions
) -> tuple[Any, list[str]]:
    """Coordinates of the entities in the panel of a model (entities, 2), and their colours."""
    quiet_libraries()
    vectors, names = [], []
    for name, sentences in rows.items():
        if options.words == "predicted":
            sentences = _predicted(model, sentences, options)
        states, types = representations(model, sentences, options, options.words != "first")
        selected = [place for place, kind in enumerate(types) if kind in (options.types or types)]
        vectors += [states[place] for place in selected]
        names += [_colour(name, types[place], len(rows), options.types) for place in selected]
    if len(vectors) < _LEAST:
        raise UserError(f"{len(vectors)} entities; t-SNE needs {_LEAST} or more", options.data[0])
    picks = np.sort(np.random.default_rng(options.seed).permutation(len(vectors))[: options.points])
    perplexity = min(30, (len(picks) - 1) / 3)
    places = TSNE(perplexity=perplexity, init="pca", random_state=options.seed).fit_transform(
        np.array(vectors)[picks]
    )
    return places, [names[pick] for pick in picks]


def _predicted(model: str, rows: Sequence[Sentence], placing: Device) -> list[Sentence]:
    """The sentences with the tags that a tagger predicts; those of span heads are its spans.

    Raises:
        UserError: the model is no tagger.
    """
    tagger = Tagger.load(model, device=placing.device, half=placing.half)
    tags = tagger.tag([row.tokens for row in rows])
    return [Sentence(row.tokens, row_tags) for row, row_tags in zip(rows, tags, strict=True)]


def _colour(name: str, kind: str, sets: int, types: Sequence[str]) -> str:
    """The name that a colour stands for: a type, a set if there is one type only, or both."""
    if sets == 1:
        return kind
    return name if len(types) == 1 else f"{name}: {kind}"


def representations(
    model: str, rows: Sequence[Sentence], placing: Device, joined: bool = False
) -> tuple[Any, list[str]]:
    """Last hidden states of each entity that is tagged (entities, size), and types.

    Source: Liu et al. 2021 (NER-BERT), figures 3 to 7: the first sub-word; Zeng et al. 2022
    (DualNER), equation 9: the first and the last word, joined.

    Args:
        model: encoder or tagger.
        rows: sentences.
        placing: where the encoder computes.
        joined: whether the states of the last word follow those of the first one.

    Raises:
        UserError: there is no such encoder.
    """
    folder = folder_of(model)
    encoder, tokenizer = load_encoder(folder), load_tokenizer(folder)
    check_vocabulary(encoder, tokenizer, model)
    place(encoder, device_of(placing.device), placing.half)
    states = state_tagger(encoder, tokenizer).logits([row.tokens for row in rows])
    spans = [tags_to_spans(row.tags) for row in rows]
    entities = [
        (np.concatenate([state[start], state[end - 1]]) if joined else state[start], name)
        for state, spans_here in zip(states, spans, strict=True)
        for start, end, name in spans_here
    ]
    with_state = [(vector, name) for vector, name in entities if not np.isnan(vector).any()]
    if len(with_state) < len(entities):
        _LOGGER.warning("%d entities without sub-words left out", len(entities) - len(with_state))
    return np.array([vector for vector, _ in with_state]), [name for _, name in with_state]
