"""A sample of the texts of a dump, for its sentence model."""

from __future__ import annotations

from collections.abc import Sequence

from nerbert.digests import digest64
from pipeline.documents.rows import articles
from pipeline.dump.units import Unit
from pipeline.wikitext.render import render

SCANNED_CHARS = 3_000_000
"""Characters of wikitext from the start of the dump; Punkt is trained on a sample of them."""


SAMPLED_CHARS = 500_000
"""Characters of text in this sample. Articles with small digests of their id are taken first.

More text does not help: on English pages, models of 0.25 and of 2 million characters agree equally
well with NLTK's own model.
"""


_LARGEST_SAMPLE = 200_000


def sampled_texts(units: Sequence[Unit], seed: int) -> list[str]:
    """Texts of some articles of a dump, which the models of its language are trained on.

    They are chosen by a digest of their id, so they do not depend on the dump's compression.
    """
    candidates: list[tuple[int, int, str]] = []  # digest, page id, wikitext
    scanned = 0
    for page in articles(units):
        scanned += len(page.wikitext)
        if len(page.wikitext) <= _LARGEST_SAMPLE:
            candidates.append((digest64(seed, "punkt", page.page_id), page.page_id, page.wikitext))
        if scanned > SCANNED_CHARS:
            break
    texts: list[tuple[int, str]] = []
    chars = 0
    for _, page_id, wikitext in sorted(candidates):
        text = render(wikitext, units[0].site).text
        texts.append((page_id, text))
        chars += len(text)
        if chars > SAMPLED_CHARS:
            break
    return [text for _, text in sorted(texts)]
