"""The options of `nerbert dualner`, and its methods."""

from __future__ import annotations

from dataclasses import asdict
from dataclasses import dataclass as plain_dataclass
from typing import Any, Literal, get_args

from pydantic.dataclasses import dataclass

from finetune.settings import SEEDS, DataOptions
from nerbert.commands.options import CHECKED, Location, Numbers, Text, Texts, option

ALL = "all"

MethodName = Literal[
    "sequence",
    "span",
    "multitask",
    "multitask-long",
    "dual",
    "no-regularisation",
    "self-teaching",
    "no-target",
]

_TRAINING = "training"


@dataclass(frozen=True, config=CHECKED)
class DualSettings:
    """The options of training.

    Source: Zeng et al. 2022, section 3.1 and appendix B.
    """

    base_model: Text = option(
        "xlm-roberta-base",
        "encoder: name on the hub, folder, or `tiny`: made from the text",
        metavar="MODEL",
        group=_TRAINING,
    )
    epochs: int = option(8, "epochs of each stage", ge=1, group=_TRAINING)
    batch_size: int = option(128, "pieces per optimiser step of stage 1", ge=1, group=_TRAINING)
    second_batch_size: int = option(
        500, "pieces per optimiser step of stage 2", ge=1, group=_TRAINING
    )
    device_batch_size: int = option(
        125, "largest number of pieces in a batch of a device", ge=1, group=_TRAINING
    )
    learning_rate: float = option(2e-5, "highest learning rate", gt=0, group=_TRAINING)
    warmup_steps: int = option(
        300,
        "steps in which the learning rate rises; a tenth of all steps if it is more than a third",
        ge=0,
        group=_TRAINING,
    )
    eval_steps: int = option(
        250, "steps between evaluations on the dev sets of all languages", ge=1, group=_TRAINING
    )
    regularisation: float = option(
        0.5, "weight of the entity-aware regularisation", ge=0, group=_TRAINING
    )
    max_subwords: int = option(
        128, "largest number of sub-words of a piece, including special ones", ge=8, group=_TRAINING
    )
    source_sentences: int = option(
        0, "sentences of the source; 0 for all (default: 0)", ge=0, group=_TRAINING
    )
    target_sentences: int = option(
        0, "unlabelled sentences of each target; 0 for all (default: 0)", ge=0, group=_TRAINING
    )
    dev_sentences: int = option(
        0, "dev sentences of each language; 0 for all (default: 0)", ge=0, group=_TRAINING
    )
    test_sentences: int = option(
        0, "test sentences of each language; 0 for all (default: 0)", ge=0, group=_TRAINING
    )
    bf16: bool = option(
        False, "compute in bfloat16, which is faster on processors that support it", group=_TRAINING
    )

    def to_json(self) -> dict[str, Any]:
        """JSON-ready values."""
        return asdict(self)


@dataclass(frozen=True, config=CHECKED)
class DualOptions(DataOptions):
    r"""Trains zero-shot cross-lingual taggers by dual teaching of tags and spans (DualNER).

        nerbert dualner --base-model xlm-roberta-base --source wikiann/en \
            --targets wikiann/de wikiann/es wikiann/nl wikiann/ru --output dual
        nerbert dualner --recipe dualner-debug --source wikiann/en --targets wikiann/es \
            --method all --seeds 3 --source-share 0.2 1 --output dual

    All models are kept in --output. If the command is stopped, run it again: it makes the missing
    models, and continues from the last checkpoint. Each model is a tagger for nerbert predict,
    evaluate and demo.
    """

    source: Text = option(help="labelled set", metavar="SET")
    targets: Texts = option(
        help="sets of other languages (also patterns); only words of their train splits are used",
        metavar="SET",
    )
    target_text: Texts = option(
        (),
        "text instead of a target's train split: a file with one sentence per line, or the output "
        "of nerbert corpus",
        metavar="SET=PATH",
    )
    method: tuple[Literal[MethodName, "all"], ...] = option(
        ("dual",),
        f"{', '.join(get_args(MethodName))}, or all (default: dual, with multitask)",
        metavar="NAME",
    )
    source_share: Numbers = option(
        (1.0,),
        "shares of the source whose labels are used; the rest is unlabelled text (default: 1)",
        metavar="S",
    )
    seeds: int = option(1, "repetitions with different seeds", ge=1, le=len(SEEDS))
    output: Location = option("dual", "folder of models and report", metavar="DIR", recipe=False)

    def __post_init__(self) -> None:
        for share in self.source_share:
            if not 0 < share <= 1:
                raise ValueError(f"--source-share {share:g}: give more than 0, at most 1")

    @property
    def methods(self) -> list[str]:
        """The methods, in the order of the paper's tables. A second stage needs multitask."""
        names = set(METHODS) if ALL in self.method else set(self.method)
        if any(METHODS[name].pseudo for name in names):
            names.add("multitask")
        return [name for name in METHODS if name in names]


@plain_dataclass(frozen=True)
class Method:
    """A method of training.

    Attributes:
        gold: heads that are trained on the labels of the source: "sequence", "span".
        pseudo: pseudo-labels of a second stage: "dual", the predictions of the other head; "self",
            the head's own scores; "none", so the second stage goes on with the labels of the
            source alone; empty without a second stage.
        regularised: whether the distance between languages is part of the loss.
        target: whether the second stage uses text of the target languages.
        published: name in the paper's tables.
    """

    gold: tuple[str, ...] = ("sequence", "span")
    pseudo: str = ""
    regularised: bool = False
    target: bool = True
    published: str = ""


NO_TEACHER = "none"
"""Value of `pseudo` of a second stage without pseudo-labels."""

METHODS = {
    "sequence": Method(("sequence",), published="CLA"),
    "span": Method(("span",), published="SPAN"),
    "multitask": Method(published="MLT"),
    "multitask-long": Method(pseudo=NO_TEACHER),
    "dual": Method(pseudo="dual", regularised=True, published="DualNER"),
    "no-regularisation": Method(pseudo="dual", published="w/o MSE"),
    "self-teaching": Method(pseudo="self", regularised=True, published="w/ selfKL"),
    "no-target": Method(pseudo="dual", regularised=True, target=False, published="w/o TRG"),
}
"""The model, its baselines, and its ablations. Source: Zeng et al. 2022, sections 3.2 and 3.3.

`multitask-long` is ours: the control of what the second stage gains by its steps alone.
"""
