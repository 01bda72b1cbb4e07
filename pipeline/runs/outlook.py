"""A look at the first pages of a dump before a run of hours: how many links will have a class."""

from __future__ import annotations

from itertools import islice

from pipeline.documents.rows import articles
from pipeline.entities.type_facts import read_types
from pipeline.plan import Plan
from pipeline.wikitext.render import render

ARTICLES = 200
"""Articles that are looked at; it takes a second."""
_LARGEST = 100_000  # characters
_LINES = 200_000


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
    stated, is_all = _stated(plan, titles)
    typed += len(stated)
    types = f"{len(plan.settings.types)} files of types" if plan.settings.types else "no types"
    remedy = _remedy(plan)
    known = (
        f"language {plan.language}, mapping of {len(plan.mapping.templates):,} infoboxes, {types}"
    )
    pieces = [known]
    if looked:
        least = "" if is_all else "at least "
        share = f"{least}{100 * typed / looked:.0f} % of the first {looked:,} articles"
        pieces.append(f": {share} have a class from these")
    if remedy:
        pieces.append(f"; give {remedy} for more")
    return "".join(pieces)


def _stated(plan: Plan, titles: set[str]) -> tuple[set[str], bool]:
    """Those of some titles that the first lines of the files know; whether these are all lines."""
    known: set[str] = set()
    is_all = True
    for path in plan.settings.types:
        lines = read_types(path)
        for statement in islice(lines, _LINES):
            if statement and statement[0] == plan.language and statement[1] in titles:
                known.add(statement[1])
        is_all &= next(lines, lines) is lines
    return known, is_all


def _remedy(plan: Plan) -> str:
    """What the user could give besides."""
    settings = plan.settings
    if plan.language == "en":
        return "" if settings.types else "--types"
    missing = [] if settings.page_props else ["--page-props"]
    if not settings.types:
        missing.append("--types of Wikidata's ids")
    return " and ".join(missing)
