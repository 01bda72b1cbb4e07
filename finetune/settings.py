"""The settings of fine-tuning, and of reading data sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic.dataclasses import dataclass

from finetune.parts import heads, options_of_parts
from nerbert.commands.options import CHECKED, Seed, Text, Texts, extended, option
from nerbert.commands.recipes import Recipes
from nerbert.errors import UserError
from nerbert.text.lines import ColumnsText

Regime = Literal["target", "source-target", "joint", "zero-shot"]
"""How source and target data are combined."""

SEEDS = (555, 666, 777, 888, 999)
"""Seeds of repeated runs. The first three are those of CrossNER's released code."""

RECIPES = Recipes("finetune")
"""Recipes of fine-tuning."""

_FIT = "fine-tuning"
_MORE = "fine-tuning, details"
_READING = "reading data sets, details"

CONTEXT = "sentences before, and after, that the tagger sees beside the one it tags (default: 0)"


if TYPE_CHECKING:
    HeadName = str
else:
    HeadName = Literal[tuple(name for name, entry in heads().items() if entry.help)]


@extended(*options_of_parts())
@dataclass(frozen=True, config=CHECKED)
class FitSettings:
    """How a tagger is fine-tuned; with the options of heads and of models without pre-training.

    The defaults are NER-BERT's (Liu et al. 2021, arXiv:2112.00405, section 4.4): Adam with learning
    rate 5e-5, batch 16; the paper does not state the number of epochs.
    """

    head: HeadName = option(
        "linear",
        "; ".join(f"{name}: {entry.help}" for name, entry in heads().items() if entry.help),
        group=_FIT,
        table="head",
    )
    learning_rate: float = option(
        5e-5,
        "highest learning rate; 0 beside --head-learning-rate: the encoder stays as it is",
        ge=0,
        group=_FIT,
    )
    head_learning_rate: float | None = option(
        None, "learning rate of the head (default: that of the encoder)", gt=0, group=_MORE
    )
    batch_size: int = option(16, "pieces per optimiser step", ge=1, group=_FIT)
    epochs: int = option(100, "largest number of epochs", ge=1, group=_FIT, resets="least_steps")
    least_steps: int = option(
        0,
        "lower bound of the largest number of steps, for small sets; that of a recipe does not "
        "count beside --epochs (default: 0)",
        ge=0,
        group=_MORE,
    )
    eval_steps: int = option(
        1,
        "smallest number of steps between evaluations on the dev set, which are otherwise made "
        "after each epoch",
        ge=1,
        group=_MORE,
    )
    patience: int = option(
        8, "stop after N evaluations without a better dev F1 (early stopping)", ge=1, group=_FIT
    )
    source_epochs: int = option(
        2, "epochs on the source, in the regime source-target", ge=1, group=_MORE
    )
    source_times: int = option(
        0,
        "repetitions of the target, in the regime joint; 0 for |source| / |target| (default: 0)",
        ge=0,
        group=_MORE,
    )
    schedule: str = option(
        "constant", "schedule of the learning rate; a name from transformers", group=_MORE
    )
    warmup_steps: int = option(0, "steps in which the learning rate rises", ge=0, group=_MORE)
    weight_decay: float = option(0.0, "weight decay of AdamW", ge=0, group=_MORE)
    max_subwords: int | None = option(
        None,
        "largest number of sub-words of a piece, including special ones (default: what the model "
        "takes, at most 512)",
        ge=8,
        group=_FIT,
    )
    keep: Literal["best", "last"] = option(
        "best", "weights that are kept: those of the best dev F1, or the last", group=_FIT
    )
    lora_rank: int = option(
        0,
        "rank of LoRA's matrices beside each linear layer, which alone are trained, with the head; "
        "0 to train all weights (default: 0)",
        ge=0,
        group=_FIT,
    )
    lora_alpha: int = option(16, "scale of LoRA's matrices", gt=0, group=_MORE)
    carry_head: bool = option(
        False,
        "initialise the head with rows of a pre-trained tagger's head: those of the nearest types, "
        "by name or ontology",
        group=_MORE,
    )
    carry_optimizer: bool = option(
        False,
        "keep the head and the optimiser's state from source to target, in the regime "
        "source-target",
        group=_MORE,
    )
    accumulation: int = option(
        1, "batches of an optimiser step, for little memory", ge=1, group=_MORE
    )
    max_grad_norm: float = option(
        1.0, "norm that gradients are clipped to; 0 for no clipping", ge=0, group=_MORE
    )
    stop_after: int = option(
        0, "steps before which --patience does not count (default: 0)", ge=0, group=_MORE
    )
    head_dropout: float | None = option(
        None, "dropout before the linear head (default: that of the model)", ge=0, lt=1, group=_MORE
    )
    attend_padding: bool = option(
        False, "let words attend to padding, as the released code of CrossNER", group=_MORE
    )
    context: int = option(0, CONTEXT, ge=0, group=_MORE)
    scoring: Literal["strict", "crossner"] = option(
        "strict",
        "what chooses the weights, and is reported first: seqeval's strict F1; or conlleval's over "
        "all sentences as one, as the released code of CrossNER",
        group=_MORE,
    )
    first_shots: bool = option(
        False, "take the first sentences for --shots instead of drawing them", group=_MORE
    )
    fp16: bool = option(False, "compute in float16, on GPUs", group=_MORE)
    bf16: bool = option(
        False, "compute in bfloat16, which is faster on processors that support it", group=_FIT
    )
    seed: Seed = option(555, "seed of head, dropout and order", flag=False)

    def __post_init__(self) -> None:
        if not (self.learning_rate or self.head_learning_rate):
            raise ValueError("--learning-rate 0 trains nothing; give --head-learning-rate")


