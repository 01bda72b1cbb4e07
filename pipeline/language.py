"""Language models of a wiki: Punkt for sentences, frequent words for pages of other languages."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from nerbert.errors import UserError
from nerbert.text.punkt import Parameters
from nerbert.text.sentences import SentenceModel
from ontology.voting.page_features import words_of
from pipeline.dump.site import language


def trained(texts: Iterable[str], code: str) -> SentenceModel:
    """A model that is trained on texts in the language with this code, such as "en"."""
    return SentenceModel.train(texts, language(code).abbreviations.split())


def pretrained(code: str) -> SentenceModel:
    """NLTK's model of a language.

    Raises:
        UserError: NLTK has no model of this language, or its data is not installed.
    """
    # These take a second, and most runs train their own model.
    from nltk.data import find
    from nltk.tokenize.punkt import load_punkt_params

    name = language(code).punkt
    if name is None:
        raise UserError(
            f"NLTK has no pre-trained Punkt model for language {code!r}; use --sentence-model dump"
        )
    try:
        folder = find(f"tokenizers/punkt_tab/{name}/")
    except LookupError:
        raise UserError(
            f"NLTK data tokenizers/punkt_tab/{name} not found; set NLTK_DATA to a folder that "
            "holds it (python -m nltk.downloader punkt_tab), or use --sentence-model dump"
        ) from None
    punkt = load_punkt_params(folder)
    parameters = Parameters(
        frozenset(punkt.abbrev_types),
        frozenset(tuple(pair) for pair in punkt.collocations),
        frozenset(punkt.sent_starters),
        dict(punkt.ortho_context),
    )
    return SentenceModel(f"nltk:{name}", parameters)


_MOST = 300
"""Number of words. In each of six languages they are a fifth to four fifths of nearly all pages,
and at most an eighth of pages in another one of these."""
_CHARS = 3000
"""Characters from the start of a text that are looked at."""
_FEWEST = 50
"""Words that a text needs for a decision."""
_PERCENTILE, _SHARE = 10, 0.4
"""A page is in another language if its share is less than so much of that of the wiki's pages at
this percentile."""


@dataclass(frozen=True)
class CommonWords:
    """The most frequent words of a wiki.

    Attributes:
        words: the words, in lower case.
        least: smallest share of these words in a page of the wiki's language.
    """

    words: frozenset[str]
    least: float

    @classmethod
    def train(cls, texts: Iterable[str]) -> CommonWords:
        """Counts the words of some texts, most of which are in the wiki's language."""
        pages = [_words(text) for text in texts]
        counts = Counter(word for page in pages for word in page)
        frequent = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:_MOST]
        words = frozenset(word for word, _ in frequent)
        shares = [_share(page, words) for page in pages if len(page) >= _FEWEST]
        usual = float(np.percentile(shares, _PERCENTILE)) if shares else 0.0
        return cls(words, round(_SHARE * usual, 4))

    def is_other_language(self, text: str) -> bool:
        """Whether a text is in another language. Texts of less than 50 words are in none."""
        page = _words(text)
        return len(page) >= _FEWEST and _share(page, self.words) < self.least

    def to_json(self) -> str:
        """The words as JSON."""
        return json.dumps(
            {"least": self.least, "words": sorted(self.words)}, ensure_ascii=False, indent=0
        )

    @classmethod
    def from_json(cls, text: str | bytes) -> CommonWords:
        """Reads the JSON of `to_json`."""
        fields = json.loads(text)
        return cls(frozenset(fields["words"]), fields["least"])


def _words(text: str) -> list[str]:
    return [word for word in words_of(text[:_CHARS]) if not word.isdigit()]


def _share(page: list[str], words: frozenset[str]) -> float:
    return sum(word in words for word in page) / len(page)
