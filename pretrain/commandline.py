"""What the commands share: how flags are told, and where log lines go."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Mapping
from typing import Any


def parser(
    module: str, doc: str | None, flags: Mapping[str, dict[str, Any]], **options: Any
) -> argparse.ArgumentParser:
    """A command line.

    Args:
        module: that is run with `python -m`.
        doc: its docstring.
        flags: flag -> what argparse is told; `also` is another name of the flag.
        options: more that the parser is told.
    """
    result = argparse.ArgumentParser(
        prog=f"python -m {module}", description=(doc or "").strip(), allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter, **options,
    )  # fmt: skip
    for name, told in flags.items():
        also = told.get("also")
        names = [name, also] if also else [name]
        result.add_argument(*names, **{key: value for key, value in told.items() if key != "also"})
    return result


def begin() -> None:
    """Log lines go to standard error; of several processes only the first writes them."""
    level = logging.INFO if is_first() else logging.ERROR
    logging.basicConfig(level=level, format="%(message)s", stream=sys.stderr, force=True)
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


def is_first() -> bool:
    """Whether this is the first process that torchrun started, or the only one."""
    return os.environ.get("RANK", "0") == "0"
