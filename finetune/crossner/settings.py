"""The options of CrossNER's experiments."""

from __future__ import annotations

from typing import Literal, get_args

from pydantic.dataclasses import dataclass

from finetune.crossner.systems import SYSTEMS, SystemName
from finetune.settings import ALL, SEEDS, SHOTS, DataRoot
from nerbert.commands.options import CHECKED, Numbers, Recipes, Text, Texts, option
from nerbert.text.levels import LEVELS, Level

DAPT_RECIPES = Recipes("pretrain.mlm", flag="--dapt-recipe")
"""Recipes of the domain-adaptive pre-training."""

DomainName = Literal["politics", "science", "music", "literature", "ai"]
DOMAINS: tuple[str, ...] = get_args(DomainName)

GridRegime = Literal["target", "source-target", "joint"]
Masking = Literal["token", "span"]

_DAPT = "pre-training, with --corpus"


@dataclass(frozen=True, config=CHECKED)
class CrossnerOptions(DataRoot):
    r"""Runs the experiments of CrossNER: domain-adaptive pre-training, then fine-tuning.

        nerbert crossner --base-model bert-base-cased --dapt bert-music --domain music --output out
        nerbert crossner --base-model bert-base-cased --corpus music-corpus --domain music \
            --masking token span --level domain entity task integrated --output out

        nerbert crossner --base-model bert-base-cased --domain music --systems all --output out

    --dapt takes checkpoints of nerbert dapt; --corpus makes such checkpoints in the output folder.
    All results are kept there. If the command is stopped, run it again: it does the missing runs.
    """

    base_model: Text = option(
        help="encoder without domain-adaptive pre-training: name, or folder", metavar="MODEL"
    )
    domain: tuple[DomainName, ...] = option(help=f"domains: {', '.join(DOMAINS)}", metavar="NAME")
    dapt: Texts = option(
        (), "checkpoints of nerbert dapt; they record domain, masking and level", metavar="DIR"
    )
    systems: tuple[SystemName, ...] = option(
        (),
        f"baseline systems: {', '.join(SYSTEMS)}, or all; the last is multicell on the encoders of "
        "--dapt and --corpus. Each has its own recipe, which flags override",
        metavar="NAME",
    )
    regime: tuple[GridRegime, ...] = option(
        get_args(GridRegime), f"{', '.join(get_args(GridRegime))} (default: all)", metavar="NAME"
    )
    source: Text = option("conll2003-crossner", "source set", metavar="SET")
    shots: Texts = option((ALL,), SHOTS, metavar="N")
    seeds: int = option(3, "number of repetitions with different seeds", ge=1, le=len(SEEDS))
    output: Text = option("crossner", "folder of the report", metavar="DIR", recipe=False)
    corpus: Texts = option(
        (),
        "folders of domain corpora, from which missing checkpoints are made",
        metavar="DIR",
        group=_DAPT,
    )
    masking: tuple[Masking, ...] = option(
        get_args(Masking),
        f"{', '.join(get_args(Masking))} (default: all)",
        metavar="NAME",
        group=_DAPT,
    )
    level: tuple[Level, ...] = option(
        tuple(LEVELS), f"{', '.join(LEVELS)} (default: all)", metavar="NAME", group=_DAPT
    )
    fraction: Numbers = option(
        (1.0,), "shares of the corpus (default: 1)", metavar="F", group=_DAPT
    )
    dapt_recipe: Text = option(
        "crossner-paper",
        f"{', '.join(DAPT_RECIPES.names)}, or a TOML file",
        metavar="NAME",
        group=_DAPT,
    )
    new_head: bool = option(
        False,
        "start the language-model head from random weights if the base model has none",
        group=_DAPT,
    )

    @property
    def chosen_systems(self) -> list[str]:
        """Names of the systems, in the order of the table."""
        return [name for name in SYSTEMS if name in self.systems or "all" in self.systems]
