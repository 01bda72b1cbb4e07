"""The command line: flags in groups, and the settings that they name."""

from __future__ import annotations

import argparse
from importlib.resources import files as resource_files
from typing import Any

from pipeline import config, domains
from pipeline.errors import UserError
from pipeline.stages import Settings

DEMO_OUTPUT = "demo-corpus"
DEMO_MIN_ENTITIES = 2

_SELECT, _BALANCE = config.SelectSettings(), config.BalanceSettings()
_FILES: dict[str, Any] = {"nargs": "+", "action": "extend", "default": [], "metavar": "FILE"}
_NUMBER: dict[str, Any] = {"type": int, "metavar": "N"}

FLAGS: dict[str, dict[str, dict[str, Any]]] = {
    "input and output": {
        "--dump": {**_FILES, "metavar": "PATH",
                   "help": "dump files, globs or directories, local or gs:// (default: the demo)"},
        "--output": {"metavar": "DIR", "help": f"folder of all outputs (demo: {DEMO_OUTPUT})"},
        "--language": {"help": "code, where the dump names none or a wrong one"},
    },
    "run": {
        "--stage": {"choices": config.STAGES, "default": "corpus",
                    "help": "last stage to run; those before it run when they are not up to date"},
        "--workers": {**_NUMBER, "help": "local worker processes (default: one per core)"},
        "--max-set-aside": {"type": float, "default": 0.01, "metavar": "S",
                            "help": "share of pages that may be unreadable (default: %(default)s)"},
        "--seed": {"type": int, "default": 0, "help": "of every random choice (default: 0)"},
    },
    "extract: dump -> documents": {
        "--sentence-model": {"choices": config.SENTENCE_MODELS, "default": "dump",
                             "help": "Punkt trained on the dump itself, or NLTK's pre-trained "
                                     "model, from NLTK_DATA (default: dump)"},
        "--list-items": {"action": "store_true", "help": "keep the items of lists"},
    },
    "resolve: titles -> classes": {
        "--types": {**_FILES, "help": "DBpedia instance-type files (.ttl, .nt; .bz2, .gz, .xz)"},
        "--ontology": {"metavar": "FILE", "help": "DBpedia ontology (default: shipped)"},
        "--infobox-mapping": {"metavar": "FILE",
                              "help": "DBpedia's Mapping_xx.xml (default: shipped, English)"},
        "--no-infobox": {"action": "store_true", "help": "classes from --types only"},
    },
    "corpus: label, filter, balance": {
        "--categories": {"default": _SELECT.categories, "metavar": "SET",
                         "help": "specific, nerbert315, nerbert212, coarse4, or a table "
                                 "'class TAB category' (default: %(default)s)"},
        "--min-entities": {**_NUMBER,
                           "help": "distinct entities a category needs (default: "
                                   f"{_SELECT.min_entities}; demo: {DEMO_MIN_ENTITIES})"},
        "--frequent": {**_NUMBER, "default": _SELECT.frequent,
                       "help": "most frequent categories for the drop rule (default: %(default)s)"},
        "--keep-untyped": {"action": "store_true",
                           "help": "keep sentences whose mentions are all ENTITY"},
        "--drop-entity": {"default": "3:0.3,4:0.5,5:0.7", "metavar": "N:P,...",
                          "help": "drop probability by number of ENTITY mentions "
                                  "(default: %(default)s)"},
        "--min-tokens": {**_NUMBER, "default": _SELECT.min_tokens,
                         "help": "shorter sentences are dropped (default: %(default)s)"},
        "--max-tokens": {**_NUMBER, "default": _SELECT.max_tokens,
                         "help": "longer sentences are dropped (default: %(default)s)"},
        "--exclude": {**_FILES, "help": "evaluation sets (CoNLL columns) to keep out"},
        "--validation-share": {"type": float, "default": _SELECT.validation_share, "metavar": "S",
                               "help": "share of pages for validation (default: %(default)s)"},
        "--balance": {"choices": config.BALANCES, "default": _BALANCE.balance,
                      "help": "how train examples are repeated (default: %(default)s)"},
        "--alpha": {"type": float, "default": _BALANCE.alpha, "metavar": "A",
                    "help": "exponent of balancing, 0 to 1 (default: %(default)s)"},
    },
}  # fmt: skip
"""Group -> flag -> what argparse is told."""


