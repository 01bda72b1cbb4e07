"""How source and target come together: `target`, `source-target`, `joint`, `zero-shot`."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace

from finetune.config import FitSettings
from finetune.conll import Sentence
from finetune.labelmaps import same_name
from finetune.tagger import Tagger


def joined(
    source: Sequence[Sentence], target: Sequence[Sentence], times: int = 0
) -> list[Sentence]:
    """The source, and the target repeated.

    Source: Liu et al. 2021 (CrossNER), arXiv:2012.04373, section 4.

    Args:
        source: sentences.
        target: sentences, at least one.
        times: how often the target is repeated; 0 for |source| / |target|, rounded.
    """
    times = times or max(1, round(len(source) / len(target)))
    return [*source, *(row for _ in range(times) for row in target)]


def fitted(
    base: str, setting: str, target: Sequence[Sentence], dev: Sequence[Sentence],
    source: Sequence[Sentence], settings: FitSettings,
) -> Tagger:  # fmt: skip
    """A tagger fine-tuned in one of the settings.

    In `source-target` the encoder learns the source first, for `source_epochs`; then the target,
    with a head whose rows are taken over for the types that both have, or with one head and one
    optimiser for both. In `zero-shot` it learns the
    source alone; without a source it is a tagger already, and learns nothing.

    Args:
        base: encoder.
        setting: of `finetune.config.SETTINGS`.
        target: train sentences; not used in `zero-shot`.
        dev: of the target; in `zero-shot` of the source.
        source: train sentences of the source; not used in `target`.
        settings: of the fine-tuning.
    """
    if setting == "target":
        return Tagger(base, settings).fit(target, dev)
    if setting == "joint":
        return Tagger(base, settings).fit(joined(source, target, settings.source_times), dev)
    if setting == "zero-shot":
        return Tagger(base, settings).fit(source, dev) if source else Tagger.load(base, settings)
    if settings.carry_optimizer:
        return Tagger(base, settings).fit(target, dev, before=source)
    with tempfile.TemporaryDirectory() as folder:
        first = replace(settings, epochs=settings.source_epochs, least_steps=0)
        Tagger(base, first).fit(source).save(folder)
        return Tagger(folder, settings, lenders=same_name).fit(target, dev)
