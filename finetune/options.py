"""The options of the commands that fine-tune and use taggers."""

from __future__ import annotations

from typing import Literal

from pydantic.dataclasses import dataclass

from finetune.parts import models
from finetune.settings import ALL, SEEDS, SHOTS, DataOptions, Regime
from nerbert.commands.options import CHECKED, Location, Seed, Text, Texts, option

SMALL = "open-en"
"""The tagger that `nerbert predict` takes without --model."""
SHIPPED = (SMALL, "open-en-base")
"""Names of taggers that are shipped; see `finetune.tagger.shipped`."""


@dataclass(frozen=True, config=CHECKED)
class Device:
    """The options of commands that load a model."""

    device: str = option(
        "auto", "where models compute: cpu, cuda, mps; a GPU if there is one", metavar="NAME"
    )
    half: bool = option(
        False, "load taggers with 16 bits (float16 on a GPU, bfloat16 on a CPU), to use them"
    )


@dataclass(frozen=True, config=CHECKED)
class TrainOptions(DataOptions, Device):
    """Fine-tunes a tagger, and keeps it: an ordinary Hugging Face checkpoint with a model card.

        nerbert train --base-model ner-bert --data crossner/politics --output politics-tagger
        nerbert train --base-model TAGGER --keep-old TAGGER --data new-types --output both

    Trains on the train split, keeps the weights with the best F1 on the dev split, and scores the
    test split. If it is stopped, run the same command again: it continues from its last checkpoint
    and gets the same weights.
    """

    base_model: Text = option(
        help="encoder or pre-trained tagger: name on the hub, or folder", metavar="MODEL"
    )
    data: Texts = option(
        help="names of sets (also patterns), hf:NAME, files, or folders with train, dev and test; "
        "several are used together",
        metavar="SET",
    )
    output: Location = option(help="folder of the tagger", metavar="DIR", recipe=False)
    keep_old: Text | None = option(
        None,
        "tagger whose types the new one has, too: it labels them in the sentences of --data; best "
        "also the --base-model",
        metavar="TAGGER",
    )
    seed: Seed = option(555, "seed of head, dropout and order")
    report_to: Texts = option(
        (),
        "tools that get loss and dev F1 while it trains: tensorboard (files in OUTPUT/events), "
        "wandb, mlflow, or what else transformers knows",
        metavar="TOOL",
    )
    push_to_hub: Text | None = option(
        None, "repository on the hub, such as USER/NAME, to send the tagger to", metavar="REPO"
    )
    private: bool = option(False, "make this repository private")


@dataclass(frozen=True, config=CHECKED)
class SearchOptions(DataOptions, Device):
    r"""Searches the settings of fine-tuning that give the best F1 on the dev split.

        nerbert search --base-model bert-base-cased --data crossner/politics --output search \
            --space learning_rate=1e-5,5e-5,1e-4 head=linear,crf
        nerbert search --base-model bert-base-cased --data crossner/politics --output search \
            --method tpe --trials 30 --space learning_rate=1e-5..1e-3 batch_size=8,16,32

    The method grid is that of T-NER: all settings are trained for a few epochs, the best of them to
    the end, and the best one of these until its dev F1 drops, unless --epochs says when to end. The
    best tagger is in OUTPUT/model, its settings are in OUTPUT/best.toml, a recipe for nerbert
    train. If it is stopped, run it again.
    """

    base_model: Text = option(
        help="encoder or pre-trained tagger: name on the hub, or folder", metavar="MODEL"
    )
    data: Texts = option(
        help="names of sets (also patterns), hf:NAME, or folders with train and dev", metavar="SET"
    )
    output: Location = option(help="folder of the search", metavar="DIR", recipe=False)
    space: Texts = option(
        ("learning_rate=1e-5,5e-5,1e-4", "batch_size=8,16", "head=linear,crf"),
        "settings to try: NAME=VALUE,VALUE, or NAME=LOW..HIGH",
        metavar="NAME=VALUES",
    )
    method: Literal["grid", "random", "tpe"] = option(
        "grid", "all values, in two stages; at random; or by optuna's TPE"
    )
    trials: int = option(20, "number of trials of random and tpe", ge=1)
    partial_epochs: int = option(5, "epochs of the first stage of grid", ge=1)
    kept: int = option(5, "settings that the second stage of grid trains to the end", ge=1)
    time_budget: float | None = option(
        None, "minutes after which no trial begins; run it again to go on", gt=0, metavar="MINUTES"
    )
    seed: Seed = option(555, "seed of head, dropout, order, and of the choices")


BASES = (
    "encoders or pre-trained taggers: names on the hub, or folders; or without pre-training "
    + ("; ".join(f"{name}, {entry.help}" for name, entry in models().items()))
)
"""Help of the option --models."""


@dataclass(frozen=True, config=CHECKED)
class RunOptions(DataOptions, Device):
    """The options of commands that fine-tune several models on several sets."""

    models: Texts = option(help=BASES, metavar="MODEL", also="--model")
    data: Texts = option(
        help="names of sets (also patterns), hf:NAME, folders with train, dev and test",
        metavar="SET",
    )
    seeds: int = option(3, "repetitions with different seeds", ge=1, le=len(SEEDS))
    output: Location = option("report", "folder of the report", metavar="DIR", recipe=False)


@dataclass(frozen=True, config=CHECKED)
class EvaluateOptions(RunOptions):
    r"""Fine-tunes taggers on named-entity sets, and scores them on the test splits.

        nerbert evaluate --model ner-bert --data crossner/politics --seeds 3
        nerbert evaluate --models bert-base-cased ner-bert --data 'crossner/*' \
            --regime source-target --source conll2003-crossner --output report
        nerbert evaluate --models bert-base-cased ner-bert --data crossner/ai --shots 10 25 50 all
        nerbert evaluate --model tagger --data btc --regime zero-shot --label-map unified

    All results are kept in --output. If the command is stopped, run it again: it does the missing
    runs.
    """

    # Five seeds: Liu et al. 2021 (NER-BERT), section 4.4.
    seeds: int = option(5, "repetitions with different seeds", ge=1, le=len(SEEDS))
    regime: Regime = option(
        "target",
        "train on the target; on the source, then on the target; on both together; on the source "
        "only (zero-shot; without --source the model must be a tagger)",
    )
    source: Texts = option((), "source sets", metavar="SET")
    shots: Texts = option((ALL,), SHOTS, metavar="N")
    check_contamination: Location | None = option(
        None,
        "also score without the test sentences that are in this corpus, or text file",
        metavar="CORPUS",
    )
