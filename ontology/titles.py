"""Page titles: normal form, DBpedia's IRIs, 64-bit keys, and the other script of a language."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import cache
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_SPACES = re.compile(r"[ _\u00a0\u1680\u180e\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+")
_INVISIBLE = re.compile(r"[\u200e\u200f\u202a-\u202e]")
_RESOURCE = re.compile(r"https?://(?:([a-z-]+)\.)?dbpedia\.org/resource/(.*)", re.DOTALL)

Keys = npt.NDArray[np.uint64]

_MULTIPLIER = np.uint64(0xC6A4A7935BD1E995)
_SHIFT = np.uint64(47)
_BLOCK = 1 << 14


def upper_first(title: str) -> str:
    """`title` with its first letter in upper case, as by MediaWiki's `ucfirst`.

    Letters whose upper case is several letters (German sharp s) and Georgian letters are not
    changed.

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
        title: title in a link or a dump, with character references and percent signs decoded, and
            without a section.
        first_letter: false on wikis where also the first letter of a title is case-sensitive.

    Source: MediaWiki, MediaWikiTitleCodec::splitTitleString.
    """
    if title.isascii():
        title = title.replace("_", " ").strip(" ")
        if "  " in title:
            title = _SPACES.sub(" ", title)
    else:
        title = unicodedata.normalize("NFC", title)
        title = _SPACES.sub(" ", _INVISIBLE.sub("", title)).strip(" ")
    return upper_first(title) if first_letter else title


def resource(iri: str) -> tuple[str, str] | None:
    """Language and page title of a DBpedia resource IRI; None for other IRIs.

    The IRI is percent-encoded or plain. Without a language it is English.

    >>> resource("http://dbpedia.org/resource/%22Heroes%22_(David_Bowie_album)")
    ('en', '"Heroes" (David Bowie album)')
    """
    match = _RESOURCE.fullmatch(iri)
    return (match[1] or "en", normal_title(unquote(match[2]))) if match else None


def title_keys(titles: pa.Array | Sequence[str]) -> Keys:
    """64-bit keys of normal titles, shape (titles,); among 18 million a collision has p = 1e-5.

    MurmurHash64A of the UTF-8 bytes with seed 0. A null has the key of the empty title.
    Source: Austin Appleby, MurmurHash2, 64-bit version for 64-bit machines.
    """
    column = titles if isinstance(titles, pa.Array) else pa.array(titles, pa.string())
    blocks = [_block_keys(column.slice(n, _BLOCK)) for n in range(0, len(column), _BLOCK)]
    return np.concatenate(blocks) if blocks else np.zeros(0, np.uint64)


def _block_keys(column: pa.StringArray) -> Keys:
    """Keys of a block of titles that is small enough for the processor's cache."""
    _, ends, data = column.buffers()
    bounds = np.frombuffer(ends, np.int32)[column.offset : column.offset + len(column) + 1]
    octets = np.zeros(bounds[-1] - bounds[0] + 8, np.uint8)
    octets[:-8] = np.frombuffer(data or b"", np.uint8)[bounds[0] : bounds[-1]]
    # Overlapping 64-bit words: one begins at every byte.
    words = np.ndarray(len(octets) - 7, "<u8", octets, strides=(1,))
    lengths = np.diff(bounds).astype(np.int64)
    starts = bounds[:-1].astype(np.int64) - bounds[0]
    keys = lengths.astype(np.uint64) * _MULTIPLIER
    # Eight bytes of all titles at a time; the last bytes of each follow below.
    for place in range(0, int(lengths.max()), 8):
        full = np.flatnonzero(lengths >= place + 8)
        word = words[starts[full] + place] * _MULTIPLIER
        word ^= word >> _SHIFT
        keys[full] = (keys[full] ^ (word * _MULTIPLIER)) * _MULTIPLIER
    n_last = lengths % 8
    cut = np.flatnonzero(n_last)
    tail = words[(starts + lengths - n_last)[cut]]
    tail &= (np.uint64(1) << (8 * n_last[cut]).astype(np.uint64)) - np.uint64(1)
    keys[cut] = (keys[cut] ^ tail) * _MULTIPLIER
    keys ^= keys >> _SHIFT
    keys *= _MULTIPLIER
    keys ^= keys >> _SHIFT
    return keys


Convert = Callable[[str], list[str]]
"""Title -> its other forms, without the title itself."""

_CYRILLIC = "АБВГДЂЕЖЗИЈКЛМНОПРСТЋУФХЦЧШабвгдђежзијклмнопрстћуфхцчш"
_LATIN = "ABVGDĐEŽZIJKLMNOPRSTĆUFHCČŠabvgdđežzijklmnoprstćufhcčš"
_DIGRAPHS = {"Љ": "Lj", "Њ": "Nj", "Џ": "Dž", "љ": "lj", "њ": "nj", "џ": "dž"}
_TO_LATIN = str.maketrans(dict(zip(_CYRILLIC, _LATIN, strict=True)) | _DIGRAPHS)
_TO_CYRILLIC = str.maketrans(dict(zip(_LATIN, _CYRILLIC, strict=True)))

EXTRAS = {"zh": "zh"}
"""Language -> extra that its conversion needs."""


def converter(language: str) -> Convert | None:
    """Converts titles of a language to its other script; None if it has one script.

    Raises:
        ImportError: the extra of the language is not installed.
    """
    if language == "sr":
        return _serbian
    return _chinese() if language == "zh" else None


def _serbian(title: str) -> list[str]:
    latin = title.translate(_TO_LATIN)
    if latin != title:
        return [latin]
    for cyrillic, pair in _DIGRAPHS.items():
        title = title.replace(pair, cyrillic)
    cyrillic = title.translate(_TO_CYRILLIC)
    return [cyrillic] if cyrillic != latin else []


@cache
def _chinese() -> Convert:
    from opencc import OpenCC  # of the extra `zh`

    tables = [OpenCC(name) for name in ("t2s", "s2t")]

    def convert(title: str) -> list[str]:
        if title.isascii():
            return []
        forms = dict.fromkeys(table.convert(title) for table in tables)
        return [form for form in forms if form != title]

    return convert
