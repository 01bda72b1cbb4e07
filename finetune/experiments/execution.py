"""Does a run: reads the data, fine-tunes in a regime, predicts and scores the test split."""

from __future__ import annotations

import atexit
import tempfile
import time
from collections.abc import Collection, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from finetune.data.registry import known_set
from finetune.data.sets import DataSets, draw
from finetune.data.split_files import SPLITS
from finetune.data.views import (
    LabelMap,
    in_words,
    in_words_of,
    map_to_target_types,
    renamed,
    same_name,
)
from finetune.experiments.runs import Predictions, Run
from finetune.heads.head import SOURCE, TARGET, head_class
from finetune.heads.loading import know_architectures
from finetune.options import Device
from finetune.parts import models
from finetune.scoring import metrics
from finetune.settings import FitSettings, Regime, shots_of
from finetune.tagger.fitting import Work
from finetune.tagger.shipped import folder_of
from finetune.tagger.tagger import Tagger
from nerbert.commands.process import quiet_libraries
from nerbert.digests import fingerprint
from nerbert.errors import UserError
from nerbert.reports import TRAINING, versions
from nerbert.text.columns import Sentence
from pretrain.training.logs import FitProgress
from pretrain.training.models import check_tagger_base

_ANYWHERE = Device()


def execute(
    run: Run, sets: DataSets, placing: Device = _ANYWHERE
) -> tuple[dict[str, Any], Predictions]:
    """Does a run.

    Args:
        run: the run.
        sets: data sets.
        placing: where models compute.

    Returns:
        Scores, with the time and the versions of the run; predictions.
    """
    start = time.monotonic()
    tagger, learnt, n_dev = fit_run(run, sets, placing)
    history = [
        {"step": line["step"], "dev_f1": line["eval_f1"]}
        for line in tagger.history
        if "eval_f1" in line
    ]
    scores, predictions = score_run(tagger, run, sets)
    seconds = round(time.monotonic() - start, 1)
    return {
        **scores,
        "train_sentences": learnt,
        "dev_sentences": n_dev,
        "history": history,
        "seconds": seconds,
    }, predictions


def check_models(names: Iterable[str]) -> None:
    """Checks that each model can become a tagger, before the first of them is trained.

    Raises:
        UserError: one cannot.
    """
    quiet_libraries()
    know_architectures()
    for name in dict.fromkeys(names):
        if name not in models():
            check_tagger_base(folder_of(name))


def fit_run(
    run: Run, sets: DataSets, placing: Device = _ANYWHERE
) -> tuple[Tagger, int, int | None]:
    """Fine-tunes the tagger of a run.

    Returns:
        The tagger, its number of target train sentences, and of dev sentences; None if nothing was
        trained.
    """
    quiet_libraries()
    if run.regime == "zero-shot" and not run.source:
        return Tagger.load(run.model, run.settings, placing.device, placing.half), 0, None
    work = Work(
        callbacks=[FitProgress(f"{Path(run.model).name} on {run.data}", lines=False)],
        device=placing.device,
    )
    source = sets.sentences(run.source, "train") if run.source else []
    if run.regime == "zero-shot":
        dev = sets.sentences(run.source, "dev", needed=False)
        tagger = fit_in_regime(run.model, run.regime, [], dev, source, run.settings, work)
        return tagger, 0, len(dev)
    train = sets.sentences(run.data, "train")
    count = shots_of(run.shots, len(train))
    first = run.settings.first_shots
    train = train[:count] if first else draw(train, count, run.settings.seed)
    dev = sets.sentences(run.data, "dev", needed=False)
    tagger = fit_in_regime(run.model, run.regime, train, dev, source, run.settings, work)
    return tagger, len(train), len(dev)


def fit_in_regime(
    base: str,
    regime: Regime,
    target: Sequence[Sentence],
    dev: Sequence[Sentence],
    source: Sequence[Sentence],
    settings: FitSettings,
    work: Work | None = None,
) -> Tagger:
    """Fine-tunes a tagger in one of the regimes.

    In `source-target` the encoder is trained on the source first, for `source_epochs`, and then on
    the target. The second head starts with the rows of the types that both have. With
    `carry_optimizer` one head and one optimiser are used for both; models without pre-training,
    and heads over states, always keep their head. In `zero-shot` it is trained only on the source.

    Args:
        base: encoder.
        regime: how source and target are combined.
        target: train sentences of the target; not used in `zero-shot`.
        dev: dev sentences of the target; in `zero-shot`, of the source.
        source: train sentences of the source; not used in `target`.
        settings: settings of the fine-tuning.
        work: how it is watched.
    """
    if regime == "target":
        return Tagger(base, settings).fit(target, dev, work=work)
    if regime == "joint":
        joined_rows = joined(source, target, settings.source_times)
        kinds = [SOURCE] * len(source) + [TARGET] * (len(joined_rows) - len(source))
        return Tagger(base, settings).fit(joined_rows, dev, work=work, kinds=kinds)
    if regime == "zero-shot":
        return Tagger(base, settings).fit(source, dev, work=work)
    keeps_head = base in models() or head_class(settings.head).keeps_domains
    if settings.carry_optimizer or keeps_head:
        return Tagger(base, settings).fit(target, dev, before=source, work=work)
    first = replace(settings, epochs=settings.source_epochs, least_steps=0)
    folder = _SOURCE_TAGGERS.folder(base, first, source, work)
    return Tagger(folder, settings, head_init_map=same_name).fit(target, dev, work=work)


