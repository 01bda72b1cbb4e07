"""Whether the text of an anchor is a name, by its letters."""

from __future__ import annotations

NOUNS_IN_UPPER_CASE = frozenset("als bar de frr ksh lb nds pdc pfl stq".split())
"""Codes of languages that write all nouns with a capital: German and its relatives."""

_PARTICLES = frozenset(
    "a abu ad af al am an ap as at av ben bin d da dal das de degli dei del della den der des di "
    "do dos du e el en f i ibn in la las le les lo los o of san st t ten ter the til to tot ur "
    "van vom von y zu zum zur".split()
)
"""Words in lower case inside of names: "de Gaulle", "Battle of the Bulge"."""

_APOSTROPHES = "'’‘`"


def is_name(text: str, title: str) -> bool:
    """Whether an anchor may be a name, in a language that writes only names with a capital.

    It is none if its first word begins with a letter in lower case ("tennis", "at the time"), or
    its last word does ("American citizen"). Exceptions are words with a capital inside ("iPhone",
    "d'Alembert", "al-Qaeda"), particles before a name ("de Gaulle"), and titles of pages ("Homo
    sapiens"). Scripts without case have no letters in lower case, so all anchors are names.

    Args:
        text: text of the anchor.
        title: title of the linked page.
    """
    # Nearly all anchors are decided by these two lines.
    if text.islower() and text[0].isalpha():
        return False
    if text[:1].isupper() and " " not in text:
        return True
    words = [word for word in text.split() if any(map(str.isalnum, word))]
    if not words:
        return False
    while len(words) > 1 and words[0] in _PARTICLES:
        words.pop(0)
        if not _is_lower(words[0]):
            return not _is_lower(words[-1])
    if _is_lower(words[0]):
        return False
    if len(words) == 1 or not _is_lower(words[-1]):
        return True
    return text[1:] == title.partition(" (")[0][1:]


def _is_lower(word: str) -> bool:
    """Whether the first letter of a word is in lower case, and so are the others."""
    letters = word.strip(_APOSTROPHES)
    first = next((char for char in letters if char.isalnum()), "")
    return first.islower() and not any(char.isupper() for char in letters)
