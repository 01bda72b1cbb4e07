"""Which module imports which, beside what `lint-imports` checks."""

import ast
import importlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PACKAGES = ("nerbert", "ontology", "pipeline", "pretrain", "finetune")
DOORS = {"nerbert.__main__", "finetune.evaluate", "pretrain.launch"}


def modules() -> dict[str, Path]:
    """Name -> file of every module of the packages."""
    found = {}
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            found[name.removesuffix(".__init__")] = path
    return found


MODULES = modules()


def statements(tree: ast.AST, inside: bool = False):
    """The import statements that run, with whether they are inside a function."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node, inside
        elif not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
            function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            yield from statements(node, inside or function)


def imported(node) -> list[str]:
    """Names of the modules that a statement imports."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    names = [f"{node.module}.{alias.name}" for alias in node.names]
    return [name if name in MODULES else node.module for name in names]


def imports_of(module: str) -> set[str]:
    tree = ast.parse(MODULES[module].read_text(encoding="utf-8"))
    return {name for node, _ in statements(tree) for name in imported(node)}


IMPORTS = {module: imports_of(module) for module in MODULES}


def test_every_module_is_in_a_layer():
    """`lint-imports` compares the imports with the layers in pyproject.toml, if they are there."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers = re.findall(r"[\w.]+", " ".join(contracts["contracts"][0]["layers"]))
    for module in MODULES.keys() - DOORS - set(PACKAGES):
        assert any(f"{module}.".startswith(f"{layer}.") for layer in layers), module


def test_no_cycles():
    state: dict[str, str] = {}

    def visit(module: str, path: list[str]) -> None:
        state[module] = "open"
        for name in sorted(IMPORTS[module] & MODULES.keys()):
            assert state.get(name) != "open", f"cycle: {' -> '.join([*path, module, name])}"
            if name not in state:
                visit(name, [*path, module])
        state[module] = "done"

    for module in MODULES:
        if module not in state:
            visit(module, [])


def test_a_command_is_imported_by_no_other_module():
    doors = DOORS | {"nerbert.commands.table"}
    for module, names in IMPORTS.items():
        assert module in doors or not names & doors, module


def test_imports_inside_functions_state_their_reason():
    for module, path in MODULES.items():
        lines = path.read_text(encoding="utf-8").splitlines()
        for node, inside in statements(ast.parse("\n".join(lines))):
            if inside and "  # " not in lines[node.end_lineno - 1]:
                above = node.lineno - 2
                while lines[above].strip().startswith(("from ", "import ")) or not lines[above]:
                    above -= 1
                assert lines[above].strip().startswith("# "), f"{module}: {ast.unparse(node)}"


def test_only_the_worker_unpickles():
    """Others only name what torch raises when it refuses to."""
    users = {module for module, names in IMPORTS.items() if "pickle" in names}
    only_error = {"pretrain.training.checkpoints", "pretrain.training.tokenizer"}
    for module in only_error:
        lines = [
            line for line in MODULES[module].read_text().splitlines() if "pickle" in line.lower()
        ]
        assert lines[0] == "from pickle import UnpicklingError"
        assert not any("pickle." in line for line in lines)
    assert users - only_error == {"pipeline.execution.worker"}


BENCHMARKS = sorted(
    ".".join((folder, path.stem))
    for folder in ("benchmarks", "tests.attacks")
    for path in ROOT.joinpath(*folder.split(".")).glob("[a-z]*.py")
)


@pytest.mark.parametrize("name", BENCHMARKS)
def test_benchmarks_import_what_exists(name, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    importlib.import_module(name)


HELP = """
import contextlib, io, sys
from nerbert.commands.table import COMMANDS, main
for name in ("", *COMMANDS):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        main([name, "--help"] if name else ["--help"])
    assert out.getvalue().startswith("usage: "), name
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""


def test_help_loads_no_heavy_library():
    done = subprocess.run([sys.executable, "-c", HELP], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    heavy = {"apache_beam", "datasets", "lxml", "matplotlib", "mwparserfromhell", "nltk", "numpy"}
    heavy |= {"pandas", "pyarrow", "rdflib", "torch", "transformers"}
    assert not heavy & set(done.stdout.split())
