"""The options of a domain corpus."""

from __future__ import annotations

from typing import Literal

from pydantic.dataclasses import dataclass

from nerbert.commands.options import CHECKED, Text, Texts, option
from nerbert.errors import UserError
from pipeline.domain.definition import Domain, load, names

_INPUT, _DOMAIN, _LEVELS = "input and output", "domain", "levels"


@dataclass(frozen=True, config=CHECKED)
class DomainSettings:
    r"""Makes a domain corpus: the sentences of some wiki categories, from a corpus run.

        nerbert domain --documents enwiki-corpus --domain music --output music-corpus
        nerbert domain --documents enwiki-corpus --roots "Rock music" --depth 2 \
            --special Band Song --output rock-corpus

    Our flags come first, Beam's follow.
    """

    documents: Text = option(
        help="output folder of a corpus run whose resolve stage is done",
        metavar="DIR",
        group=_INPUT,
        recipe=False,
        path="workers",
    )
    output: Text = option(
        help="folder of the domain corpus",
        metavar="DIR",
        group=_INPUT,
        recipe=False,
        path="workers",
    )
    workers: int | None = option(
        None, "local worker processes (default: one per core)", group=_INPUT, ge=1
    )
    domain: Text | None = option(
        None, f"{', '.join(names())}, or a TOML file", metavar="NAME", group=_DOMAIN
    )
    roots: Texts = option(
        (), "wiki categories to start from, instead of the domain's", metavar="NAME", group=_DOMAIN
    )
    depth: int | None = option(
        None, "steps down from the roots (default: the domain's, or 4)", group=_DOMAIN, ge=0
    )
    skip: Texts = option(
        (),
        "patterns of wiki categories that are not entered, beside the domain's, such as '* stubs'",
        metavar="PATTERN",
        group=_DOMAIN,
    )
    special: Texts = option(
        (),
        "types of the task level instead of the domain's, or classes",
        metavar="TYPE",
        group=_DOMAIN,
    )
    mentions: Literal["all", "links"] = option(
        "all",
        "what names an entity: links, and the other names of linked pages in the text; or links",
        group=_LEVELS,
    )
    entity_mentions: int = option(
        2,
        "different entities with a class that a sentence of the entity level names",
        group=_LEVELS,
        ge=1,
    )
    task_mentions: int = option(
        1, "mentions of special types in a sentence of the task level", group=_LEVELS, ge=1
    )
    exclude: Texts = option(
        (),
        "evaluation sets (CoNLL columns) whose sentences must not be in the corpus",
        metavar="FILE",
        group=_LEVELS,
        path="workers",
    )

    def definition(self) -> Domain:
        """The domain, changed by the other options.

        Raises:
            UserError: no domain is named, or it is unknown.
        """
        if self.domain is not None:
            domain = load(self.domain)
        elif self.roots:
            domain = Domain("roots", ", ".join(self.roots), ())
        else:
            raise UserError(f"--domain: give one of {', '.join(names())}, a TOML file, or --roots")
        roots = [name.removeprefix("Category:").replace("_", " ") for name in self.roots]
        return domain.changed(roots, self.depth, self.skip, self.special)
