"""What the commands share: how flags are told, and where log lines go."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

from pipeline.errors import UserError
from pretrain.config import BadLossError


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


def run(work: Callable[[], None], output: str = "") -> int:
    """Does the work of a command; what a user can mend is told in one line.

    Args:
        work: that is done.
        output: folder that the same command goes on from, if any.

    Returns:
        Exit code: 2 for bad input, 1 where the system refuses or the loss is no number, 130 after
        Ctrl-C, else 0.
    """
    try:
        work()
    except UserError as error:
        if is_first():
            print(error, file=sys.stderr)
        return 2
    except BadLossError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        again = f"; the same command goes on from {output}" if output else ""
        print(f"Stopped{again}.", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        print(f"{error.filename or output}: {error.strerror or error}; check space and "
              "permissions, then run the same command again", file=sys.stderr)  # fmt: skip
        return 1
    return 0


def begin() -> None:
    """Log lines go to standard error; of several processes only the first writes them."""
    level = logging.INFO if is_first() else logging.ERROR
    logging.basicConfig(level=level, format="%(message)s", stream=sys.stderr, force=True)
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


def is_first() -> bool:
    """Whether this is the first process that torchrun started, or the only one."""
    return os.environ.get("RANK", "0") == "0"
