"""Names that say what a thing is, and functions that fit on a screen, in all packages."""

import ast
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = "nerbert", "ontology", "pipeline", "pretrain", "finetune"
VAGUE = frozenset(
    "found known given one ones some other others own kept stated wanted made there left rest "
    "shown mine theirs whole more every told said meant here taken seen same much drawn held "
    "chosen what which who then again both ours able judged taught tell many several".split()
)
ARE_RIGHT = {"tell"}
"""Of the interface of files."""
MOST_VAGUE = 10
"""Options whose flags stay (`--kept`, `--which`, `--judged`), and names in files of results."""
LONGEST = 60
TOP = {*PACKAGES, "tests", "benchmarks", "docs", "run_pipeline.py", "pyproject.toml"} | set(
    "constraints.txt mkdocs.yml Dockerfile .dockerignore .gitignore .github .ci .pre-commit-config.yaml MANIFEST.in LICENSE "
    "README.md CHANGELOG.md CITATION.cff CONTRIBUTING.md SECURITY.md".split()
)
LARGEST = 700_000
"""Bytes of a file that is not weights."""


@cache
def nodes():
    paths = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    return [
        (f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}", node)
        for path in paths
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    ]


def bound_name(node):
    """The variable or argument that a node binds."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return node.id
    return node.arg if isinstance(node, ast.arg) else None


@pytest.mark.unit
def test_names_say_what_a_thing_is():
    vague = [f"{place} {bound_name(node)}" for place, node in nodes() if bound_name(node) in VAGUE]
    assert len(vague) <= MOST_VAGUE, vague


@pytest.mark.unit
def test_functions_and_classes_say_what_they_are():
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    names = [(place, node.name) for place, node in nodes() if isinstance(node, kinds)]
    vague = [f"{place} {name}" for place, name in names if name.strip("_") in VAGUE - ARE_RIGHT]
    assert not vague


@pytest.mark.unit
def test_the_repository_has_nothing_that_lies_about():
    tracked = subprocess.run(["git", "-C", ROOT, "ls-files"], capture_output=True, text=True)
    if tracked.returncode:
        pytest.skip("no clone")
    paths = tracked.stdout.split()
    assert {path.partition("/")[0] for path in paths} <= TOP
    large = [path for path in paths if (ROOT / path).stat().st_size > LARGEST]
    shipped = ("open-en-base", "open-en")
    assert large == [f"finetune/data/{name}/difference.safetensors" for name in shipped]


@pytest.mark.unit
def test_functions_fit_on_a_screen():
    long = [
        f"{place} {node.name}: {node.end_lineno - node.lineno + 1} lines"
        for place, node in nodes()
        if isinstance(node, ast.FunctionDef) and node.end_lineno - node.lineno >= LONGEST
    ]
    assert not long
