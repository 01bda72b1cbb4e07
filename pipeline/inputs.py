"""Finding and checking the files that a run is given."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from ontology.instance_types import read_instance_types
from pipeline import files
from pipeline.errors import UserError

_INDEX = re.compile(r"index\d*\.txt")


def find_dumps(patterns: Sequence[str]) -> list[str]:
    """Dump files that paths, globs and directories name; numbers in names sort as numbers.

    Raises:
        UserError: a pattern names none.
    """
    found: dict[str, None] = {}
    for pattern in patterns:
        try:
            names = [name for name in files.find(pattern) if not _INDEX.search(name)]
        except OSError as error:
            raise UserError(f"--dump {pattern}: cannot be read ({error}); check the path") from None
        if not names:
            raise UserError(f"--dump {pattern}: no such file; give a path, a glob or a directory")
        found.update(dict.fromkeys(names))
    return sorted(found, key=_natural)


def _natural(name: str) -> list[tuple[int, int, str]]:
    pieces = re.split(r"(\d+)", name)
    return [(1, int(p), "") if p.isdigit() else (0, 0, p) for p in pieces]


def checked(flag: str, path: str | None, read: Callable[[str], Any]) -> Any:
    """What `read` makes of a file; its errors as one line that names flag and file."""
    if path is None:
        return None
    try:
        with files.local_copies([path]) as (local,):
            return read(local)
    except FileNotFoundError:
        raise UserError(f"{flag} {path}: no such file; check the path") from None
    except (OSError, EOFError) as error:
        raise UserError(f"{flag} {path}: cannot be read ({error}); is it complete?") from None
    except ValueError as error:
        reason = " ".join(str(error).removeprefix(f"{local}: ").split())
        raise UserError(f"{flag} {path}: {reason}; give another file") from None


def check_types(path: str) -> None:
    """Whether the first lines of an instance-types file hold a statement."""
    for number, statement in enumerate(read_instance_types(path)):
        if statement is not None:
            return
        if number == 1000:
            break
    raise ValueError(
        "no line of its beginning says '<http://dbpedia.org/resource/X> rdf:type "
        "<http://dbpedia.org/ontology/C> .'"
    )
