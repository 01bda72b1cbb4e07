"""The page of `nerbert reproduce`: claims, what was run and where, tables and figures of steps."""

from __future__ import annotations

import platform
import re
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from html import escape
from pathlib import Path

from finetune.papers.reproduce.claims import LEAST_SEEDS, ScoredRun, Verdict, read_runs
from finetune.papers.reproduce.plan import Plan, ReproduceOptions
from finetune.scoring.tables import markdown
from nerbert.commands.process import cores
from nerbert.commands.steps import Done, Step
from nerbert.errors import UserError
from nerbert.reports import versions
from nerbert.storage.places import Place

_ROOT = Path(__file__).parents[3]
_LIBRARIES = ("nerbert", "torch", "transformers", "tokenizers", "datasets", "numpy")


def page(plan: Plan, done: list[Done], verdicts: list[Verdict], options: ReproduceOptions) -> str:
    """The page as Markdown, with links relative to its folder."""
    output = Path(options.output).absolute()
    runs = {
        outcome.step.name: read_runs(output / outcome.step.name)
        for outcome in done
        if not outcome.why_not
    }
    lines = [
        f"# {plan.title}",
        "",
        *([plan.notes, ""] if plan.notes else []),
        *_circumstances(done, [run for of_step in runs.values() for run in of_step], options),
        "",
        "## What the paper claims, and what is so here",
        "",
        claims_table(verdicts, options.scale),
        "",
        "A claim compares runs that are equal in all that it does not speak of: model, set, every "
        "setting, seed. Sets and languages of one seed count as one, by their mean. The interval "
        f"is that of Student's t, 95 %; with fewer than {LEAST_SEEDS} seeds there is no verdict. "
        "One of twenty verdicts is wrong by chance. The seeds are those of the fine-tuning; "
        "a pre-training is run once, and another one may differ by more.",
        "",
        "## What was run",
        "",
        *markdown([["step", "", "minutes", ""], *map(_step_row, done)]),
    ]
    lines.append("")
    for outcome in done:
        if not outcome.why_not:
            lines += _section(outcome.step, output, runs[outcome.step.name])
    return "\n".join(lines)


def claims_table(verdicts: Sequence[Verdict], scale: str) -> str:
    """The claims as a Markdown table; at the scale debug without verdicts."""
    rows = [["claim", "in the paper", "", "difference, points F1, 95 %", "seeds"]]
    for verdict in verdicts:
        says = verdict.says if scale != "debug" or not verdict.gains else "no verdict at debug"
        margin = "" if verdict.margin is None else f" ± {verdict.margin:.2f}"
        gain = f"{verdict.gain:+.2f}{margin}" if verdict.gains else ""
        claim = verdict.claim
        rows.append([claim.says, claim.cites, says, gain, str(len(verdict.gains))])
    return "\n".join(markdown(rows))


def _step_row(outcome: Done) -> list[str]:
    """A step, what it repeats, its minutes and command; or why it was not run."""
    minutes = "not run" if outcome.why_not else f"{outcome.seconds / 60:.1f}"
    text = outcome.why_not or f"`nerbert {shlex.join(outcome.step.command)}`"
    return [outcome.step.name, outcome.step.says, minutes, text]


def _circumstances(
    done: Sequence[Done], runs: Sequence[ScoredRun], options: ReproduceOptions
) -> list[str]:
    """Command, time, code, versions, machine and seeds, as a Markdown table."""
    hours = sum(outcome.seconds for outcome in done) / 3600
    seeds = sorted({str(run.facts["seed"]) for run in runs})
    libraries = [f"{name} {version}" for name, version in versions(*_LIBRARIES).items()]
    return markdown(
        [
            ["", ""],
            ["command", f"`nerbert reproduce {options.paper} --scale {options.scale}`"],
            ["time of the commands, but for parts that were killed", f"{hours:.2f} hours"],
            ["code", _commit()],
            ["versions", f"Python {platform.python_version()}, {', '.join(libraries)}"],
            ["machine", _machine()],
            ["seeds", ", ".join(seeds) or "no run"],
        ]
    )


def _output_of(*command: str) -> str:
    """What a program prints; empty if it is not there, or fails."""
    if shutil.which(command[0]) is None:
        return ""
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=_ROOT)
    return done.stdout.strip() if done.returncode == 0 else ""


def _commit() -> str:
    """The commit of the checkout; says if files differ from it, or there is none."""
    top = _output_of("git", "rev-parse", "--show-toplevel")
    if not top or Path(top).resolve() != _ROOT.resolve():
        return "not a checkout"
    changed = " with changes" if _output_of("git", "status", "--porcelain", "-uno") else ""
    return f"commit {_output_of('git', 'rev-parse', 'HEAD')[:12]}{changed}"


