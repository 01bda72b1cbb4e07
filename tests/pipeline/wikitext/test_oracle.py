"""Against mwparserfromhell as an independent reading of the same pages."""

import re

import pytest

from nerbert.storage.places import Place
from pipeline.dump import units
from pipeline.dump.pages import Page
from pipeline.dump.streams import find_dumps
from pipeline.wikitext.render import render
from tests.helpers.walker import anchors

RESIDUE = re.compile(r"\[\[|\]\]|\{\{|\}\}")


def articles(folder, pattern, namespaces=(0,)):
    for path in find_dumps([Place(folder / "dumps" / pattern)]):
        language = "fr" if "frwiki-2010" in path else None  # the dump names none
        for unit in units.cut([units.inspect(path, language)]):
            for page in units.read_unit(unit):
                if isinstance(page, Page) and page.namespace in namespaces and not page.redirect:
                    yield page, unit.site


def test_anchors_agree_on_the_english_slices(shared):
    walked = rendered = agreed = 0
    for page, site in articles(shared, "enwiki-*"):
        expected = anchors(page.wikitext, site)
        result = render(page.wikitext, site, list_items=True)
        found = type(expected)(
            (result.text[a.start : a.end], a.target.partition("#")[0]) for a in result.anchors
        )
        walked += expected.total()
        rendered += found.total()
        agreed += (expected & found).total()
    assert walked > 30_000
    assert agreed / (walked + rendered - agreed) >= 0.995


@pytest.mark.slow
def test_hardly_any_page_keeps_markup(shared):
    pages = dirty = 0
    for page, site in articles(shared, "*wiki*", (0, 14)):
        pages += 1
        dirty += RESIDUE.search(render(page.wikitext, site).text) is not None
    assert pages > 2000
    assert dirty / pages <= 0.005  # 11 of 2,699; most of it MediaWiki shows too
