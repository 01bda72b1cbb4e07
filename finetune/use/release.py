"""Runs `nerbert release`: from dumps to what is published, as steps that go on after a stop."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from finetune.data.registry import NamedSet, known_set
from finetune.data.sets import DataSets
from finetune.use.options import ReleaseOptions
from finetune.use.sending import files_to_send, kind_of_result
from nerbert.commands.steps import Done, Step, failed_step, outlook, run_steps, steps_folder
from nerbert.errors import RunError, UserError
from nerbert.storage.places import Place
from nerbert.text.corpus import report_of
from ontology.sources.types import read_types

SUMS = "SHA256SUMS"
"""File with the checksums of what is published, as `sha256sum --check` reads it."""

_GLINER = "train.json"
_LOOKED_AT = 200_000
"""So many statements of a file say whether it has titles of a language."""


def release(options: ReleaseOptions) -> str:
    """Runs the steps that are not done; returns where the results are.

    Raises:
        UserError: the folder holds something else, or the options name no dump, or two kinds.
        RunError: a step failed.
    """
    if bool(options.wikis) == bool(options.dump):
        raise UserError("give --wikis to download, or --dump with what is at hand")
    output = Path(options.output).absolute()
    first = _downloads(options, output)
    if options.dry_run:
        steps = [*first, _run(options, output), *_steps(options, output, options.wikis or None)]
        return "\n".join(outlook(steps, output, "two cores"))
    with steps_folder(output, {"release": options.scale}) as record:
        _check_done(list(run_steps(first, output, record)))
        # Only now are the names of the files known, and after the run the languages.
        _check_done(list(run_steps([_run(options, output)], output, record)))
        languages = report_of(Place(output / "run" / "corpus"))["language"]
        languages = [languages] if isinstance(languages, str) else languages
        _check_done(list(run_steps(_steps(options, output, languages), output, record)))
        sums = _checksums(output)
    corpus, tagger = output / "run" / "corpus", output / "tagger"
    return f"corpus      {corpus}\ntagger      {tagger}\nchecksums   {sums}"


def _check_done(done: Sequence[Done]) -> None:
    if failed := failed_step(done):
        raise RunError(f"{failed.step.name}: {failed.why_not}")


def _downloads(options: ReleaseOptions, output: Path) -> list[Step]:
    """The steps that fetch what is not at hand."""
    steps = []
    if options.wikis:
        dumps = ["--wiki", *options.wikis, "--tables", "--output", str(output / "dumps")]
        steps.append(Step("dumps", "the newest dumps, and tables", ["fetch", "dump", *dumps]))
        if not options.types:
            languages = [*dict.fromkeys([*options.wikis, "en"])]
            types = ["fetch", "types", "--language", *languages, "--output", str(output / "types")]
            steps.append(Step("types", "DBpedia's types of pages", types))
    if options.data_root is None and options.scale == "full":
        wikiann = [entry.name for entry in _wikiann(options.wikis) if not entry.elsewhere]
        sets = ["fetch", "sets", "crossner", *wikiann, "--output", str(output / "sets")]
        steps.append(Step("sets", "CrossNER and WikiAnn, to score the tagger", sets))
    return steps


def _run(options: ReleaseOptions, output: Path) -> Step:
    """The step from dumps to a corpus."""
    return Step("run", "the corpora, and one of all", _corpus(options, output))


def _steps(options: ReleaseOptions, output: Path, languages: Sequence[str] | None) -> list[Step]:
    """The steps from the corpus to what is published; its languages may not be known yet."""
    is_debug = options.scale == "debug"
    root = _data_root(options, output)
    scored = ["crossner/ai" if is_debug else "crossner/*"]
    sets = _wikiann_at_hand(options, output)
    scored += [entry.name for entry in sets if languages is None or entry.language in languages]
    corpus, tagger = str(output / "run" / "corpus"), str(output / "tagger")
    model = ["--base-model", options.base_model] if options.base_model else []
    size = ["--max-steps", str(options.max_steps)] if options.max_steps else []
    types = [path for path in _types(options, output) if _has_titles(path, languages)]
    titles = ["--types", *types] if types else []
    recipe = "open-debug" if is_debug else "open"
    learn = ["--corpus", corpus, "--recipe", recipe, *model, *size, *titles, "--output", tagger]
    data = ["--data", *scored, *(["--data-root", root] if root else [])]
    scores = ["--models", tagger, *data, "--regime", "zero-shot"]
    scores += ["--output", str(output / "scores")]
    rows = ["--data", corpus, "--part", "train", "--output", str(output / "gliner" / _GLINER)]
    steps = [
        Step("tagger", "pre-training with the open head", ["pretrain", *learn], after=("run",)),
        Step("scores", "types by their names", ["evaluate", *scores], after=("tagger",)),
        Step("gliner", "GLiNER's format", ["export", "--format", "gliner", *rows], after=("run",),
             once=True),
    ]  # fmt: skip
    if options.push_to_hub:
        for name, folder, repository in (
            ("push-corpus", corpus, options.push_to_hub),
            ("push-tagger", tagger, f"{options.push_to_hub}-open"),
        ):
            steps.append(Step(name, "to the hub", ["push", folder, repository], after=("scores",)))
    return steps


def _data_root(options: ReleaseOptions, output: Path) -> str | None:
    """Folder of the sets; None for the usual one."""
    return options.data_root or (str(output / "sets") if options.scale == "full" else None)


def _wikiann(languages: Sequence[str]) -> list[NamedSet]:
    """The sets of WikiAnn in some languages."""
    named = (known_set(f"wikiann/{language}") for language in languages)
    return [entry for entry in named if entry is not None]


def _wikiann_at_hand(options: ReleaseOptions, output: Path) -> list[NamedSet]:
    """The sets of WikiAnn that are there, of the wikis to download or else of any language."""
    sets = DataSets(_data_root(options, output))
    languages = options.wikis or [path.name for path in sorted(sets.root.glob("wikiann/*"))]
    return [entry for entry in _wikiann(languages) if sets.exists(entry, "test")]


def _types(options: ReleaseOptions, output: Path) -> list[str]:
    """The files of types."""
    return [*options.types] or _present(output / "types", "*.ttl.bz2")


def _has_titles(path: str, languages: Sequence[str] | None) -> bool:
    """Whether there are titles of one of the languages among the first ones of a file of types."""
    if languages is None:
        return True
    statements = islice(read_types(Place(path)), _LOOKED_AT)
    return any(statement is not None and statement[0] in languages for statement in statements)


def _corpus(options: ReleaseOptions, output: Path) -> list[str]:
    """The command of the corpora, without the sentences on which the tagger is scored."""
    dumps, sets = output / "dumps", DataSets(_data_root(options, output))
    scored = [path for s in ("dev", "test") for path in _present(sets.root, f"crossner/*/{s}.txt*")]
    scored += [sets.find(entry, "test") for entry in _wikiann_at_hand(options, output)]
    flags = {
        "--dump": [*options.dump] or [str(dumps)],
        "--types": _types(options, output),
        "--page-props": [*options.page_props] or _present(dumps, "*-page_props.sql.gz"),
        "--langlinks": [*options.langlinks] or _present(dumps, "*-langlinks.sql.gz"),
        "--exclude": scored,
    }
    words = [word for flag, paths in flags.items() if paths for word in (flag, *paths)]
    return ["corpus", *words, "--recipe", "open", "--output", str(output / "run")]


def _present(folder: Path, pattern: str) -> list[str]:
    return sorted(map(str, folder.glob(pattern)))


def _checksums(output: Path) -> Path:
    """Writes the checksums of the published files."""
    lines = []
    paths = [output / "gliner" / _GLINER]
    for name in ("run", "tagger"):
        folder, record, _ = kind_of_result(output / name)
        paths += [folder / file for file in files_to_send(folder, record)]
    for path in sorted(paths):
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        lines.append(f"{digest}  {path.relative_to(output).as_posix()}\n")
    Place(output / SUMS).write_bytes("".join(lines).encode("utf-8"))
    return output / SUMS
