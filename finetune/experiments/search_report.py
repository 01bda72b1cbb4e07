"""The report of a search: its trials, what mattered, and a recipe of the best settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import optuna
from optuna.trial import FrozenTrial

from finetune.experiments.trials import Space
from finetune.scoring import plots
from finetune.scoring.tables import cent, markdown
from finetune.settings import FitSettings
from nerbert.commands.recipes import recipe_text
from nerbert.storage.places import Place

BEST = "best.toml"
"""File with the best settings, a recipe."""


def write_report(
    output: Path,
    trials: Sequence[FrozenTrial],
    space: Space,
    best: FrozenTrial,
    settings: FitSettings,
) -> str:
    """Writes `search.md`, `search.png` and the recipe; returns the text of the report.

    Args:
        output: folder of the search.
        trials: finished trials.
        space: the settings that were tried.
        best: the best trial.
        settings: all settings of the best trial.
    """
    (output / BEST).write_text(recipe_text(asdict(settings)), encoding="utf-8")
    first = [trial for trial in trials if trial.user_attrs["stage"] == 1]
    weights = importances(first, space)
    (output / "search.png").write_bytes(_plot(first, space, weights))
    best_values = ", ".join(f"{name} {value}" for name, value in best.params.items())
    text = "\n".join(
        [
            "Trials, the best one first; dev F1 in per cent.",
            "",
            *markdown(_rows(trials, space)),
            "",
            *_mattered(weights),
            f"Best: {best_values}: dev F1 {cent(best.value or 0.0)}.",
            f"Its tagger is in {output / 'model'}, its settings are in {output / BEST}.",
            "",
        ]
    )
    Place(output / "search.md").write_bytes(text.encode())
    return text


def _rows(trials: Sequence[FrozenTrial], space: Space) -> list[list[str]]:
    numbered = sorted(
        enumerate(trials), key=lambda pair: (-pair[1].user_attrs["stage"], -(pair[1].value or 0.0))
    )
    rows = [["trial", "stage", *space, "evaluations", "dev F1"]]
    for number, trial in numbered:
        facts = [str(trial.user_attrs[name]) for name in ("stage", "evaluations")]
        values = [str(trial.params[name]) for name in space]
        rows.append([str(number), facts[0], *values, facts[1], cent(trial.value or 0.0)])
    return rows


def _mattered(weights: dict[str, float]) -> list[str]:
    if not weights:
        return []
    rows = [["setting", "share"], *([name, f"{share:.2f}"] for name, share in weights.items())]
    title = "What mattered in the first stage: share of the variance of F1 (fANOVA)."
    return [title, "", *markdown(rows), ""]


def importances(trials: Sequence[FrozenTrial], space: Space) -> dict[str, float]:
    """Share of each setting in the variance of F1, largest first; empty if F1 does not vary."""
    study = optuna.create_study(direction="maximize")
    study.add_trials(list(trials))
    varied = [name for name in space if len({str(trial.params[name]) for trial in trials}) > 1]
    if not varied or len({trial.value for trial in trials}) < 2:
        return {}
    judge = optuna.importance.FanovaImportanceEvaluator(seed=0)
    shares: dict[str, float] = optuna.importance.get_param_importances(
        study, evaluator=judge, params=varied
    )
    return shares


def _plot(trials: Sequence[FrozenTrial], space: Space, weights: dict[str, float]) -> bytes:
    """Dev F1 of the trials by the value of each setting."""
    scores = [100 * (trial.value or 0.0) for trial in trials]
    panels = {}
    for name in space:
        share = f" ({weights[name]:.2f})" if name in weights else ""
        panels[f"{name}{share}"] = [trial.params[name] for trial in trials]
    return plots.by_setting(panels, scores, "dev F1, %")
