"""Our own package for Dataflow's workers, made from what is installed: no checkout is needed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from importlib.metadata import requires
from pathlib import Path

from nerbert import __version__

_PACKAGES = ("nerbert", "ontology", "pipeline")
"""Packages that workers import."""
_OWN = ("--setup_file", "--extra_package", "--requirements_file", "--sdk_container_image")
"""Flags by which the user brings the package to the workers."""

_PYPROJECT = """[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"
[project]
name = "nerbert"
version = "{version}"
dependencies = {dependencies}
[tool.setuptools]
include-package-data = false
packages.find = {{include = {packages}, namespaces = false}}
[tool.setuptools.package-data]
"*" = ["data/*", "recipes/*", "*.toml", "py.typed"]
"""


def brings_package(flags: Sequence[str]) -> bool:
    """Whether flags of Beam say how workers get our package."""
    return any(flag.startswith(_OWN) for flag in flags)


def write_source(folder: str) -> str:
    """Writes the source of a package with what workers need.

    Args:
        folder: an empty folder.

    Returns:
        Path of its `pyproject.toml`, for Beam's `--setup_file`.
    """
    home = Path(__file__).resolve().parent.parent.parent
    for name in _PACKAGES:
        leave = shutil.ignore_patterns("__pycache__")
        shutil.copytree(home / name, Path(folder) / name, ignore=leave)
    needed = [text for text in requires("nerbert") or () if "extra ==" not in text]
    path = Path(folder) / "pyproject.toml"
    path.write_text(
        _PYPROJECT.format(
            version=__version__,
            dependencies=json.dumps([*needed, *_of_extra("gcsfs")]),
            packages=json.dumps([f"{name}*" for name in _PACKAGES]),
        ),
        encoding="utf-8",
    )
    return str(path)


def _of_extra(package: str) -> list[str]:
    """The requirement for a package of an extra, without the name of the extra."""
    found = (text.partition(";")[0].strip() for text in requires("nerbert") or ())
    return sorted({text for text in found if text.startswith(package)})
