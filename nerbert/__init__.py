"""The public names, such as `build_corpus` and `Tagger`, and modules that all packages share.

The public names are loaded on first use: `import nerbert` loads neither torch nor Beam.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nerbert.errors import missing_extra

if TYPE_CHECKING:
    from finetune.settings import FitSettings
    from finetune.tagger.entities import show
    from finetune.tagger.tagger import Tagger
    from nerbert.text.corpus import load_corpus
    from pipeline.runs.corpus import build_corpus

    evaluate: Callable[..., str]
    pretrain: Callable[..., str]

__all__ = [
    "FitSettings",
    "Tagger",
    "__version__",
    "build_corpus",
    "evaluate",
    "load_corpus",
    "pretrain",
    "show",
]

_DOORS = {
    "FitSettings": "finetune.settings",
    "Tagger": "finetune.tagger.tagger",
    "build_corpus": "pipeline.runs.corpus",
    "load_corpus": "nerbert.text.corpus",
    "show": "finetune.tagger.entities",
}
_COMMANDS = ("evaluate", "pretrain")
"""Commands that are functions, too."""
_NEEDED = {
    "nerbert": (),
    "pipeline": ("pipeline", "ontology"),
    "pretrain": ("pretrain", "ontology"),
    "finetune": ("finetune", "pretrain", "ontology"),
}
"""Package -> packages of nerbert that it imports, itself included."""


def check_packages(module: str) -> None:
    """Checks that Python finds our packages, and not others of the same names.

    The names are common: a folder `pipeline` beside a user's script would hide ours.

    Args:
        module: one of nerbert's modules; the packages that it imports are checked.

    Raises:
        ImportError: a package of the same name is found first.
    """
    home = Path(__file__).resolve().parent.parent
    for name in _NEEDED.get(module.partition(".")[0], ()):
        spec = find_spec(name)
        places = [
            Path(place).resolve() for place in (spec and spec.submodule_search_locations) or []
        ]
        if home / name not in places:
            place = places[0] if places else "nowhere"
            raise ImportError(
                f"the package {name!r} is imported from {place} instead of {home / name}; rename "
                "that folder, or start Python in another one"
            )


def __getattr__(name: str) -> Any:
    if name == "__version__":
        try:
            return version("nerbert")
        except PackageNotFoundError:  # a checkout that is not installed
            return "0+checkout"
    if name in _COMMANDS:
        return import_module("nerbert.commands.table").function(name)
    if name not in _DOORS:
        raise AttributeError(f"module 'nerbert' has no attribute {name!r}")
    check_packages(_DOORS[name])
    try:
        return getattr(import_module(_DOORS[name]), name)
    except ModuleNotFoundError as error:
        raise ImportError(missing_extra(error)) from error


def __dir__() -> list[str]:
    return __all__
