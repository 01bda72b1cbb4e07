"""The options of a join."""

from __future__ import annotations

from pydantic.dataclasses import dataclass

from nerbert.commands.options import CHECKED, Location, Locations, Seed, option


@dataclass(frozen=True, config=CHECKED)
class JoinSettings:
    """Makes one corpus of the runs of several wikis.

        nerbert join enwiki-run ukwiki-run dewiki-run --output all

    The categories are those of any of them. A page and its translations are in one split, if the
    runs had --page-props. Train examples are repeated as each run did it, and those of smaller
    wikis more often: a language has a share of |L|^X, |L| its train sentences. The column
    `language` says whose they are.
    """

    runs: Locations = option(
        help="output folders of nerbert corpus", positional=True, metavar="RUN", recipe=False
    )
    output: Location = option(help="folder for the corpus", metavar="DIR", recipe=False)
    language_alpha: float = option(
        0.7, "exponent of languages", metavar="X", ge=0, le=1, decides="join"
    )
    validation_share: float = option(
        0.1,
        "share of pages whose examples become validation",
        metavar="P",
        ge=0,
        le=1,
        decides="join",
    )
    seed: Seed = option(0, "seed of all draws", decides="join")
