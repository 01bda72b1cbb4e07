"""What reports share: figures as PNG files, cards from templates, versions of libraries."""

from __future__ import annotations

import io
import os
from importlib.metadata import version
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING, Any

from nerbert import __version__

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def png(figure: Figure) -> bytes:
    """The bytes of a PNG file of the figure."""
    buffer = io.BytesIO()
    # Without this matplotlib writes its version into the file.
    figure.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()


def filled(package: str, template: str = "card.md", **values: Any) -> str:
    """Text of a file in the folder `data` of a package, with its `$names` replaced.

    Raises:
        KeyError: a name in the template has no value.
    """
    text = (files(package) / "data" / template).read_text(encoding="utf-8")
    return Template(text).substitute(values)


def without_paths(value: Any) -> Any:
    """JSON-ready values with the last part of each path of this machine instead of the path."""
    if isinstance(value, dict):
        return {without_paths(key): without_paths(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [without_paths(part) for part in value]
    is_path = isinstance(value, str) and os.sep in value and len(value) < 4096
    if is_path and (os.path.isabs(value) or os.path.exists(value)):
        return os.path.basename(value.rstrip(os.sep))
    return value


TRAINING = ("nerbert", "torch", "transformers", "tokenizers", "datasets")
"""Libraries that trained weights depend on."""


def versions(*libraries: str) -> dict[str, str]:
    """Versions of libraries, by name; nerbert itself may be a checkout that is not installed."""
    return {name: __version__ if name == "nerbert" else version(name) for name in libraries}
