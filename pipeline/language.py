"""Language models of a wiki: Punkt for sentences, frequent words for pages of other languages."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nerbert.errors import UserError
from nerbert.text.common_nouns import NO_NOUNS, CommonNouns
from nerbert.text.punkt import Parameters
from nerbert.text.sentences import SentenceModel
from nerbert.text.tokens import UNSPACED
from pipeline.dump.site import language


def trained(texts: Iterable[str], code: str) -> SentenceModel:
    """A model that is trained on texts in the language with this code, such as "en"."""
    return SentenceModel.train(texts, language(code).abbreviations.split(), code)


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
    return SentenceModel(f"nltk:{name}", parameters, code)


_MOST = 300
"""Number of words: those that most of the wiki's pages have."""
_CHARS = 3000
"""Characters from the start of a text that are looked at."""
_FEWEST_WORDS = 40
"""Words that a text needs for a decision."""
_FEWEST_PAGES = 10
"""Pages with so many words that a wiki needs for decisions: of two pages none is the usual one."""
_SHARE = 0.4
"""A page is in another language if its share is less than so much of the median of all pages.

On slices in ten languages this finds six of six such pages, and is wrong on two of 2,300, which
quote a song. Of the pages of one slice it finds 87 to 100 % with the words of another slice, but of
the Japanese ones 71 % with Chinese words, and of the Chinese ones 4 % with Japanese words.
"""


_WORD = re.compile(rf"[{UNSPACED}]|(?!\w['’])[^\W\d_{UNSPACED}]+")
"""Words but elided ones ("l'État"), which are single letters. NLTK's tokens would take as long as
all else that is done with a page."""


@dataclass(frozen=True)
class CommonWords:
    """The words that most pages of a wiki have.

    Attributes:
        words: the words, in lower case.
        least: smallest share of these words in a page of the wiki's language; 0 if nobody can tell.
        nouns: its common nouns, if it writes them with a capital.
        has_lexicon: whether a lexicon tells its proper nouns; see `pipeline.wikitext.lexicon`.
    """

    words: frozenset[str]
    least: float
    nouns: CommonNouns = NO_NOUNS
    has_lexicon: bool = False

    @classmethod
    def train(
        cls, texts: Sequence[str], language: str = "", has_lexicon: bool = False
    ) -> CommonWords:
        """Counts the pages of each word. Most texts must be in the wiki's language.

        A long page in another language counts once for each of its words, as every page does, and
        the median does not see it.
        """
        pages = [_words(text) for text in texts]
        counts = Counter(word for page in pages for word in set(page))
        frequent = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:_MOST]
        words = frozenset(word for word, _ in frequent)
        shares = [_share(page, words) for page in pages if len(page) >= _FEWEST_WORDS]
        usual = float(np.median(shares)) if len(shares) >= _FEWEST_PAGES else 0.0
        least = round(_SHARE * usual, 4)
        return cls(words, least, CommonNouns.train(texts, language), has_lexicon)

    def is_other_language(self, text: str) -> bool:
        """Whether a text is in another language. Texts of less than 40 words are in none."""
        page = _words(text)
        return len(page) >= _FEWEST_WORDS and _share(page, self.words) < self.least

    def to_json(self) -> str:
        """The words as JSON."""
        fields: dict[str, Any] = {"least": self.least, "words": sorted(self.words)}
        if self.nouns:
            fields["nouns"] = sorted(self.nouns.words)
        if self.has_lexicon:
            fields["has_lexicon"] = True
        return json.dumps(fields, ensure_ascii=False, indent=0)

    @classmethod
    def from_json(cls, text: str | bytes) -> CommonWords:
        """Reads the JSON of `to_json`."""
        fields = json.loads(text)
        nouns = CommonNouns(frozenset(fields.get("nouns", ())))
        lexicon = fields.get("has_lexicon", False)
        return cls(frozenset(fields["words"]), fields["least"], nouns, lexicon)


NO_WORDS = CommonWords(frozenset(), 0.0)
"""Those of a language that nobody has read."""


def _words(text: str) -> list[str]:
    """The words of a text that are no names, numbers or marks: these are alike in all languages."""
    return [word for word in _WORD.findall(text[:_CHARS]) if not word[0].isupper()]


def _share(page: list[str], words: frozenset[str]) -> float:
    return sum(map(words.__contains__, page)) / len(page)
