"""Prints how large the house is: `python -m tests.helpers.house`; a table of the last tag beside it, if there is one."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
WINGS = {"papers": "finetune/papers/", "clusters": "pipeline/clusters/"}
BUDGET = {"core": 31_000, "papers": 4_200, "clusters": 1_850}
PACKAGES = ("nerbert", "ontology", "pipeline", "pretrain", "finetune")


def part_of(path):
    """The part of the house that a file is in; none for other files."""
    for name, folder in WINGS.items():
        if path.startswith(folder):
            return name
    top = path.partition("/")[0]
    return "core" if top in PACKAGES else top if top in ("tests", "benchmarks") else None


def lines_of(files):
    """Part -> number of lines of its modules."""
    sizes = dict.fromkeys(("core", *WINGS, "tests", "benchmarks"), 0)
    for path, text in files:
        if (part := part_of(path)) is not None:
            sizes[part] += text.count("\n")
    return sizes


def git(*arguments):
    return subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout


def files_at(commit):
    """The modules of a commit, or of the working tree."""
    for path in git("ls-tree", "-r", "--name-only", commit or "HEAD").splitlines():
        if path.endswith(".py"):
            text = git("show", f"{commit}:{path}") if commit else (ROOT / path).read_text("utf-8")
            yield path, text


if __name__ == "__main__":
    tag = git("describe", "--tags", "--abbrev=0").strip()
    before = lines_of(files_at(tag)) if tag else {}
    for part, size in lines_of(files_at("")).items():
        budget = f", budget {BUDGET[part]:,}" if part in BUDGET else ""
        growth = f", {size - before[part]:+,} since {tag}" if before else ""
        print(f"{part:11} {size:7,} lines{budget}{growth}")
