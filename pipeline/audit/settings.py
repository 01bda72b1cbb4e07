"""The options of an audit."""

from __future__ import annotations

from typing import Literal

from pydantic.dataclasses import dataclass

from nerbert.commands.options import CHECKED, Location, Locations, Seed, option

Which = Literal["typed", "entity", "all"]


@dataclass(frozen=True, config=CHECKED)
class AuditSettings:
    """Measures the labels of a corpus: people judge sampled mentions on a web page.

        nerbert audit demo-corpus --sample 150 --seed 1 --output audit.html
        nerbert audit demo-corpus --judged audit.json
        nerbert audit demo-corpus --judged one.json other.json --output conflicts.html
        nerbert audit demo-corpus --judged one.json other.json third.json

    The first command makes the page, one HTML file that works offline. Keys judge each mention, the
    browser keeps the judgements, and a button downloads them as JSON. The second command prints the
    rates with 95 % intervals, by source and by category. Of two judges it prints the agreement, and
    makes a page of the mentions on which they differ; a third one decides.
    """

    corpus: Location = option(
        help="folder of the corpus: the output of nerbert corpus, or the folder corpus in it",
        positional=True,
        metavar="CORPUS",
        recipe=False,
    )
    sample: int = option(150, "number of mentions, drawn at random", ge=1)
    seed: Seed = option(0, "seed of the draw")
    which: Which = option("typed", "mentions with a category, those of ENTITY, or all of them")
    output: Location = option(
        "audit.html", "the page to judge them on", metavar="FILE", recipe=False
    )
    judged: Locations = option(
        (),
        "judgements that were downloaded from such a page, of up to three judges: print rates",
        metavar="FILE",
        recipe=False,
    )
