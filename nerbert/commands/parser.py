"""Commands: flags from options classes, exit codes, and errors that name the flag."""

from __future__ import annotations

import argparse
import errno
import logging
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from nerbert.commands.flags import Help, Parser, add_flag, value_of
from nerbert.commands.options import DETAILS, Option, options_of
from nerbert.commands.process import (
    be_verbose,
    begin_logging,
    check_system,
    drop_output,
    end_bars,
    end_output,
    print_error,
    signals_as_ctrl_c,
    typed_program,
)
from nerbert.commands.recipes import Recipes, recipe_text
from nerbert.commands.values import Given, build, near
from nerbert.errors import RunError, UserError, check_text, is_disk_full, missing_extra


@dataclass
class Parsed:
    """A parsed command line.

    Attributes:
        settings: one instance of each options class of the command, in their order.
        positionals: arguments for another program, such as Beam.
        values: the values that the user gave, by name of the option.
    """

    settings: list[Any] = field(default_factory=list)
    positionals: list[str] = field(default_factory=list)
    values: dict[str, Given] = field(default_factory=dict)

    @property
    def output(self) -> str:
        """The folder that the command writes to; empty if it has none."""
        outputs = (getattr(entry, "output", None) for entry in self.settings)
        return next((output for output in outputs if output), "")

    def message(self, error: UserError) -> str:
        """The message of an error, with the flag of the wrong value in front.

        Two flags may have equal values: the very object of one of them tells which is meant. If a
        copy does not, all of them are named.
        """
        identical: list[str] = []
        equal: list[str] = []
        for name, entry in self.values.items() if error.about is not None else ():
            used = next(
                (getattr(instance, name) for instance in self.settings if hasattr(instance, name)),
                None,
            )
            for value in used if isinstance(used, tuple) else (used,):
                if value == error.about:
                    equal.append(entry.where)
                    identical += [entry.where] if value is error.about else []
        where = dict.fromkeys(identical if len(identical) == 1 else equal)
        return f"{' or '.join(where)} {error}".lstrip()  # a positional value has no flag


