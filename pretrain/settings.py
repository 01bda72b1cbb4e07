"""The options of pre-training: by entity tagging, and by masked language modelling."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any, ClassVar, Literal

from pydantic.dataclasses import dataclass

from nerbert.commands.options import CHECKED, Location, Locations, Numbers, Text, option
from nerbert.text.tags import Level

TINY = "tiny"
"""Name of a small base model that is made from the corpus."""

RECORD = "pretrain.json"
"""File with the record of a run, in the folder of its checkpoint."""

AS_IN_CORPUS = "corpus"
"""Name of the view with the corpus's own categories."""


@dataclass(frozen=True, config=CHECKED)
class Settings:
    """The options of all pre-training, besides `transformers.TrainingArguments`."""

    output: Location = option(help="folder of the checkpoint", metavar="DIR", recipe=False)
    base_model: Text = option(
        "bert-base-cased",
        "encoder: name on the hub, folder, or `tiny`: made from the corpus",
        metavar="MODEL",
    )
    max_subwords: int = option(
        128, "sub-words of a piece, the special ones included; longer sentences are split", ge=8
    )
    batch_size: int = option(
        960, "pieces of an optimiser step, over all devices and accumulated steps", ge=1
    )
    cache_dir: Text | None = option(
        None, "where `datasets` keeps the memory-mapped corpus (default: its own)", metavar="DIR"
    )
    training: Mapping[str, Any] = option(
        {}, "values for transformers.TrainingArguments", flag=False
    )

    # A run may be continued with other values of these.
    _passing: ClassVar[frozenset[str]] = frozenset(
        {"corpus", "output", "cache_dir", "types", "validation_examples", "training"}
    )

    def identity(self) -> dict[str, Any]:
        """The options that must be equal to continue a stopped run."""
        return {key: value for key, value in asdict(self).items() if key not in self._passing}


@dataclass(frozen=True, config=CHECKED)
class PretrainSettings(Settings):
    r"""Continues pre-training an encoder by entity tagging on a corpus.

        nerbert pretrain --corpus demo-corpus/corpus --recipe paper-debug --output demo-bert
        nerbert pretrain --corpus enwiki-corpus/corpus --output ner-bert
        torchrun --nproc-per-node 8 -m pretrain.launch --corpus enwiki-corpus/corpus \
            --output ner-bert

    Our flags come first, those of transformers.TrainingArguments follow.
    """

    corpus: Locations = option(
        help="folder of the corpus; several are read one after the other, and mixed",
        metavar="DIR",
        recipe=False,
    )
    head: Literal["closed", "open"] = option(
        "closed",
        "closed: tags of the corpus's categories; open: mentions, and types by their names",
    )
    chains: float = option(
        0.25,
        "open head: share of the batches whose candidates are whole chains of classes (Senator, "
        "politician, person), not only the deepest classes",
        ge=0,
        le=1,
    )
    types: Locations = option(
        (),
        "open head: files of types as for nerbert corpus, whose titles are learnt as names of "
        "their classes, in lists beside the sentences",
        metavar="FILE",
        recipe=False,
    )
    teacher: Text | None = option(
        None,
        "open head: tagger with an open head, mostly a larger one, whose scores are learnt beside "
        "the labels; its sub-words must be those of the base model",
        metavar="MODEL",
    )
    categories: Text = option(
        AS_IN_CORPUS,
        "view of the corpus's categories: corpus (unchanged), specific, nerbert315, nerbert212, "
        "coarse4, or a table 'category TAB category'",
        metavar="SET",
    )
    mask_unlinked: bool | None = option(
        None,
        "ignore names without a mark in the loss (default: if the corpus says which they are; "
        "recipes of papers: no)",
    )
    train_examples: int = option(
        0, "use the first N train examples of each corpus; 0 for all (default: 0)", ge=0
    )
    validation_examples: int = option(
        20_000, "score checkpoints on N examples, drawn at random", ge=1
    )


@dataclass(frozen=True, config=CHECKED)
class DaptSettings(Settings):
    r"""Continues pre-training an encoder by masked language modelling on a domain corpus.

        nerbert dapt --corpus music-corpus --level integrated --masking span \
            --base-model bert-base-cased --output bert-music
        nerbert dapt --corpus music-corpus --fraction 0.01 0.25 0.5 1 --output bert-music

    Our flags come first, those of transformers.TrainingArguments follow.
    """

    corpus: Location = option(help="folder of the domain corpus", metavar="DIR", recipe=False)
    max_subwords: int = option(512, "sub-words of a block, the special ones included", ge=8)
    batch_size: int = option(8, "blocks of an optimiser step, over all devices", ge=1)
    level: Level = option("integrated", "level of the domain corpus that is trained on")
    masking: Literal["token", "span"] = option(
        "span", "what is masked: single sub-words, or spans of sub-words"
    )
    rate: float = option(0.15, "share of the sub-words that is masked", gt=0, le=1)
    fraction: Numbers = option(
        (1.0,),
        "share of the blocks that is trained on; several shares make one checkpoint each, in "
        "OUTPUT/fraction-F (default: 1)",
        metavar="F",
    )
    new_head: bool = option(
        False, "start the language-model head from random weights if the base model has none"
    )

    def __post_init__(self) -> None:
        for share in self.fraction:
            if not 0 < share <= 1:
                raise ValueError(f"--fraction {share:g}: give more than 0, at most 1")

    @property
    def share(self) -> float:
        """The share of a run with a single share."""
        (share,) = self.fraction
        return share

    def identity(self) -> dict[str, Any]:
        """The options that must be equal to continue a stopped run."""
        return {**super().identity(), "fraction": self.share}

    def runs(self) -> list[DaptSettings]:
        """The settings of one run for each share."""
        if len(self.fraction) == 1:
            return [self]
        return [
            replace(self, fraction=(share,), output=self.output / f"fraction-{share:g}")
            for share in self.fraction
        ]
