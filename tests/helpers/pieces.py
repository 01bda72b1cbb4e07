"""Tokens of scripts without spaces, as a judge of ours."""

import re

from nerbert.text.tokens import UNSPACED

_PIECE = re.compile(f"[{UNSPACED}]|[^{UNSPACED}]+")


def pieces(text, spans):
    """The spans of NLTK's tokens; characters of scripts without spaces are tokens of their own."""
    return [
        (start + piece.start(), start + piece.end())
        for start, end in spans
        for piece in _PIECE.finditer(text[start:end])
    ]
