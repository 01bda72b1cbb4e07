"""The Punkt model of a wiki: trained on its dump, or NLTK's pre-trained one."""

from __future__ import annotations

from collections.abc import Iterable

from nerbert.errors import UserError
from nerbert.text.punkt import Parameters
from nerbert.text.sentences import SentenceModel
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
    known = load_punkt_params(folder)
    parameters = Parameters(
        frozenset(known.abbrev_types),
        frozenset(tuple(pair) for pair in known.collocations),
        frozenset(known.sent_starters),
        dict(known.ortho_context),
    )
    return SentenceModel(f"nltk:{name}", parameters)
