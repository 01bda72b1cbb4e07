"""Starts a pre-training: what is no corpus is said before torch is loaded."""

from __future__ import annotations

from collections.abc import Sequence

from nerbert.text.corpus import Corpus
from pretrain.settings import PretrainSettings


def pretrain(settings: PretrainSettings, training_flags: Sequence[str] = ()) -> str:
    """Trains a tagger, as `pretrain.tagging.run.run` does.

    Raises:
        UserError: as there.
    """
    for folder in settings.corpus:
        Corpus.open(folder)
    # It loads torch, which takes seconds.
    from pretrain.tagging.run import run

    return run(settings, training_flags)
