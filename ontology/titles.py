"""The one normal form of a page title, of a DBpedia resource IRI, and of their 64-bit keys."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt
import xxhash

_SPACES = re.compile(r"[ _\u00a0\u1680\u180e\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+")
_INVISIBLE = re.compile(r"[\u200e\u200f\u202a-\u202e]")
_RESOURCE = re.compile(r"https?://(?:[a-z-]+\.)?dbpedia\.org/resource/(.*)", re.DOTALL)

Keys = npt.NDArray[np.uint64]


def upper_first(title: str) -> str:
    """`title` with its first letter in upper case, as MediaWiki's `ucfirst` does.

    Letters whose upper case is more than one letter (German sharp s) and Georgian letters stay.

    Source: MediaWiki, Language::ucfirst and its table of exceptions.
    """
    if not title or title[0].isupper():
        return title
    first = title[0].upper()
    if len(first) != 1 or "\u10d0" <= title[0] <= "\u10ff":
        return title
    return first + title[1:]


def normal_title(title: str, *, first_letter: bool = True) -> str:
    """Normal form of a page title: NFC, single spaces, no underscores, first letter in upper case.

    Args:
        title: as written in a link or a dump, entities and percent signs decoded, no section.
        first_letter: false on wikis whose titles are case-sensitive from the first letter on.

    Source: MediaWiki, MediaWikiTitleCodec::splitTitleString.
    """
    if title.isascii():
        if "_" in title or "  " in title:
            title = _SPACES.sub(" ", title)
        title = title.strip(" ")
    else:
        title = unicodedata.normalize("NFC", title)
        title = _SPACES.sub(" ", _INVISIBLE.sub("", title)).strip(" ")
    return upper_first(title) if first_letter else title


def resource_title(iri: str) -> str | None:
    """Page title of a DBpedia resource IRI, percent-encoded or plain; None when it is no resource.

    >>> resource_title("http://dbpedia.org/resource/%22Heroes%22_(David_Bowie_album)")
    '"Heroes" (David Bowie album)'
    """
    match = _RESOURCE.fullmatch(iri)
    return normal_title(unquote(match[1])) if match else None


def title_key(title: str) -> int:
    """64-bit key of a normal title (xxh3); at 18 million titles two share one with p = 1e-5."""
    return xxhash.xxh3_64_intdigest(title.encode("utf-8", "surrogatepass"))


def title_keys(titles: Iterable[str]) -> Keys:
    """Keys of many normal titles, shape (titles,)."""
    return np.fromiter((title_key(title) for title in titles), dtype=np.uint64)
