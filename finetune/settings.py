"""The options of fine-tuning, and of the commands that use it."""

from __future__ import annotations

from typing import Literal

from pydantic.dataclasses import dataclass

from nerbert.errors import UserError
from nerbert.options import CHECKED, Recipes, Text, Texts, option

Regime = Literal["target", "source-target", "joint", "zero-shot"]
"""How source and target data are combined."""

SEEDS = (555, 666, 777, 888, 999)
"""Seeds of repeated runs. The first three are those of CrossNER's released code."""

RECIPES = Recipes("finetune", "nerbert")
"""Recipes of fine-tuning."""

_FIT = "fine-tuning"
_READING = "reading data sets"


@dataclass(frozen=True, config=CHECKED)
class FitSettings:
    """How a tagger is fine-tuned.

    The defaults are NER-BERT's (Liu et al. 2021, arXiv:2112.00405, section 4.4): Adam with learning
    rate 5e-5, batch 16; the paper does not state the number of epochs.
    """

    head: Literal["linear", "crf"] = option(
        "linear", "linear layer, or a conditional random field above it", group=_FIT
    )
    learning_rate: float = option(5e-5, "highest learning rate", gt=0, group=_FIT)
    batch_size: int = option(16, "pieces per optimiser step", ge=1, group=_FIT)
    epochs: int = option(100, "largest number of epochs", ge=1, group=_FIT)
    least_steps: int = option(
        0,
        "lower bound of the largest number of steps, for small sets: it overrides --epochs "
        "(default: 0)",
        ge=0,
        group=_FIT,
    )
    eval_steps: int = option(
        1,
        "smallest number of steps between evaluations on the dev set, which are otherwise made "
        "after each epoch",
        ge=1,
        group=_FIT,
    )
    patience: int = option(
        8, "the training ends after so many evaluations without a better dev F1", ge=1, group=_FIT
    )
    source_epochs: int = option(
        2, "epochs on the source, in the regime source-target", ge=1, group=_FIT
    )
    source_times: int = option(
        0,
        "repetitions of the target, in the regime joint; 0 for |source| / |target| (default: 0)",
        ge=0,
        group=_FIT,
    )
    schedule: str = option(
        "constant", "schedule of the learning rate; a name from transformers", group=_FIT
    )
    warmup_steps: int = option(0, "steps in which the learning rate rises", ge=0, group=_FIT)
    weight_decay: float = option(0.0, "weight decay of AdamW", ge=0, group=_FIT)
    max_subwords: int = option(
        128, "largest number of sub-words of a piece, including special ones", ge=8, group=_FIT
    )
    carry_head: bool = option(
        False,
        "initialise the head with rows of a pre-trained tagger's head: those of the nearest types, "
        "by name or ontology",
        group=_FIT,
    )
    carry_optimizer: bool = option(
        False,
        "keep the head and the optimiser's state from source to target, in the regime "
        "source-target",
        group=_FIT,
    )
    accumulation: int = option(
        1, "batches of an optimiser step, for little memory", ge=1, group=_FIT
    )
    max_grad_norm: float = option(1.0, "norm that gradients are clipped to", gt=0, group=_FIT)
    fp16: bool = option(False, "compute in float16, on GPUs", group=_FIT)
    bf16: bool = option(
        False, "compute in bfloat16, which is faster on processors that support it", group=_FIT
    )
    vectors: Text = option(
        "", "word vectors for bilstm: lines `word number number ...`", metavar="FILE", group=_FIT
    )
    seed: int = option(555, "seed of head, dropout and order", flag=False)


