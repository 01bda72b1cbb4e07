"""What English texts of links are no names: demonyms, possessives, adjectives with a hyphen."""

from __future__ import annotations

import re

ENGLISH = ("en", "simple")
"""Wikis in English."""

_WORD = re.compile(r"\w+")
# The endings of English demonyms; surnames have them, too: see `is_people`.
_DEMONYM_FORM = re.compile(r"\w+(?:ans?|ese|ish|is?|ch|ic)")
_DEMONYM = re.compile(
    r"Arabs?|Argentines?|Basques?|Croats?|Cypriots?|Czechs?|Danes?|Dutchm[ae]n|Englishm[ae]n|"
    r"Filipinos?|Finns?|Florentines?|Frenchm[ae]n|Greeks?|Icelanders?|Irishm[ae]n|Kazakhs?|Kyrgyz|Lao|"
    r"Londoners?|Malays?|Manx|Ottomans?|Poles?|Russians?|Scots?|Serbs?|Slovaks?|Slovenes?|"
    r"Soviets?|Spaniards?|Swedes?|Swiss|Tajiks?|Thais?|Turks?|Uzbeks?|Welshm[ae]n|\w+landers?"
)
"""English words for the people of a place, and what belongs to it."""
_DIRECTION = re.compile(r"^(?:(?:North|South|East|West)(?:ern)?|Central|Latin|Middle) (?=\w+$)")
"""What may stand before such a word: "South American"."""
_PEOPLE = re.compile(
    rf"(?:{_DEMONYM.pattern})|\w{{3,}}(?:ians?|eans?|ese)|(?:Engl|Ir|Scott|Span|Brit|Dan|Swed|Finn|Pol|"
    r"Turk|Jew|Kurd|Flem|Dut|Fren|Wel)(?:ish|sh|ch)|(?:Americ|Germ|Afric|Mexic|Rom|Cub|Kor)ans?|"
    r"Iraqis?|Israelis?|Pakistanis?|Saudis?|Yemenis?|Slavic|Arabic|Nordic|Celtic|Germanic|Catholics?|"
    r"Muslims?|Buddhists?|Hindus?|Jews?|Sikhs?|Protestants?"
)
"""Words of peoples that are hardly surnames."""
_POSSESSIVE = ("'s", "’s")
_ADJECTIVE = re.compile(r"\w-[a-z]{3,}$")


def without_possessive(text: str, title: str, language: str) -> str:
    """The text of an anchor without "'s", if its page is not called so.

    >>> without_possessive("Germany's", "Germany", "en")
    'Germany'
    >>> without_possessive("McDonald's", "McDonald's", "en")
    "McDonald's"
    """
    if language not in ENGLISH or not text[:-2] or not text.endswith(_POSSESSIVE):
        return text
    return text if title.partition(" (")[0].endswith(_POSSESSIVE) else text[:-2]


def is_adjective(text: str, title: str, language: str) -> bool:
    """Whether an anchor is made with a word in lower case, and no name: "German-born".

    Titles have such names: "Unix-like", "Ban Ki-moon"; not that of "Spanish-language".
    """
    if language not in ENGLISH or _ADJECTIVE.search(text) is None:
        return False
    plain = text.replace("-", " ").lower()
    return text.endswith("-language") or plain not in title.replace("-", " ").lower()


def is_demonym(text: str, title: str, language: str) -> bool:
    """Whether an anchor to a place is a word such as "French", and not the name of the place.

    It is none if the title has the word ("Japan" of "Empire of Japan", not "Soviet" of "Soviet
    Union"). The plural of a word of the title is one: "Safavids" of "Safavid dynasty". Only English
    is known to need it: many languages write such words in lower case, and then they are no names.

    Args:
        text: text of the anchor.
        title: title of the linked page.
        language: code of the language.
    """
    if language not in ENGLISH:
        return False
    word = _DIRECTION.sub("", text)
    title_words = _WORD.findall(title.lower())
    is_in_title = word.lower() in title_words
    if not is_in_title and word.lower().removesuffix("s") in title_words:
        return True
    if not _is_demonym_form(text, language):
        return False
    return not is_in_title or _DEMONYM.fullmatch(word) is not None


def is_ambiguous(text: str, title: str, language: str) -> bool:
    """Whether a word such as "Albanian" may mean a people, a language or a country.

    It depends on the sentence, so a link elsewhere on the page says nothing. A page whose title is
    the word itself ("Japan") is meant everywhere.
    """
    return _is_demonym_form(text, language) and text != title.partition(" (")[0]


def is_people(text: str, language: str) -> bool:
    """Whether a word is that of a people or a place for sure: "German", not "Davis" or "Reagan"."""
    return language in ENGLISH and _PEOPLE.fullmatch(text) is not None


def _is_demonym_form(text: str, language: str) -> bool:
    word = _DIRECTION.sub("", text)
    is_form = _DEMONYM.fullmatch(word) or _DEMONYM_FORM.fullmatch(word)
    return language in ENGLISH and is_form is not None
