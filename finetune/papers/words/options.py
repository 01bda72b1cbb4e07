"""The options of models without pre-training, and of the heads that stand on them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, cast

from pydantic.dataclasses import dataclass

from nerbert.commands.options import CHECKED, Text, Texts, option

if TYPE_CHECKING:
    from finetune.settings import FitSettings

_WORDS: dict[str, Any] = {
    "group": "models without pre-training (bilstm, words), details",
    "table": "head",
}

BILSTM = "bilstm"
"""The BiLSTM."""

WORDS = "words"
"""The words' vectors alone; the heads coach, cdlm and multicell have LSTMs."""


@dataclass(frozen=True, config=CHECKED)
class WordOptions:
    """The options, which `FitSettings` gets."""

    vectors: Texts = option(
        (),
        "vectors of words, and of n-grams (`3gram-abc`): files of lines `word number number ...`",
        metavar="FILE",
        path="content",
        **_WORDS,
    )
    spelling: Literal["lstm", "cnn", "ngrams", "none"] = option(
        "lstm",
        "vector of a word's spelling: by an LSTM or a convolution over its characters, or the mean "
        "of its n-grams",
        **_WORDS,
    )
    word_encoder: Text = option(
        "",
        "encoder whose states of words, as they are, stand beside their vectors: name, or folder "
        "(default: none)",
        metavar="MODEL",
        path="model",
        **_WORDS,
    )
    word_size: int = option(100, "size of words' vectors, unless they are given", ge=1, **_WORDS)
    word_layers: int = option(1, "layers of the BiLSTM of bilstm and coach", ge=1, **_WORDS)
    word_hidden: int = option(
        200, "size of a word's states, of both directions of LSTMs", ge=2, **_WORDS
    )
    word_dropout: float = option(
        0.5, "share of numbers that are dropped between layers", ge=0, lt=1, **_WORDS
    )
    target_weight: float = option(
        1.0, "cdlm and multicell: weight of the tags of the target", gt=0, **_WORDS
    )
    state_dropout: float | None = option(
        None,
        "share of numbers that are dropped after the BiLSTM of bilstm and coach (default: that "
        "between layers)",
        ge=0,
        lt=1,
        **_WORDS,
    )
    forget_rare: bool = option(
        True,
        "read half of the words that occur once as unknown ones, so that those are learnt",
        **_WORDS,
    )
    separate_steps: bool = option(
        False,
        "coach: an optimiser step for the mentions of a batch, then one for the types in each of "
        "its sentences, instead of one for both",
        **_WORDS,
    )
    template_weight: float = option(
        0.0, "coach: weight of wrong templates; 0 for none (default: 0)", ge=0, **_WORDS
    )
    template_steps: int = option(
        200, "coach: steps before the states of texts follow the templates", ge=0, **_WORDS
    )
    lm_text: Texts = option(
        (),
        "cdlm: texts of the target domain: a file with one sentence per line, or the output of "
        "nerbert domain (default: the train sentences)",
        metavar="PATH",
        path="content",
        **_WORDS,
    )

    def __post_init__(self) -> None:
        settings: Any = self
        if settings.head == "coach" and self.separate_steps and settings.accumulation > 1:
            raise ValueError("--accumulation: give --no-separate-steps, too")


def word_options(settings: FitSettings) -> WordOptions:
    """The settings of a fine-tuning as these options, which they have, too."""
    return cast(WordOptions, settings)


def changed(settings: FitSettings, **options: Any) -> FitSettings:
    """The settings with other values of these options."""
    return replace(settings, **options)
