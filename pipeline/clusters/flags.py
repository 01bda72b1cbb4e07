"""Beam's flags: which there are, and which the user gave."""

from __future__ import annotations

from argparse import ArgumentError
from collections.abc import Collection, Sequence

from apache_beam.options import pipeline_options
from apache_beam.options.pipeline_options import PipelineOptions, _BeamArgumentParser

from nerbert.errors import UserError


def check_flags(flags: Sequence[str], others: Collection[str] = ()) -> None:
    """Checks that Beam knows its flags, and that a runner is among them.

    Args:
        flags: the user's flags that are not ours.
        others: names of options that the job server knows beside those of Beam's Python.

    Raises:
        UserError: it is not so.
    """
    wrong: list[str] = []
    is_wrong = True
    for word in unknown_flags(flags):
        if word.startswith("--"):
            is_wrong = _name(word) not in others
        if is_wrong:
            wrong.append(word)
    if wrong:
        raise UserError(f"{' '.join(wrong)}: neither our flag nor Beam's; see --help")
    if not is_given(flags, "runner"):
        raise UserError(f"{flags[0]}: Beam's flag, but there is no --runner; add it, or drop this")


def unknown_flags(flags: Sequence[str]) -> list[str]:
    """The flags, and their values, that no options class of Beam's Python knows.

    Raises:
        UserError: it knows a flag, but not its value.
    """
    parser = _BeamArgumentParser(
        add_help=False, allow_abbrev=False, conflict_handler="resolve", exit_on_error=False
    )
    for cls in sorted(PipelineOptions.__subclasses__(), key=lambda c: c.__name__):
        if cls.__module__ == pipeline_options.__name__:
            cls._add_argparse_args(parser)
    try:
        return parser.parse_known_args(list(flags))[1]
    except ArgumentError as error:
        raise UserError(str(error).removeprefix("argument ")) from None
    except SystemExit:  # a flag without its value
        return list(flags)


def is_given(flags: Sequence[str], name: str) -> bool:
    """Whether the user gave the flag `--name`."""
    return any(flag.startswith("--") and _name(flag) == name for flag in flags)


def _name(flag: str) -> str:
    return flag.removeprefix("--").partition("=")[0].replace("-", "_")
