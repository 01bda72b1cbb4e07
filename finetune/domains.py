"""The domains of train sentences, and text of a domain without labels."""

from __future__ import annotations

from collections.abc import Sequence

from finetune.data.plain import drawn_sentences
from finetune.models.sequence import SOURCE, TARGET, TEXT
from finetune.settings import FitSettings
from nerbert.text.columns import Sentence


def types_by_domain(rows: Sequence[Sentence], kinds: Sequence[int]) -> list[list[str]]:
    """The entity types of the target and of the source, sorted.

    Args:
        rows: sentences; those after the last kind are of the target.
        kinds: domain of the first sentences.
    """
    found: list[set[str]] = [set(), set()]
    for number, row in enumerate(rows):
        domain = kinds[number] % TEXT if number < len(kinds) else TARGET
        found[domain].update(tag[2:] for tag in row.tags if tag != "O")
    return [sorted(types) for types in found]


def with_text(
    rows: Sequence[Sentence], kinds: Sequence[int], settings: FitSettings
) -> tuple[list[Sentence], list[int]]:
    """Adds as many sentences of text to train sentences as each domain has, for the head cdlm.

    The text of the source is that of its sentences.

    Args:
        rows: train sentences.
        kinds: domain of each.
        settings: settings of the fine-tuning.

    Raises:
        UserError: the text of the target cannot be read.
    """
    found, kinds = list(rows), list(kinds)
    if settings.head != "cdlm":
        return found, kinds
    for domain in (TARGET, SOURCE):
        own = [row for row, kind in zip(rows, kinds, strict=False) if kind == domain]
        text = own
        if domain == TARGET and own and settings.lm_text:
            paths = settings.lm_text
            share = -(-len(own) // len(paths))
            drawn = (drawn_sentences(path, "--lm-text", share, settings.seed) for path in paths)
            text = [row for some in drawn for row in some]
        found += [Sentence(row.tokens, ["O"] * len(row.tokens)) for row in text]
        kinds += [domain + TEXT] * len(text)
    return found, kinds