class Command:
    """One command: `Command(__doc__, Options, ...)`, and `main` runs it."""

    def __init__(
        self,
        doc: str | None,
        *kinds: type,
        recipes: Recipes | None = None,
        positionals_help: str = "",
        passes_flags: bool = False,
    ) -> None:
        """Describes a command.

        Args:
            doc: first text of `--help`.
            kinds: options classes.
            recipes: recipes that are shipped for this command; users can always name a file.
            positionals_help: text of `--help` about unknown flags, which go to another program.
                Empty if unknown flags are errors.
            passes_flags: whether the work takes the options that were typed as flags, too.
        """
        self.doc = (doc or "").strip()
        self._kinds = kinds
        self._recipes = recipes or Recipes()
        self.positionals_help = positionals_help
        self._passes_flags = passes_flags
        self.options = [entry for entry in options_of(*kinds) if entry.facts["flag"]]

    def groups(self) -> dict[str, list[Option]]:
        """The options by the heading of their group; those without one come first.

        Required options are the first ones of their group.
        """
        groups: dict[str, list[Option]] = {"": []}
        for entry in self.options:
            groups.setdefault(entry.facts["group"], []).append(entry)
        return {
            title: sorted(entries, key=lambda entry: not entry.is_required)
            for title, entries in groups.items()
            if entries
        }

    def parser(self, prog: str | None = None, everything: bool = True) -> argparse.ArgumentParser:
        """The parser of the command line. Flags that were not typed are absent from its result.

        Args:
            prog: name of the program in usage lines.
            everything: whether it has the options that are rarely needed, too.
        """
        prog = prog or typed_program()
        groups = self.groups()
        visible = {t: g for t, g in groups.items() if everything or not t.endswith(DETAILS)}
        hidden = len(self.options) - sum(map(len, visible.values()))
        hint = f"{prog} --help all shows {hidden} more flags." if hidden else ""
        parser = Parser(
            prog=prog,
            usage=f"{prog} [FLAG ...]",
            description=self.doc,
            epilog="\n\n".join(filter(None, [self.positionals_help, hint])) or None,
            add_help=False,
            allow_abbrev=False,
            argument_default=argparse.SUPPRESS,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        parser.add_argument(
            "-h",
            "--help",
            action=Help,
            nargs="?",
            const=partial(self.parser, prog),
            metavar="all",
            help="show this; all: every flag",
        )
        for title, entries in visible.items():
            group = parser.add_argument_group(title) if title else parser
            for entry in entries:
                add_flag(group, entry)
        recipes = self._recipes
        shipped = f"{', '.join(recipes.names)}, or " if recipes.names else ""
        default = f" (default: {recipes.default})" if recipes.default else ""
        parser.add_argument(
            recipes.flag,
            dest="recipe",
            metavar="NAME" if recipes.names else "FILE",
            help=f"{shipped}a TOML file with values of the options{default}",
        )
        parser.add_argument(
            "--print-recipe",
            action="store_true",
            help="print all options as a recipe, and do nothing",
        )
        parser.add_argument(
            "-q", "--quiet", action="store_true", help="log warnings and errors only"
        )
        parser.add_argument(
            "-v", "--verbose", action="store_true", help="log what libraries do, too"
        )
        return parser

    def parse(self, argv: Sequence[str] | None = None, prog: str | None = None) -> Parsed:
        """Parses a command line. The recipe overrides defaults, flags override the recipe.

        Raises:
            UserError: a flag or key is unknown, or a value is wrong.
        """
        argv = list(sys.argv[1:] if argv is None else argv)
        for text in argv:
            check_text(text)
        parser = self.parser(prog)
        namespace, positionals = parser.parse_known_args(argv)
        if positionals and not self.positionals_help:
            flags = [flag for entry in self.options for flag in entry.flags]
            hint = near(positionals[0], flags) or f"; see {parser.prog} --help"
            problem = "unknown flag" if positionals[0].startswith("-") else "unexpected argument"
            raise UserError(f"{positionals[0]}: {problem}{hint}")
        texts = vars(namespace)
        prints = texts.pop("print_recipe", False)
        if texts.pop("quiet", False):
            logging.getLogger().setLevel(logging.WARNING)
        if texts.pop("verbose", False):
            be_verbose()
        name = texts.pop("recipe", self._recipes.default)
        values = self._recipes.read(name, self._kinds) if name else {}
        by_name = {entry.name: entry for entry in self.options}
        typed = {key: value_of(by_name[key], text, argv) for key, text in texts.items()}
        values = _over(values, typed, self.options)
        if prints:
            print(self._recipe(values), end="")
            raise SystemExit(0)
        return Parsed(self._built(values), positionals, values)

    def _recipe(self, by_option: Mapping[str, Given]) -> str:
        """The values of all options that a recipe may set, as one."""
        values = {
            entry.name: by_option[entry.name].value if entry.name in by_option else entry.default
            for entry in options_of(*self._kinds)
            if entry.facts["recipe"] and (entry.name in by_option or not entry.is_required)
        }
        return recipe_text(values)

    def _built(self, values: Mapping[str, Given]) -> list[Any]:
        """An instance of each options class."""
        settings: list[Any] = []
        for kind in self._kinds:
            names = {entry.name for entry in options_of(kind)}
            settings.append(build(kind, {name: values[name] for name in names & set(values)}))
        return settings

    def call(self, work: Callable[..., Any], recipe: str = "", **values: Any) -> Any:
        """Calls `work` with options from Python; returns what it returns.

        Args:
            work: as for `main`.
            recipe: name of a recipe, or a file; empty for the default.
            values: values of the options.

        Raises:
            UserError: an option or key is unknown, or a value is wrong.
        """
        option_names = [entry.name for entry in options_of(*self._kinds)]
        for name in values:
            if name not in option_names:
                raise UserError(f"unknown option {name!r}{near(name, option_names)}")
        recipe = recipe or self._recipes.default
        recipe_values = self._recipes.read(recipe, self._kinds) if recipe else {}
        call_values = {}
        for name, value in values.items():
            if isinstance(value, Mapping) and name in recipe_values:
                value = {**recipe_values[name].value, **value}
            call_values[name] = Given(value, f"{name} =")
        return work(*self._built(_over(recipe_values, call_values, self.options)))

    def main(
        self, work: Callable[..., None], argv: Sequence[str] | None = None, prog: str | None = None
    ) -> int:
        """Parses the command line, calls `work`, and returns the exit code.

        Args:
            work: takes an instance of each options class; then the list of unknown flags, or the
                options that were typed as flags, if the command passes them on.
            argv: arguments; those of the process if None.
            prog: name of the program in usage lines.
        """
        begin_logging()
        parsed = Parsed()

        def parse_and_work() -> None:
            check_system(self._kinds[0].__module__)
            typed = self.parse(argv, prog)
            parsed.settings, parsed.positionals, parsed.values = (
                typed.settings,
                typed.positionals,
                typed.values,
            )
            extra: list[Any] = [typed.positionals] if self.positionals_help else []
            if self._passes_flags:
                extra.append({k: v for k, v in typed.values.items() if v.where.startswith("--")})
            work(*typed.settings, *extra)

        with signals_as_ctrl_c():
            return exit_code(parse_and_work, parsed)


def _over(
    recipe: Mapping[str, Given], user_values: Mapping[str, Given], options: Sequence[Option]
) -> dict[str, Given]:
    """The values of a recipe, and above them those that the user gave."""
    reset = {entry.facts["resets"] for entry in options if entry.name in user_values}
    return {**{name: value for name, value in recipe.items() if name not in reset}, **user_values}


def _work_and_write(work: Callable[[], None]) -> None:
    """Calls `work`, and writes what it printed; --help and --print-recipe end by a SystemExit."""
    try:
        work()
    except SystemExit as end:
        if end.code:
            raise
    end_output()


def exit_code(work: Callable[[], None], parsed: Parsed | None = None) -> int:
    """Calls `work` and turns its errors into one line on standard error.

    Returns:
        0 for success, 1 if the run cannot continue, 2 for wrong input, 130 after Ctrl-C or SIGTERM.
    """
    parsed = parsed or Parsed()
    try:
        _work_and_write(work)
    except UserError as error:
        print_error(parsed.message(error))
        return 2
    except RunError as error:
        end_bars()
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt as stopped:
        hint = f" Run the same command again to continue {parsed.output}." if parsed.output else ""
        line = " ".join(["Stopped.", *map(str, stopped.args)]) + hint
        sys.stderr.write(f"{line}\n")  # at once: worker processes may write, too
        return 130
    except ModuleNotFoundError as error:
        print(missing_extra(error), file=sys.stderr)
        return 2
    except MemoryError:
        print_error("Out of memory; give fewer --workers, or use a machine with more memory")
        return 1
    except BrokenPipeError:  # the reader of our output, such as `head`, has closed it
        drop_output()
    except Exception as error:
        if isinstance(error, OSError):
            place, reason = error.filename or parsed.output, error.strerror or error
        elif is_disk_full(error):
            place, reason = parsed.output, os.strerror(errno.ENOSPC)
        else:
            raise
        problem = ": ".join(map(str, filter(None, (place, reason))))
        print_error(f"{problem}; check space and permissions, then run the same command again")
        return 1
    return 0
