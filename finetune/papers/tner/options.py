"""The options of `matrix`, `overlap` and `tsne`."""

from __future__ import annotations

from typing import Literal

from pydantic.dataclasses import dataclass

from finetune.options import BASES, Device, RunOptions
from finetune.settings import DataOptions, DataRoot
from nerbert.commands.options import CHECKED, Location, Seed, Text, Texts, option


@dataclass(frozen=True, config=CHECKED)
class MatrixOptions(RunOptions):
    r"""Fine-tunes a tagger on each of several sets, and scores each tagger on all of them.

        nerbert matrix --model xlm-roberta-base --data btc re3d wikigold sec_filings
        nerbert matrix --model xlm-roberta-base --data wikiann/en wikiann/es wikiann/ru \
            --train wikiann/en wikiann/en+wikiann/es --output wikiann

    All results are kept in --output. If the command is stopped, run it again: it does the missing
    runs.
    """

    train: Texts = option(
        (),
        "sets to train on, A+B for two together (default: sets of --data with a train split)",
        metavar="SET",
    )
    keep_models: bool = option(False, "keep the checkpoint of each row")


@dataclass(frozen=True, config=CHECKED)
class OverlapOptions(DataRoot):
    """Measures how many of their most frequent words data sets and domain corpora share.

        nerbert overlap --data 'crossner/*' conll2003-crossner --output overlap
        nerbert overlap --data politics-corpus music-corpus ai-corpus --output overlap

    Writes the shares in per cent as a table, as numbers, and as a heat map.
    """

    data: Texts = option(
        help="sets (names, patterns, folders), or folders of domain corpora", metavar="SET"
    )
    words: int = option(5000, "number of most frequent words that are compared", ge=1)
    stop_words: Text | None = option(
        None, "stop words, one per line (default: scikit-learn's, English)", metavar="FILE"
    )
    output: Location = option("overlap", "folder of the report", metavar="DIR", recipe=False)


@dataclass(frozen=True, config=CHECKED)
class TsneOptions(DataOptions, Device):
    r"""Plots how encoders represent the entities of a set: t-SNE, one panel for each model.

        nerbert tsne --models bert-base-cased ner-bert --data crossner/ai --output ai.png

        nerbert tsne --models dual/seed-555/multitask dual/seed-555/dual --words predicted \
            --data wikiann/en wikiann/ru --types LOC --output languages.png

    A point is an entity of the test split: the last hidden state of its first sub-word. Several
    sets have their own colours. DualNER's figure 2 has --words predicted.
    """

    models: Texts = option(help=BASES, metavar="MODEL", also="--model")
    data: Texts = option(
        help="names of sets (also patterns), hf:NAME, or folders; several are told apart by colour",
        metavar="SET",
    )
    types: Texts = option((), "types whose entities are plotted (default: all)", metavar="TYPE")
    words: Literal["first", "first-last", "predicted"] = option(
        "first",
        "states of an entity: of its first word; of its first and last word, joined; or likewise "
        "of the entities that the model, a tagger, predicts",
    )
    points: int = option(2000, "number of entities, drawn at random", ge=1)
    seed: Seed = option(0, "seed of every random choice (default: 0)")
    output: Location = option("tsne.png", "PNG file of the plot", metavar="FILE", recipe=False)
