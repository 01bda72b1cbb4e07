"""Tokens by NLTK's tokens, one at a time, as a judge of ours."""

import re
from itertools import pairwise

from nerbert.text.compounds import cuts
from nerbert.text.tokens import UNSPACED

_PIECE = re.compile(f"[{UNSPACED}]|[^{UNSPACED}]+")


def pieces(text, spans, language=""):
    """The spans of NLTK's tokens, cut as single tokens are, and at characters without spaces."""
    return [
        (start + first + piece.start(), start + first + piece.end())
        for start, end in spans
        for first, last in pairwise([0, *cuts(text[start:end], language), end - start])
        for piece in _PIECE.finditer(text[start + first : start + last])
    ]
