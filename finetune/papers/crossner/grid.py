"""The grid of CrossNER's experiments: encoders, domains, regimes and numbers of sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from finetune.data.sets import DataSets
from finetune.experiments.evaluate import execute_run, results_of
from finetune.experiments.runs import ResultStore, Run
from finetune.papers.crossner.cells import Cell, Encoder
from finetune.papers.crossner.report import GridReport
from finetune.papers.crossner.settings import (
    DAPT_RECIPES,
    SYSTEMS,
    CrossnerOptions,
    GridRegime,
    row_of,
)
from finetune.papers.words.options import changed, word_options
from finetune.settings import FitSettings, seeds, shots_of
from nerbert.commands.options import options_of
from nerbert.commands.values import Given, build
from nerbert.errors import UserError
from nerbert.storage.places import Place
from pretrain.settings import RECORD, DaptSettings


def fill_grid(
    options: CrossnerOptions, settings: FitSettings, flags: Mapping[str, Given] | None = None
) -> str:
    """Does the missing runs and writes the report; returns the paper's table 2.

    Args:
        options: options of the command.
        settings: settings of the fine-tuning of encoders.
        flags: options that the user gave as flags; those of the fine-tuning also hold for the
            systems.

    Raises:
        UserError: a value is out of range, or a checkpoint, a corpus or data is missing.
    """
    sets = DataSets.of_options(options)
    for path in options.text:
        if _domain_of(path) not in options.domain:
            raise UserError(f"is no corpus of {', '.join(options.domain)}", path)
    # Data and options are checked before pre-training, which takes hours.
    names = {entry.name for entry in options_of(FitSettings)}
    fit_flags = {name: flag_value for name, flag_value in (flags or {}).items() if name in names}
    settings_of_systems = {
        name: SYSTEMS[name].settings(fit_flags) for name in options.chosen_systems
    }
    planned(options, settings, [Encoder(options.base_model)], sets, settings_of_systems)
    plan = planned(options, settings, encoders(options, settings), sets, settings_of_systems)
    output = Path(options.output)
    store = ResultStore(output / "runs", sets)
    encoder_of = {cell.run: cell.encoder.name for cell in plan}
    results = results_of(
        [cell.run for cell in plan],
        store,
        lambda run: execute_run(run, sets),
        lambda run: f"{run.regime}, {encoder_of[run]}: ",
    )
    used = (name for cell in plan for name in (*cell.run.source, cell.run.data))
    report = GridReport(plan, results, sets.sizes(used))
    report.write(output)
    return report.table_2()


def encoders(options: CrossnerOptions, settings: FitSettings) -> list[Encoder]:
    """The encoders; missing checkpoints of --corpus are made.

    Raises:
        UserError: a checkpoint or corpus is unsuitable, or of a domain that --domain lacks.
    """
    base = Encoder(options.base_model, system=row_of(options.base_model, settings))
    candidates = [base, *map(Encoder.of, options.dapt)]
    for corpus in options.corpus:
        for masking in options.masking:
            for level in options.level:
                if (masking, level) == ("span", "domain") and options.has_papers_encoders:
                    continue
                for fraction in options.fraction:
                    dapt = _dapt_settings(options, corpus, masking, level, fraction)
                    candidates.append(_adapted(dapt, settings.bf16))
    for encoder in candidates[1:]:
        if encoder.domain not in options.domain:
            raise UserError(f"is of the domain {encoder.domain}; add it to --domain", encoder.model)
    return candidates


def _dapt_settings(
    options: CrossnerOptions, corpus: str, masking: str, level: str, fraction: float
) -> DaptSettings:
    """Settings of a pre-training, with a checkpoint in the output folder."""
    name = f"{Path(corpus).name}-{masking}-{level}-{fraction:g}"
    values = {
        "corpus": corpus,
        "output": str(Path(options.output) / "dapt" / name),
        "base_model": options.base_model,
        "level": level,
        "masking": masking,
        "fraction": (fraction,),
        "new_head": options.new_head,
    }
    recipe = DAPT_RECIPES.read(options.dapt_recipe, [DaptSettings])
    given_values = {
        key: Given(value, f"--{key.replace('_', '-')}") for key, value in values.items()
    }
    return build(DaptSettings, {**recipe, **given_values})


def _adapted(settings: DaptSettings, bf16: bool) -> Encoder:
    """The encoder of a checkpoint, which is made or continued if it is not finished."""
    path = Path(settings.output) / RECORD
    if "results" not in (Place(path).read_json_or_none() or {}):
        # These load torch, which is not needed if all checkpoints are finished.
        import torch

        from pretrain.mlm.run import run

        on_cpu = [] if torch.cuda.is_available() else ["--use-cpu", "true"]
        print(run(settings, ["--bf16", "true", *on_cpu] if bf16 else []))
    return Encoder.of(settings.output)


def planned(
    options: CrossnerOptions,
    settings: FitSettings,
    bases: Sequence[Encoder],
    sets: DataSets,
    systems: Mapping[str, FitSettings],
) -> list[Cell]:
    """All runs, in order. Their data is read once, so that errors are found before the first run.

    Args:
        options: options of the command.
        settings: settings of the fine-tuning of encoders.
        bases: the encoders.
        sets: data sets.
        systems: baseline systems, with their settings.

    Raises:
        UserError: a value is out of range, or data is missing.
    """
    for text in options.shots:
        shots_of(text, 1)
    for domain in options.domain:
        for split in ("train", "test"):
            sets.raw_sentences(f"crossner/{domain}", split)
    if set(options.regime) != {"target"}:
        sets.raw_sentences(options.source, "train")
    rows = _rows(options, settings, bases, systems)
    return [
        _cell(options, encoder, domain, regime, shots, replace(row_settings, seed=seed))
        for regime in options.regime
        for encoder, row_settings in rows
        for domain in options.domain
        for shots in options.shots
        for seed in seeds(options.seeds)
        if encoder.domain in (None, domain)
    ]


def _rows(
    options: CrossnerOptions,
    settings: FitSettings,
    candidates: Sequence[Encoder],
    systems: Mapping[str, FitSettings],
) -> list[tuple[Encoder, FitSettings]]:
    """The rows of the table, with their settings: encoders, then systems on their models."""
    rows = [(encoder, settings) for encoder in candidates]
    for name, system_settings in systems.items():
        system = SYSTEMS[name]
        if system.reads and not word_options(system_settings).word_encoder:
            system_settings = changed(system_settings, word_encoder=options.base_model)
        bases = (
            [encoder_of_domain for encoder_of_domain in candidates if encoder_of_domain.domain]
            if system.adapted
            else [Encoder(system.base)]
        )
        rows += [
            (
                replace(base, model=base.model or options.base_model, system=system.row),
                system_settings,
            )
            for base in bases
        ]
    return rows


def _cell(
    options: CrossnerOptions,
    encoder: Encoder,
    domain: str,
    regime: GridRegime,
    shots: str,
    settings: FitSettings,
) -> Cell:
    """One run; the language models of cdlm read the corpora of the domain."""
    if settings.head == "cdlm" and not word_options(settings).lm_text:
        corpora = dict.fromkeys((*options.corpus, *options.text))
        texts = tuple(path for path in corpora if _domain_of(path) == domain)
        settings = changed(settings, lm_text=texts)
    for system in SYSTEMS.values():
        if system.row == encoder.system and system.base == encoder.model:
            settings = system.in_domain(domain, settings)
    source = () if regime == "target" else (options.source,)
    run = Run(encoder.model, f"crossner/{domain}", settings, regime, source, shots)
    return Cell(encoder, domain, run)


def _domain_of(corpus: str) -> str:
    """Domain of a domain corpus; empty if it is none."""
    report = (Place(corpus) / "report.json").read_json_or_none() or {}
    return str(report.get("domain", {}).get("name", ""))