def _machine() -> str:
    """Processor, cores that may be used, and GPUs."""
    try:
        facts = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:  # not Linux
        facts = ""
    name = re.search(r"^model name\s*: (.*)$", facts, re.MULTILINE)
    gpus = _output_of("nvidia-smi", "--query-gpu=name", "--format=csv,noheader").splitlines()
    processor = name[1] if name else platform.processor() or platform.machine()
    return ", ".join([f"{processor} (cores: {cores()})", *gpus])


_UNUSED = ("## Use", "## Columns", "## Licence and attribution", "## Citation")
"""Sections of a corpus' card that are no table of a paper."""


def _section(step: Step, output: Path, runs: Sequence[ScoredRun]) -> list[str]:
    """The tables and figures of a step, as its command wrote them: first those of the paper."""
    folder = output / step.name
    cards = ("README.md", "corpus/README.md") if step.command[0] in ("corpus", "domain") else ()
    names = ("report.md", "matrix.md", "overlap.md", *cards)
    reports = [_report(folder / name) for name in names if (folder / name).is_file()]
    more_figures = {path.name: _caption(path.stem) for path in sorted(folder.glob("*.png"))}
    figures = {name: says for name, says in step.figures.items() if (folder / name).is_file()}
    if not reports and not more_figures and not figures:
        return []
    lines = [f"## {step.name}: {step.says}", ""]
    if step.published:
        lines += [f"Published: {step.published}", ""]
    if settings := _settings(runs):
        lines += [f"Settings of all its runs: {settings}.", ""]
    for report in reports:
        lines += [*report, ""]
    figures |= {name: says for name, says in more_figures.items() if name not in figures}
    for name, says in figures.items():
        lines += [f"![{says}](../{step.name}/{name})", "", f"*{says}*", ""]
    return lines


def _report(path: Path) -> list[str]:
    """Lines of a report, its headings two deeper; a card is without front matter and pictures."""
    text = path.read_text(encoding="utf-8")
    if path.name == "README.md":
        text = re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.DOTALL)
        text = re.sub(r"^!\[.*\n", "", text, flags=re.MULTILINE)
        parts = re.split(r"^(?=## )", text, flags=re.MULTILINE)
        text = "".join(part for part in parts if not part.startswith(_UNUSED))
    return [f"##{line}" if line.startswith("#") else line for line in text.splitlines()]


def _caption(stem: str) -> str:
    """What a figure shows, by the name of its file: `confusion-ai-2` is "confusion, ai, 2"."""
    return ", ".join(part for part in stem.split("-") if part)


def _settings(runs: Sequence[ScoredRun]) -> str:
    """The settings that all runs share."""
    shared = set.intersection(*(set(run.facts.items()) for run in runs)) if runs else set()
    texts = (
        f"{name.removeprefix('settings.')} {value}"
        for name, value in sorted(shared)
        if name.startswith("settings.")
    )
    return ", ".join(texts)


_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; display: block; overflow-x: auto; margin: 1rem 0; }
td, th { border: 1px solid #ccc; padding: .2rem .5rem; text-align: left; vertical-align: top; }
td { min-width: 3rem; } td code { display: block; min-width: 16rem; }
thead:not(:has(th:not(:empty))) { display: none; }
p, li { overflow-wrap: anywhere; } img { max-width: 100%; } code { overflow-wrap: anywhere; }
"""


_POLICY = "default-src 'none'; img-src 'self' file: data:; style-src 'unsafe-inline'"
_MARK = '<meta name="generator" content="nerbert reproduce">'
"""A line of the page, by which it is known."""


def write_page(folder: Path, title: str, text: str) -> None:
    """Writes `report.md` and `index.html`, which needs no network, and shows HTML in texts as text.

    Raises:
        UserError: the folder has a page that no run wrote.
    """
    # The extra train installs it.
    from markdown import Markdown  # type: ignore[import-untyped]

    page, report = folder / "index.html", folder / "report.md"
    for path in (page, report):
        if path.is_symlink() or (page.is_file() and _MARK not in page.read_text(errors="replace")):
            raise UserError(f"{path}: nerbert reproduce did not write it; move it away")
    folder.mkdir(exist_ok=True)
    reader = Markdown(extensions=["tables"])
    reader.preprocessors.deregister("html_block")  # names of types come from strangers
    reader.inlinePatterns.deregister("html")
    head = (
        f'<meta charset="utf-8"><meta name="viewport" content="width=device-width">{_MARK}'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style>"
    )
    body = reader.convert(text)
    html = f'<!doctype html>\n<html lang="en"><head>{head}</head><body>{body}</body></html>\n'
    Place(report).write_bytes(text.encode())
    Place(page).write_bytes(html.encode())
