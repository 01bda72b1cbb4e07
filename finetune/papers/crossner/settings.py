"""The options of CrossNER's experiments."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal, get_args

from pydantic.dataclasses import dataclass

from finetune.papers.words.options import BILSTM, WORDS, word_options
from finetune.settings import ALL, RECIPES, SEEDS, SHOTS, DataRoot, FitSettings
from nerbert.commands.options import CHECKED, Location, Locations, Numbers, Text, Texts, option
from nerbert.commands.recipes import Recipes
from nerbert.commands.values import Given, build
from nerbert.text.tags import LEVELS, Level

DAPT_RECIPES = Recipes("pretrain.mlm", flag="--dapt-recipe")
"""Recipes of the domain-adaptive pre-training."""

DomainName = Literal["politics", "science", "music", "literature", "ai"]
DOMAINS: tuple[str, ...] = get_args(DomainName)

GridRegime = Literal["target", "source-target", "joint"]
Masking = Literal["token", "span"]

_DAPT = "pre-training, with --corpus"


SystemName = Literal[
    "bilstm-crf-word",
    "bilstm-crf",
    "coach-word",
    "coach",
    "cdlm",
    "multicell",
    "multicell-dapt",
    "multicell-code",
    "all",
]


@dataclasses.dataclass(frozen=True)
class System:
    """A baseline system.

    Attributes:
        row: its row in the paper's table 2.
        recipe: recipe of its fine-tuning.
        base: name of the model; empty for the base model, or for its domain-adapted ones.
        changes: settings that differ from the recipe.
        of_domain: settings that differ from the recipe in some domain.
        adapted: whether it is on the domain-adapted encoders.
        reads: whether the base model is its frozen encoder.
    """

    row: str
    recipe: str
    base: str = ""
    changes: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    of_domain: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)
    adapted: bool = False
    reads: bool = False

    def in_domain(self, domain: str, settings: FitSettings) -> FitSettings:
        """The settings in a domain; those that a user has changed are kept."""
        recipe = RECIPES.read(self.recipe, [FitSettings])
        changes = self.of_domain.get(domain, {})
        changed_by_user = {
            n for n in changes if n in recipe and getattr(settings, n) != recipe[n].value
        }
        changes_here = {
            name: value for name, value in changes.items() if name not in changed_by_user
        }
        return dataclasses.replace(settings, **changes_here)

    def settings(self, flags: Mapping[str, Given]) -> FitSettings:
        """The settings of its recipe; settings that the user gave as flags override them.

        Args:
            flags: what the user gave, by name of the option.
        """
        recipe_values = RECIPES.read(self.recipe, [FitSettings])
        changes = {name: Given(value, f"--{name} =") for name, value in self.changes.items()}
        return build(FitSettings, {**recipe_values, **flags, **changes})


_POLITICS = {"politics": {"word_dropout": 0.3}}
"""Source: CrossNER's authors, github.com/zliucr/CrossNER, issue 5."""

SYSTEMS: dict[str, System] = {
    "bilstm-crf-word": System(
        "BiLSTM-CRF (word)", "bilstm-crf", BILSTM, {"spelling": "none"}, of_domain=_POLITICS
    ),
    "bilstm-crf": System("BiLSTM-CRF (word + char)", "bilstm-crf", BILSTM, of_domain=_POLITICS),
    "coach-word": System("Coach (word)", "coach", WORDS, {"spelling": "none"}, of_domain=_POLITICS),
    "coach": System("Coach (word + char)", "coach", WORDS, of_domain=_POLITICS),
    "cdlm": System("CDLM", "cdlm", WORDS),
    "multicell": System("multi-cell LSTM", "multicell"),
    "multicell-dapt": System("multi-cell LSTM", "multicell", adapted=True),
    "multicell-code": System(
        "multi-cell LSTM, frozen encoder", "multicell-code", WORDS, reads=True
    ),
}
"""Name of a system -> what it is, in the order of the table."""


def row_of(base: str, settings: FitSettings) -> str:
    """The row of a baseline system that is given as base model; empty for an encoder."""
    is_word = word_options(settings).spelling == "none"
    for system in SYSTEMS.values():
        on_base = system.base in ("", base)
        head = on_base and RECIPES.read(system.recipe, [FitSettings])["head"].value
        if head == settings.head and is_word == (system.changes.get("spelling") == "none"):
            return system.row
    return ""


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
        f"baseline systems: {', '.join(SYSTEMS)}, or all; multicell-dapt is on the encoders of "
        "--dapt and --corpus, and multicell-code beside the frozen base model. Each has its own "
        "recipe, which flags override",
        metavar="NAME",
    )
    regime: tuple[GridRegime, ...] = option(
        get_args(GridRegime), f"{', '.join(get_args(GridRegime))} (default: all)", metavar="NAME"
    )
    source: Text = option("conll2003-crossner", "source set", metavar="SET")
    shots: Texts = option((ALL,), SHOTS, metavar="N")
    seeds: int = option(3, "repetitions with different seeds", ge=1, le=len(SEEDS))
    output: Location = option("crossner", "folder of the report", metavar="DIR", recipe=False)
    corpus: Locations = option(
        (),
        "folders of domain corpora, from which missing checkpoints are made",
        metavar="DIR",
        group=_DAPT,
    )
    text: Texts = option((), "corpora that cdlm reads beside those of --corpus", metavar="DIR")
    masking: tuple[Masking, ...] = option(
        get_args(Masking),
        f"{', '.join(get_args(Masking))} (default: all)",
        metavar="NAME",
        group=_DAPT,
    )
    level: tuple[Level, ...] = option(
        tuple(LEVELS),
        f"{', '.join(LEVELS)} (default: all; span not of domain)",
        metavar="NAME",
        group=_DAPT,
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
    def has_papers_encoders(self) -> bool:
        """Whether all maskings and levels are chosen: table 2 has no span masking of `domain`."""
        return {*self.masking} == {*get_args(Masking)} and {*self.level} == {*LEVELS}

    @property
    def chosen_systems(self) -> list[str]:
        """Names of the systems, in the order of the table."""
        return [name for name in SYSTEMS if name in self.systems or "all" in self.systems]
