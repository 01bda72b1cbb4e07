"""Runs `nerbert release`: from dumps to what is published, as steps that go on after a stop."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from finetune.data.sets import DataSets
from finetune.use.options import ReleaseOptions
from finetune.use.sending import files_to_send, kind_of_result
from nerbert.commands.steps import Done, Step, failed_step, outlook, run_steps, steps_folder
from nerbert.errors import RunError, UserError
from nerbert.storage.places import Place

SUMS = "SHA256SUMS"
"""File with the checksums of what is published, as `sha256sum --check` reads it."""

_GLINER = "train.json"


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
        return "\n".join(outlook([*first, *_steps(options, output)], output, "two cores"))
    with steps_folder(output, {"release": options.scale}) as record:
        _check_done(list(run_steps(first, output, record)))
        # Only now are the names of the files known.
        _check_done(list(run_steps(_steps(options, output), output, record)))
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
        sets = ["fetch", "sets", "crossner", "--output", str(output / "sets")]
        steps.append(Step("sets", "CrossNER, to score the tagger", sets))
    return steps


def _steps(options: ReleaseOptions, output: Path) -> list[Step]:
    """The steps from dumps to what is published."""
    is_debug = options.scale == "debug"
    root = options.data_root or (str(output / "sets") if not is_debug else None)
    scored = "crossner/ai" if is_debug else "crossner/*"
    corpus, tagger = str(output / "run" / "corpus"), str(output / "tagger")
    model = ["--base-model", options.base_model] if options.base_model else []
    size = ["--max-steps", str(options.max_steps)] if options.max_steps else []
    recipe = "open-debug" if is_debug else "open"
    learn = ["--corpus", corpus, "--recipe", recipe, *model, *size, "--output", tagger]
    data = ["--data", scored, *(["--data-root", root] if root else [])]
    scores = ["--models", tagger, *data, "--regime", "zero-shot"]
    scores += ["--output", str(output / "scores")]
    rows = ["--data", corpus, "--part", "train", "--output", str(output / "gliner" / _GLINER)]
    steps = [
        Step("run", "the corpora, and one of all", _corpus(options, output, root)),
        Step("tagger", "pre-training with the open head", ["pretrain", *learn], after=("run",)),
        Step("scores", "CrossNER without training", ["evaluate", *scores], after=("tagger",)),
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


def _corpus(options: ReleaseOptions, output: Path, root: str | None) -> list[str]:
    """The command of the corpora, without CrossNER's sentences."""
    dumps, types = output / "dumps", output / "types"
    crossner = [
        str(path)
        for split in ("dev", "test")
        for path in sorted(DataSets(root).root.glob(f"crossner/*/{split}.txt*"))
    ]
    flags = {
        "--dump": [*options.dump] or [str(dumps)],
        "--types": [*options.types] or _present(types, "*.ttl.bz2"),
        "--page-props": [*options.page_props] or _present(dumps, "*-page_props.sql.gz"),
        "--langlinks": [*options.langlinks] or _present(dumps, "*-langlinks.sql.gz"),
        "--exclude": crossner,
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
