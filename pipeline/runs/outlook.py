"""A look at the first pages of a dump before a run of hours: how many links will have a class."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pyarrow.compute as pc

from nerbert.storage import parts
from ontology.titles import title_keys
from pipeline.documents.rows import articles
from pipeline.entities.types_files import statements_path
from pipeline.plan import Plan
from pipeline.wikitext.render import render

ARTICLES = 200
"""Articles that are looked at; it takes a second."""
_LARGEST = 100_000  # characters


def outlook(plan: Plan) -> str:
    """One line that says what to expect of the infoboxes and types of a run."""
    typed = looked = 0
    titles: set[str] = set()
    pages = (page for page in articles(plan.units) if len(page.wikitext) <= _LARGEST)
    for page in islice(pages, ARTICLES):
        templates = render(page.wikitext, plan.inputs[0].site).templates
        used = [(template.name, list(template.arguments)) for template in templates]
        looked += 1
        if plan.mapping.class_of(used) is not None:
            typed += 1
        else:
            titles.add(page.title)
    typed += _n_stated(plan, titles)
    types = f"{len(plan.settings.types)} files of types" if plan.settings.types else "no types"
    remedy = _remedy(plan)
    inputs = (
        f"language {plan.language}, mapping of {len(plan.mapping.templates):,} infoboxes, {types}"
    )
    pieces = [inputs]
    if looked:
        share = f"{100 * typed / looked:.0f} % of the first {looked:,} articles"
        pieces.append(f": {share} have a class from these")
    if remedy:
        pieces.append(f"; give {remedy} for more")
    return "".join(pieces)


def _n_stated(plan: Plan, titles: set[str]) -> int:
    """How many of some titles the files of types know."""
    stated_keys = np.zeros(0, np.uint64)
    keys = title_keys(sorted(titles))
    for number in range(len(plan.settings.types)):
        for batch in parts.read_batches(statements_path(plan, number), ["source", "subject"]):
            of_language = batch.filter(pc.equal(batch.column("source"), plan.language))
            stated_keys = np.union1d(
                stated_keys, np.intersect1d(keys, of_language.column("subject").to_numpy())
            )
    return len(stated_keys)


def _remedy(plan: Plan) -> str:
    """Flags for files that would type more pages, and that the user has not given."""
    settings = plan.settings
    if plan.language == "en":
        return "" if settings.types else "--types"
    missing = [] if settings.page_props else ["--page-props"]
    if not settings.types:
        missing.append("--types of Wikidata's ids")
    return " and ".join(missing)
