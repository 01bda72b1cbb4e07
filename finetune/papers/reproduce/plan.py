"""The plan of a paper: the commands that repeat its experiments, and what it claims of them."""

from __future__ import annotations

import os
import re
import shlex
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, Literal

from pydantic.dataclasses import dataclass as options_class

from nerbert.commands.options import CHECKED, Location, Locations, Text, Texts, option
from nerbert.commands.steps import Step
from nerbert.errors import UserError

Paper = Literal["nerbert", "crossner", "tner", "dualner"]
Scale = Literal["debug", "small", "paper"]


@options_class(frozen=True, config=CHECKED)
class ReproduceOptions:
    r"""Runs the experiments of a paper, from the dump to one page with its tables and claims.

        nerbert reproduce nerbert --scale small --dump enwiki-*.bz2 --types dbpedia/*.bz2 \
            --base-model MINILM --data-root data --output nerbert-small
        nerbert reproduce dualner --scale paper --output dualner-paper --dry-run

    It runs the commands of nerbert one after the other. If it is stopped, run it again: it goes on
    where it was. A step that cannot run is said on the page, with the reason.

    Scales: debug takes minutes, small hours on two cores, paper is what the paper ran.
    """

    paper: Paper = option(
        help="the paper", positional=True, recipe=False, metavar="{nerbert,crossner,tner,dualner}"
    )
    output: Location = option(help="folder of all outputs", metavar="DIR", recipe=False)
    scale: Scale = option("small", "size of the experiments")
    only: Texts = option((), "steps to run, by name (default: all)", metavar="STEP")
    dump: Locations = option((), "dump of Wikipedia, for papers with a corpus", metavar="PATH")
    types: Locations = option((), "DBpedia's types of pages, for these papers", metavar="FILE")
    base_model: Text | None = option(
        None, "encoder (default: that of the paper; at debug a tiny one)", metavar="MODEL"
    )
    data_root: Text | None = option(
        None, "folder of the named sets (default: NERBERT_DATA, or data)", metavar="DIR"
    )
    dry_run: bool = option(False, "print the commands and hours, and do nothing")


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, as a difference of mean scores of a step's runs.

    A value of facts may be a list: one of these.

    Attributes:
        says: the claim.
        cites: section, sentence, table and figure of the paper.
        step: the step, or several with a space between.
        better: values of a run's facts on the better side.
        than: values on the other side.
        where: values on both sides.
        large: facts where the difference is large; together with `small`, the claim is that it is
            larger there.
        small: facts where it is small.
        over: facts in which the two runs may differ, too.
        score: the score that the paper's tables have.
        expects: what is claimed of the difference.
    """

    says: str
    cites: str
    step: str
    better: Mapping[str, Any]
    than: Mapping[str, Any]
    where: Mapping[str, Any] = field(default_factory=dict)
    large: Mapping[str, Any] = field(default_factory=dict)
    small: Mapping[str, Any] = field(default_factory=dict)
    over: tuple[str, ...] = ()
    score: str = "f1"
    expects: Literal["gain", "no loss", "no difference"] = "gain"


@dataclass(frozen=True)
class Plan:
    """All of a paper at a scale.

    Attributes:
        title: the paper.
        notes: what differs from the paper at this scale.
        steps: the commands, in order.
        claims: the claims.
    """

    title: str
    notes: str
    steps: list[Step]
    claims: list[Claim]

    @classmethod
    def of(cls, options: ReproduceOptions) -> Plan:
        """Reads the shipped plan, and fills in the options.

        Raises:
            UserError: --only names no step.
        """
        # It loads numpy, which the help of the command need not.
        from finetune.data.sets import DataSets

        file = resources.files("finetune.papers.reproduce") / "data" / f"{options.paper}.toml"
        table = tomllib.loads(file.read_text(encoding="utf-8"))
        scale = table["scales"][options.scale]
        crossner = sorted(map(str, DataSets(options.data_root).root.glob("crossner/*/*.txt*")))
        values: dict[str, str] = {
            "out": shlex.quote(os.path.abspath(options.output)),
            "dump": shlex.join(options.dump),
            "types": shlex.join(options.types),
            "root": shlex.join(["--data-root", options.data_root]) if options.data_root else "",
            "crossner": shlex.join(["--exclude", *crossner]) if crossner else "",
        }
        for name, value in scale.items():  # a value may hold earlier ones
            values[name] = _filled(str(value), values)
            if name in ("base", "encoder") and options.base_model:
                values[name] = shlex.quote(options.base_model)
        names = dict.fromkeys(entry["name"] for entry in table["steps"])
        for name in options.only:
            if name not in names:
                raise UserError(f"no such step; there are {', '.join(names)}", name)
        # A step may have a command for some scales and another for the others.
        entries = {e["name"]: e for e in sorted(table["steps"], key=lambda e: _is_at(e, options))}
        at_scale = [name for name in names if _is_at(entries[name], options)]
        steps = [_step(entries[name], options, values, at_scale) for name in names]
        claims = [
            Claim(**{key: _facts(value, values) for key, value in entry.items()})
            for entry in table.get("claims", [])
        ]
        return cls(table["title"], _filled(scale.get("notes", ""), values), steps, claims)


def _step(
    entry: Mapping[str, Any],
    options: ReproduceOptions,
    values: Mapping[str, str],
    at_scale: Collection[str],
) -> Step:
    missing = [name for name in entry.get("needs", ()) if not getattr(options, name)]
    why = ""
    if not _is_at(entry, options):
        why = f"not at the scale {options.scale}"
    elif options.only and entry["name"] not in options.only:
        why = "not asked for (--only)"
    elif missing:
        why = f"needs --{missing[0].replace('_', '-')}"
    return Step(
        entry["name"],
        entry["says"],
        shlex.split(_filled(entry["command"], values)),
        entry.get("hours", {}).get(options.scale, 0.0),
        tuple(name for name in entry.get("after", ()) if name in at_scale),
        why,
        entry.get("published", ""),
        entry.get("figures", {}),
    )


def _is_at(entry: Mapping[str, Any], options: ReproduceOptions) -> bool:
    """Whether a step is one of the scale."""
    return options.scale in entry.get("scales", (options.scale,))


_PLACE = re.compile(r"\{(\w+)\}")


def _filled(text: str, values: Mapping[str, str]) -> str:
    return _PLACE.sub(lambda match: values[match[1]], text)


def _facts(value: Any, values: Mapping[str, str]) -> Any:
    """A value of a claim, with folders and models filled in."""
    if isinstance(value, dict):
        return {key: _facts(item, values) for key, item in value.items()}
    if isinstance(value, list):
        return tuple(_facts(item, values) for item in value)
    return " ".join(shlex.split(_filled(value, values))) if "{" in str(value) else value