@dataclass(frozen=True, config=CHECKED)
class DataRoot:
    """The options of all commands that read named data sets."""

    data_root: Text | None = option(
        None,
        "folder of the named sets (default: NERBERT_DATA, or data)",
        metavar="DIR",
        group="reading data sets",
    )
    revision: Text | None = option(
        None,
        "branch, tag or commit of sets on the hub, such as refs/convert/parquet",
        metavar="NAME",
        group=_READING,
    )
    splits: Texts = option(
        (),
        "other names of splits, such as train=train_2020 test=test_2021",
        metavar="SPLIT=NAME",
        group=_READING,
    )
    columns: ColumnsText = option(
        None,
        "columns of words and tags in files, by number or name (default: the first and the last)",
        metavar="word=N,tag=N",
        group=_READING,
    )


@dataclass(frozen=True, config=CHECKED)
class DataOptions(DataRoot):
    """The options for reading data sets."""

    label_map: Text | None = option(
        None,
        "new names of entity types: none, unified (LOC, location ... -> location), or a TOML file "
        "(default: none for one set, unified for several)",
        metavar="MAP",
        group=_READING,
    )
    keep_types: bool = option(
        False, "keep the names of types also for several sets, as --label-map none", group=_READING
    )
    lowercase: bool = option(False, "convert train and test words to lower case", group=_READING)


SHOTS = "train sentences, drawn at random: numbers, 25%, all"

ALL = "all"
"""Value of --shots for the whole train split."""


def seeds(count: int, first: int = SEEDS[0]) -> tuple[int, ...]:
    """The first of `SEEDS`; before them the one of a recipe, if it is another.

    Args:
        count: number of seeds.
        first: seed of the settings.
    """
    return tuple(dict.fromkeys((first, *SEEDS)))[:count]


def shots_of(text: str, sentences: int) -> int:
    """Number of sentences for a value of --shots: "10", "25%" (at least one sentence), or "all".

    Args:
        text: the value.
        sentences: number of sentences of the train split.

    Raises:
        UserError: the value is not of one of these forms.
    """
    if text == ALL:
        return sentences
    try:
        if text.endswith("%"):
            share = float(text[:-1])
            if not 0 < share <= 100:
                raise ValueError
            return max(1, round(sentences * share / 100))
        if int(text) < 1:
            raise ValueError
        return min(int(text), sentences)
    except ValueError:
        raise UserError(f"--shots {text}: give numbers, percentages such as 25%, or all") from None