DOMAIN_FLAGS: dict[str, dict[str, dict[str, Any]]] = {
    "input and output": {
        "--documents": {"required": True, "metavar": "DIR",
                        "help": "output folder of a run with a finished resolve stage"},
        "--output": {"required": True, "metavar": "DIR", "help": "folder of the domain corpus"},
        "--workers": FLAGS["run"]["--workers"],
    },
    "domain": {
        "--domain": {"metavar": "NAME", "help": f"{', '.join(domains.names())}, or a TOML file"},
        "--roots": {**_FILES, "metavar": "NAME", "help": "wiki categories to begin with, instead "
                                                         "of the domain's"},
        "--depth": {**_NUMBER, "help": "steps down from the roots (default: the domain's, or 4)"},
        "--skip": {**_FILES, "metavar": "PATTERN",
                   "help": "wiki categories that are not entered, beside the domain's; '* stubs'"},
        "--special": {**_FILES, "metavar": "TYPE",
                      "help": "types of the task level instead of the domain's, or classes"},
    },
    "levels": {
        "--entity-mentions": {**_NUMBER, "default": 2,
                              "help": "different pages with a class that a sentence of the entity "
                                      "level links to (default: %(default)s)"},
        "--task-mentions": {**_NUMBER, "default": 1,
                            "help": "mentions of special types that a sentence of the task level "
                                    "has (default: %(default)s)"},
        "--exclude": FLAGS["corpus: label, filter, balance"]["--exclude"],
    },
}  # fmt: skip
"""The same for a domain corpus."""

DOMAIN = "domain"
"""Word that begins the command line of a domain corpus."""


def parser(description: str, command: str = "") -> argparse.ArgumentParser:
    """The command line; flags that it does not know are Beam's.

    Args:
        description: of the program.
        command: `DOMAIN`, or nothing for a corpus.
    """
    main_parser = argparse.ArgumentParser(
        prog=f"run_pipeline.py {command}".rstrip(),
        description=description,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Every other flag goes to Beam, for example --runner and what it needs.",
    )
    for title, flags in (DOMAIN_FLAGS if command else FLAGS).items():
        group = main_parser.add_argument_group(title)
        for name, options in flags.items():
            group.add_argument(name, **options)
    return main_parser


def settings_from(options: argparse.Namespace) -> Settings:
    """The settings that the flags name; without --dump those of the demo.

    Raises:
        UserError: a value is out of range, or --output is missing.
    """
    demo = not options.dump
    least = options.min_entities
    if least is None:
        least = DEMO_MIN_ENTITIES if demo else _SELECT.min_entities
    if not demo and not options.output:
        raise UserError("--output is missing: name the folder for the outputs")
    demo_dump = str(resource_files("pipeline") / "data" / "demo.xml")
    return Settings(
        dumps=(demo_dump,) if demo else tuple(options.dump),
        output=options.output or DEMO_OUTPUT,
        language=options.language,
        max_set_aside=options.max_set_aside,
        extract=config.ExtractSettings(options.sentence_model, options.list_items, options.seed),
        resolve=config.ResolveSettings(
            tuple(options.types), options.ontology, options.infobox_mapping, not options.no_infobox
        ),
        select=config.SelectSettings(
            categories=options.categories,
            min_entities=least,
            frequent=options.frequent,
            keep_untyped=options.keep_untyped,
            drop_entity=config.parse_drop_entity(options.drop_entity),
            min_tokens=options.min_tokens,
            max_tokens=options.max_tokens,
            validation_share=options.validation_share,
            exclude=tuple(options.exclude),
            seed=options.seed,
        ),
        balance=config.BalanceSettings(options.balance, options.alpha, options.seed),
    )


def domain_settings_from(options: argparse.Namespace) -> domains.DomainSettings:
    """The settings of a domain corpus that the flags name.

    Raises:
        UserError: a value is out of range, or the domain is unknown.
    """
    if options.domain is not None:
        domain = domains.load(options.domain)
    elif options.roots:
        domain = domains.Domain("roots", ", ".join(options.roots), ())
    else:
        raise UserError(f"--domain: give one of {', '.join(domains.names())}, a TOML file, or "
                        "--roots")  # fmt: skip
    roots = [name.removeprefix("Category:").replace("_", " ") for name in options.roots]
    domain = domain.changed(roots, options.depth, options.skip, options.special)
    return domains.DomainSettings(
        options.documents, options.output, domain, options.entity_mentions, options.task_mentions,
        tuple(options.exclude),
    )  # fmt: skip