@dataclass(frozen=True, config=CHECKED)
class DataRoot:
    """The option of all commands that read named data sets."""

    data_root: Text | None = option(
        None,
        "folder of the named sets (default: NERBERT_DATA, or data)",
        metavar="DIR",
        group=_READING,
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


@dataclass(frozen=True, config=CHECKED)
class TrainOptions(DataOptions):
    """The options of `nerbert train`."""

    base_model: Text = option(
        help="encoder or pre-trained tagger: name on the hub, or folder", metavar="MODEL"
    )
    data: Texts = option(
        help="names of sets (also patterns), hf:NAME, files, or folders with train, dev and test; "
        "several are used together",
        metavar="SET",
    )
    output: Text = option(help="folder of the tagger", metavar="DIR", recipe=False)
    seed: int = option(555, "seed of head, dropout and order")
    tensorboard: bool = option(False, "write TensorBoard's events to OUTPUT/events")
    push_to_hub: Text | None = option(
        None, "repository on the hub, such as USER/NAME, to send the tagger to", metavar="REPO"
    )
    private: bool = option(False, "make this repository private")


SHOTS = "train sentences, drawn at random: numbers, 25%, all"

ALL = "all"
"""Value of --shots for the whole train split."""

MODELS = (
    "encoders or pre-trained taggers: names on the hub, or folders; or bilstm, with --recipe "
    "bilstm-crf"
)


@dataclass(frozen=True, config=CHECKED)
class RunOptions(DataOptions):
    """The options of commands that fine-tune several models on several sets."""

    models: Texts = option(help=MODELS, metavar="MODEL", also="--model")
    data: Texts = option(
        help="names of sets (also patterns), hf:NAME, folders with train, dev and test",
        metavar="SET",
    )
    seeds: int = option(3, "number of repetitions with different seeds", ge=1, le=len(SEEDS))
    output: Text = option("report", "folder of the report", metavar="DIR", recipe=False)


@dataclass(frozen=True, config=CHECKED)
class EvaluateOptions(RunOptions):
    """The options of `nerbert evaluate`."""

    regime: Regime = option(
        "target",
        "train on the target; on the source, then on the target; on both together; on the source "
        "only (zero-shot; without --source the model must be a tagger)",
    )
    source: Texts = option((), "source sets", metavar="SET")
    shots: Texts = option((ALL,), SHOTS, metavar="N")
    check_contamination: Text | None = option(
        None,
        "also score without the test sentences that are in this corpus, or text file",
        metavar="CORPUS",
    )


@dataclass(frozen=True, config=CHECKED)
class MatrixOptions(RunOptions):
    """The options of `nerbert matrix`."""

    train: Texts = option(
        (),
        "sets to train on, A+B for two together (default: sets of --data with a train split)",
        metavar="SET",
    )
    keep_models: bool = option(False, "keep the checkpoint of each row")


@dataclass(frozen=True, config=CHECKED)
class OverlapOptions(DataRoot):
    """The options of `nerbert overlap`."""

    data: Texts = option(
        help="sets (names, patterns, folders), or folders of domain corpora", metavar="SET"
    )
    words: int = option(5000, "number of most frequent words that are compared", ge=1)
    stop_words: Text | None = option(
        None, "stop words, one per line (default: scikit-learn's, English)", metavar="FILE"
    )
    output: Text = option("overlap", "folder of the report", metavar="DIR", recipe=False)


@dataclass(frozen=True, config=CHECKED)
class TsneOptions(DataOptions):
    """The options of `nerbert tsne`."""

    models: Texts = option(help=MODELS, metavar="MODEL", also="--model")
    data: Text = option(help="name of a set, hf:NAME, or folder", metavar="SET")
    points: int = option(2000, "number of entities, drawn at random", ge=1)
    seed: int = option(0, "seed of every random choice (default: 0)")
    output: Text = option("tsne.png", "PNG file of the plot", metavar="FILE", recipe=False)


@dataclass(frozen=True, config=CHECKED)
class Placing:
    """The options of commands that load a tagger to use it."""

    device: str = option(
        "auto", "where the tagger computes: cpu, cuda, mps; a GPU if there is one", metavar="NAME"
    )
    half: bool = option(False, "compute with 16 bits (float16 on a GPU, bfloat16 on a CPU)")


@dataclass(frozen=True, config=CHECKED)
class PredictOptions(Placing):
    """The options of `nerbert predict`."""

    texts: Texts = option((), "texts to tag", metavar="TEXT", positional=True, recipe=False)
    model: Text = option(help="a fine-tuned or pre-trained tagger", metavar="MODEL")
    input: Text | None = option(
        None, "file with one text per line; - for standard input", metavar="FILE", recipe=False
    )
    format: Literal["jsonl", "conll", "html"] = option("jsonl", "format of the output")


@dataclass(frozen=True, config=CHECKED)
class DemoOptions(Placing):
    """The options of `nerbert demo`."""

    models: Texts = option(
        help="fine-tuned or pre-trained taggers to choose from", metavar="MODEL", also="--model"
    )
    host: str = option("127.0.0.1", "address to listen on", metavar="ADDRESS")
    port: int = option(8000, "port to listen on", ge=0, le=65535)
    max_characters: int = option(10_000, "longest text that is accepted", ge=1)


def seeds(count: int) -> tuple[int, ...]:
    """The first of `SEEDS`."""
    return SEEDS[:count]


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