class _SourceTaggers:
    """Keeps the taggers of a model that were trained on a source, for its other targets."""

    def __init__(self) -> None:
        self._base = ""
        self._folders: dict[str, str] = {}
        self._stack = ExitStack()
        atexit.register(self._stack.close)

    def folder(
        self, base: str, settings: FitSettings, source: Sequence[Sentence], work: Work | None
    ) -> str:
        """The folder of the tagger that these settings give; it is trained if it is not there."""
        if base != self._base:
            self._stack.close()
            self._base, self._folders = base, {}
        key = fingerprint(asdict(settings), source)
        if key not in self._folders:
            folder = self._stack.enter_context(tempfile.TemporaryDirectory())
            Tagger(base, settings).fit(source, work=work).save(folder)
            self._folders[key] = folder
        return self._folders[key]


_SOURCE_TAGGERS = _SourceTaggers()


def joined(
    source: Sequence[Sentence], target: Sequence[Sentence], times: int = 0
) -> list[Sentence]:
    """The sentences of the source and the repeated sentences of the target.

    Source: Liu et al. 2021 (CrossNER), arXiv:2012.04373, section 4.

    Args:
        source: source sentences.
        target: target sentences, at least one.
        times: number of repetitions of the target; 0 for |source| / |target|, rounded.
    """
    times = times or max(1, round(len(source) / len(target)))
    return [*source, *(row for _ in range(times) for row in target)]


def score_run(tagger: Tagger, run: Run, sets: DataSets) -> tuple[dict[str, Any], Predictions]:
    """Scores and predictions of a tagger on the test split of a run's set."""
    start = time.monotonic()
    predictions, raw, tagger_tags = predict_run(tagger, run, sets)
    splits = [sets.sentences(run.data, split, needed=False) for split in SPLITS]
    all_tags = {tag for rows in splits for row in rows for tag in row.tags}
    scores = all_scores(predictions.gold, predictions.predicted, raw, tagger_tags, all_tags)
    if run.regime == "zero-shot" and tagger.is_open:
        phrases = getattr(tagger.model.config, "open_phrases", ())
        trained = {*tagger.trained_types.values(), *phrases}
        words = in_words(_types(predictions.gold))
        scores["new_types"] = [name for name, phrase in words.items() if phrase not in trained]
        named = [[tag if tag[2:] in words else "O" for tag in row] for row in predictions.gold]
        without, _ = metrics.seqeval_scores(named, predictions.predicted)
        scores["without_misc"] = without.to_json()
        data = known_set(run.data)
        if data is not None and (own_words := in_words_of(data.language, words)):
            tagger.use_types(own_words)
            strict, _ = metrics.seqeval_scores(named, tagger.tag(predictions.tokens))
            scores["own_words"] = strict.to_json()
    seconds = round(time.monotonic() - start, 1)
    return {**scores, "seconds": seconds, "versions": versions(*TRAINING, "numpy")}, predictions


def predict_run(
    tagger: Tagger, run: Run, sets: DataSets
) -> tuple[Predictions, metrics.TagLists, set[str]]:
    """The predictions of a tagger on the test split, its tags with its own types, and all it has.

    In zero-shot a tagger with an open head looks for the set's types by their names; types of other
    taggers are mapped to those of the set by `map_to_target_types`.
    """
    test = sets.sentences(run.data, "test")
    tokens, gold = [row.tokens for row in test], [row.tags for row in test]
    if run.regime == "zero-shot" and tagger.is_open:
        if not _types(gold):
            raise UserError("its test split has no mention", run.data)
        tagger.use_types(in_words(_types(gold)))
        tags = tagger.tag(tokens)
        return Predictions(tokens, gold, tags), tags, {"O", *(t for row in gold for t in row)}
    raw = tagger.tag(tokens)
    if run.regime != "zero-shot":
        return Predictions(tokens, gold, raw), raw, set(tagger.tags)
    names = LabelMap.load(run.view.label_map)
    new_name = map_to_target_types(_types(gold), names)
    mapped = [renamed(tags, new_name) for tags in raw]
    own_tags = [names.tags(tags) for tags in raw]
    return Predictions(tokens, gold, mapped), own_tags, set(names.tags(tagger.tags))


def _types(tags: metrics.TagLists) -> list[str]:
    """The types in tags, sorted."""
    return sorted({tag[2:] for row in tags for tag in row if tag != "O"})


def all_scores(
    gold: metrics.TagLists,
    predicted: metrics.TagLists,
    raw: metrics.TagLists,
    tagger_tags: Collection[str],
    all_tags: Collection[str] = (),
) -> dict[str, Any]:
    """All scores of a test set; the setting `scoring` names the main one.

    Args:
        gold: tags.
        predicted: predicted tags, with types of the set.
        raw: predicted tags with the tagger's own types, for scores that ignore types.
        tagger_tags: all tags that the tagger has, with these types.
        all_tags: tags of all splits of the set.
    """
    strict, per_type = metrics.seqeval_scores(gold, predicted)
    return {
        "strict": strict.to_json(),
        "intervals": metrics.bootstrap_intervals(gold, predicted),
        "crossner": metrics.crossner_scores(gold, predicted).to_json(),
        "conlleval": metrics.conlleval_scores(gold, predicted).to_json(),
        "macro_f1": metrics.macro_f1(gold, predicted),
        "span_f1": metrics.span_f1(gold, raw),
        "shared_label_span_f1": metrics.shared_label_span_f1(gold, raw),
        "tner_span_f1": metrics.tner_span_f1(gold, raw, tagger_tags, all_tags),
        "per_type": {name: scores.to_json() for name, scores in per_type.items()},
        "errors": asdict(metrics.error_split(gold, predicted)),
        "confusion": metrics.type_confusion(gold, predicted),
    }
