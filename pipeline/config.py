"""Settings of a run: frozen, validated when made, and written beside what they made."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from pipeline.errors import UserError

SENTENCE_MODELS = ("dump", "nltk")
BALANCES = ("category-first", "calibrated", "none")
STAGES = ("extract", "resolve", "corpus")


@dataclass(frozen=True)
class ExtractSettings:
    """What decides the documents.

    Attributes:
        sentence_model: "dump" trains Punkt on the dump, "nltk" takes NLTK's pre-trained model.
        list_items: keep the items of lists as paragraphs.
        seed: of every random choice.
    """

    sentence_model: str = "dump"
    list_items: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        if self.sentence_model not in SENTENCE_MODELS:
            raise UserError(
                f"--sentence-model {self.sentence_model}: use one of {', '.join(SENTENCE_MODELS)}"
            )


@dataclass(frozen=True)
class ResolveSettings:
    """What decides the entities' classes: paths of DBpedia's files; None takes the shipped ones."""

    types: tuple[str, ...] = ()
    ontology: str | None = None
    infobox_mapping: str | None = None
    infobox: bool = True


@dataclass(frozen=True)
class SelectSettings:
    """What decides which sentences become examples, and their labels.

    Attributes:
        categories: name of a category set, or the path of a user's table.
        min_entities: distinct linked entities a category needs to be kept.
        frequent: how many of the most frequent categories the drop rule looks at.
        keep_untyped: keep sentences whose mentions are all ENTITY.
        drop_entity: pairs of a number of ENTITY mentions and the probability to drop the sentence;
            the last also holds for more.
        min_tokens: shortest sentence that is kept.
        max_tokens: longest sentence that is kept.
        validation_share: share of pages whose sentences are for validation.
        exclude: column files of evaluation sets to keep out of the corpus.
        seed: of every random choice.
    """

    categories: str = "specific"
    min_entities: int = 10
    frequent: int = 20
    keep_untyped: bool = False
    drop_entity: tuple[tuple[int, float], ...] = ((3, 0.3), (4, 0.5), (5, 0.7))
    min_tokens: int = 5
    max_tokens: int = 256
    validation_share: float = 0.1
    exclude: tuple[str, ...] = ()
    seed: int = 0

    def __post_init__(self) -> None:
        at_least("--min-entities", self.min_entities, 0)
        at_least("--frequent", self.frequent, 0)
        at_least("--min-tokens", self.min_tokens, 1)
        at_least("--max-tokens", self.max_tokens, self.min_tokens)
        check_share("--validation-share", self.validation_share)
        for _, probability in self.drop_entity:
            check_share("--drop-entity", probability)


@dataclass(frozen=True)
class BalanceSettings:
    """How train examples are repeated: p(E) proportional to |E|**alpha."""

    balance: str = "category-first"
    alpha: float = 0.7
    seed: int = 0

    def __post_init__(self) -> None:
        if self.balance not in BALANCES:
            raise UserError(f"--balance {self.balance}: use one of {', '.join(BALANCES)}")
        check_share("--alpha", self.alpha)


def parse_drop_entity(text: str) -> tuple[tuple[int, float], ...]:
    """Parses a flag: "3:0.3,4:0.5" -> ((3, 0.3), (4, 0.5)), sorted.

    Raises:
        UserError: the text is not of that form.
    """
    try:
        pairs = [pair.split(":") for pair in text.split(",") if pair.strip()]
        return tuple(sorted((int(count), float(probability)) for count, probability in pairs))
    except ValueError:
        raise UserError(
            f"--drop-entity {text!r}: write NUMBER:PROBABILITY,... such as 3:0.3,4:0.5,5:0.7"
        ) from None


def as_dict(settings: Any) -> dict[str, Any]:
    """The settings as JSON-ready values."""
    return asdict(settings)


def at_least(flag: str, value: int, least: int) -> None:
    """Refuses what is too small.

    Raises:
        UserError: the value is below `least`.
    """
    if value < least:
        raise UserError(f"{flag} {value}: give a number of at least {least}")


def check_share(flag: str, value: float) -> None:
    """Refuses what is no share.

    Raises:
        UserError: the value is not from 0 to 1.
    """
    if not 0 <= value <= 1:
        raise UserError(f"{flag} {value:g}: give a number from 0 to 1")
