"""Whether the text of an anchor is a name, by its letters."""

from __future__ import annotations

import re
from collections.abc import Callable

from pipeline.wikitext.english import ENGLISH, is_demonym
from pipeline.wikitext.lexicon import has_proper_noun

NOUNS_IN_UPPER_CASE = frozenset("als bar de frr ksh lb nds pdc pfl stq".split())
"""Codes of languages that write all nouns with a capital: German and its relatives."""

WITHOUT_CAPITALS = frozenset(
    "am anp ar arc ary arz as awa azb bh bn bo bpy ckb dty dv dz fa gan glk gom gu he hi hyw ja ka "
    "km kn ko ks lo lrc lzh mai ml mnw mr my mzn ne new nqo or pa pnb ps sa sat sd shn si skr ta "
    "tcy te th ti ug ur wuu xmf yi yue zh zh-classical zh-yue".split()
)
"""Codes of languages in scripts without capitals."""

SURNAME_PARTICLES = frozenset(
    "af al bin da das de degli dei del della den der di do dos du el ibn la las le ten ter "
    "van von zu zum zur".split()
)
"""Words before a surname that belong to it: "de Gaulle"."""
_PARTICLES = SURNAME_PARTICLES | set(
    "a abu ad am an ap as at av ben d dal des e en f i in les lo los o of san st t the til to "
    "tot ur vom y".split()
)
"""Words in lower case inside of names: "de Gaulle", "Battle of the Bulge"."""

_DATE = re.compile(
    r"\W*\d+(?:s| ?AD| ?BCE?| ?CE)?\W*|"
    r"(?:\d+(?:st|nd|rd|th)? )?(?:January|February|March|April|May|June|July|August|September|"
    r"October|November|December)(?: \d+)?(?:, \d+)?"
)
"""Years, in any language, and days and months in English. Elsewhere months are in lower case."""

_DAY = re.compile(r"(?:[1-9]|[12]\d|3[01])(?:[.ºª°]|er|-a)? (?:d[e']|tháng)?")
"""How titles of days ("25 серпня", "8 de abril") begin; what follows is a month."""
_CENTURY = re.compile(
    r"[IVXLC]+(?:er|e|è|ème|º|ª|\.)? (?:століття|сторіччя|век|вијек|стагоддзе|wiek|století|"
    r"storočie|stoljeće|stoletje|siècle|secolo|siglo|século|segle|secol|mendea|gadsimts|"
    r"jarcento|тисячоліття|тысячелетие|millénaire|millennio|milenio|milénio)\b"
)
""""XX століття", "XVIIIe siècle"."""
_UNIT_OF_TIME = re.compile(
    r"(?:1[1-9]|20)\d0(?:['’.–-] ?)?[^\W\d_]+(?: [^\W\d_]+)?|"
    r"(?:紀元前|公元前|前|기원전 )?(?:\d+ ?(?:年代?|月|日|世紀|世纪|년대?|월|일|세기) ?)+|"
    r"[\u4e00-\u9fff]{2}(?:\d+|元)年"
)
"""Decades ("1980-х", "1980er Jahre"), years, days and centuries of East Asia ("1956年"), and years
of an emperor ("明治4年")."""
CALENDAR = {
    "en": frozenset(
        "January February March April May June July August September October November December "
        "Monday Tuesday Wednesday Thursday Friday Saturday Sunday BC BCE AD CE AM PM".split()
    ),
    "el": frozenset(
        "Ιανουαρίου Φεβρουαρίου Μαρτίου Απριλίου Μαΐου Ιουνίου Ιουλίου Αυγούστου Σεπτεμβρίου "
        "Οκτωβρίου Νοεμβρίου Δεκεμβρίου Ιανουάριο Φεβρουάριο Μάρτιο Απρίλιο Μάιο Ιούνιο Ιούλιο "
        "Αύγουστο Σεπτέμβριο Οκτώβριο Νοέμβριο Δεκέμβριο".split()
    ),
    "id": frozenset(
        "Januari Februari Maret April Mei Juni Juli Agustus September Oktober November Desember "
        "SM".split()
    ),
    "de": frozenset(
        "Januar Jänner Februar März April Mai Juni Juli August September Oktober November Dezember "
        "Montag Dienstag Mittwoch Donnerstag Freitag Samstag Sonntag Chr Uhr".split()
    ),
    "tr": frozenset(
        "Ocak Şubat Mart Nisan Mayıs Haziran Temmuz Ağustos Eylül Ekim Kasım Aralık".split()
    ),
}
"""Words of dates, in languages that write them with a capital."""
_MONTHS = frozenset().union(*CALENDAR.values())
# A quick look before the patterns of dates: Arabic and Roman figures.
_MAY_BEGIN_A_DATE = frozenset("0123456789IVXLC")
_UNITS_OF_TIME = frozenset("年代月日紀纪년대월일기")

_WITHOUT_LETTERS = re.compile(r"[\W\d_]+")

# As they are typed before a name: "'t Hooft".
_APOSTROPHES = "'’‘`"


def is_name(text: str, title: str, language: str) -> bool:
    """Whether an anchor may be a name, in a language that writes only names with a capital.

    It is none if its first word begins with a letter in lower case ("tennis", "at the time"), or
    its last word does ("American citizen"), or if it is a date that leads to a date, or has no
    letter ("2004" to "Orange Revolution", not "2001" to "2001: A Space Odyssey"). Exceptions are
    words with a capital inside ("iPhone", "d'Alembert", "al-Qaeda"), particles before a name ("de
    Gaulle"), and titles of pages ("Homo sapiens"; see `has_common_word`). Scripts without case have
    no letters in lower case, so all anchors are names, except years.

    Args:
        text: text of the anchor.
        title: title of the linked page.
        language: code of the wiki's language.
    """
    # Nearly all anchors are decided by the first and the fourth of these conditions.
    if text.islower() and text[0].isalpha():
        return False
    if text[:1] in _MAY_BEGIN_A_DATE and _is_date(title):
        return False
    if (text[:1].isdigit() or text[-1:] in _UNITS_OF_TIME) and _UNIT_OF_TIME.fullmatch(text):
        return False
    if text[:1].isupper() and " " not in text:
        return not (_DATE.fullmatch(text) and _DATE.fullmatch(title))
    is_title = title == text or title.startswith((f"{text} (", f"{text}:"))
    if _WITHOUT_LETTERS.fullmatch(text) and not is_title:
        return False
    # A dash between words is no word: "Bosnia – Herzegovina".
    words = [word for word in text.split() if any(map(str.isalnum, word))]
    if not words or (_DATE.fullmatch(text) and _DATE.fullmatch(title)):
        return False
    if _begins_low(text):
        return has_common_word(text, title, language)
    while len(words) > 1 and words[0] in _PARTICLES:
        words.pop(0)
    if _is_lower(words[0]):
        return False
    return len(words) == 1 or not _is_lower(words[-1]) or _is_titled(text, title, language)


def has_low_nouns(language: str) -> bool:
    """Whether names of a language have common nouns in lower case: "mer Noire", "Чорне море"."""
    return language not in ENGLISH and language not in NOUNS_IN_UPPER_CASE


def has_common_word(text: str, title: str, language: str) -> bool:
    """Whether a title begins with a common noun, and stands in a text in lower case: "mer Noire".

    Where English writes "Black Sea", most languages have no capital. In English such texts are
    topics ("history of Japan"), in German they begin with an adjective.
    """
    if not has_low_nouns(language):
        return False
    return _begins_low(text) and not text.islower() and _is_titled(text, title, language)


def begins_with_number(text: str, title: str, language: str) -> bool:
    """Whether a text is a name that begins with a number: "1916 Irish census", not "9 mm"."""
    words = text.split(" ")[1:] if text[:1].isdigit() else []
    return any(word[:1].isupper() for word in words) and is_name(text, title, language)


def title_at_end(text: str, title: str) -> str:
    """The title that a text in lower case ends with: "Monaco" of "ville de Monaco"; "" for none.

    "Hà Nội" in "tỉnh Hà Nội", the province, is none: a title with a bracket, "Hà Nội (tỉnh)", says
    that the name alone means something else.
    """
    is_its_end = title[:1].isupper() and text.endswith(f" {title}") and _begins_low(text)
    return title if is_its_end else ""


def _begins_low(text: str) -> bool:
    """Whether the first word of a text is in lower case, and no particle of a name."""
    word = text.partition(" ")[0]
    return _is_lower(word) and word not in _PARTICLES


def _is_titled(text: str, title: str, language: str) -> bool:
    """Whether a text is a title, with its first letter in either case, or another case of it.

    "Чорного моря" is one of "Чорне море". English and German titles have no such forms: "Turing
    machines" are more than one.
    """
    plain = title.partition(" (")[0]
    if text[1:] == plain[1:]:
        return True
    if not has_low_nouns(language):
        return False
    words, titled = text.lower().split(), plain.lower().split()
    return len(words) == len(titled) and all(map(_are_forms, words, titled))


def _are_forms(word: str, title_word: str) -> bool:
    """Whether two words, in lower case, differ by no more than an ending."""
    shorter, longer = sorted(map(len, (word, title_word)))
    stem = max(longer - _LONGEST_ENDING, min(_SHORTEST_STEM, shorter))
    return stem <= shorter and word[:stem] == title_word[:stem]


def _is_date(title: str) -> bool:
    """Whether a title is that of a day of the year or of a century, in any language."""
    if _CENTURY.match(title):
        return True
    match = _DAY.match(title)
    month = title[match.end() :].strip() if match else ""
    is_month = month.islower() or month in _MONTHS or month.endswith("ου")
    return " " not in month and (is_month or month.isdigit())


_WORD = re.compile(r"\w+")
_LONGEST_ENDING = _SHORTEST_STEM = 3
_STEM = 5
"""Words that begin with the same letters are forms of one word: "Democrat", "Democratic"."""


def shares_word(surface: str, title: str) -> bool:
    """Whether a text has a word of a title, or its beginning, or is made of its initials.

    Other texts are of this link only: "the North" may lead to the United States.

    >>> shares_word("Democrats", "Democratic Party")
    True
    >>> shares_word("U.S.", "United States")
    True
    """
    if surface in title or title in surface:  # in scripts without spaces a text is one word
        return True
    words = _WORD.findall(title.lower())
    stems = {word[:_STEM] for word in words}
    if any(word[:_STEM] in stems for word in _WORD.findall(surface.lower())):
        return True
    letters = [char for char in surface.lower() if char.isalnum()]
    return len(letters) > 1 and "".join(letters) in "".join(word[0] for word in words)


def are_initials(text: str, name: str) -> bool:
    """Whether a text in upper case is made of the initials of a name, or of its capitalised words.

    >>> are_initials("FBI", "Federal Bureau of Investigation")
    True
    >>> are_initials("EOM", "end of message")
    True
    """
    letters = [word[0] for word in _WORD.findall(name)]
    return text in ("".join(filter(str.isupper, letters)), "".join(letters).upper())


def named_target(text: str, target: str) -> str:
    """The title that a text names, by the target of its link or redirect.

    A section may be about something else than its page, and has no class of its own: "Tom Fox" for
    "The Lamps#Members" is no band. Where the text has a word of the title, it is that of the page.
    """
    title, has_section, _ = target.partition("#")
    return target if has_section and not shares_word(text, title) else title


_DESCRIPTION = re.compile(
    r" (?!people|languages?\b|[a-z]+(?:us|um|is|ii|ae|a)\b)[a-z]+(?: \([^)]*\))?$"
)
"""How English titles end that are no names, unless their pages have a class: "Turing machine".
"Tat people", "Haida language" and "Homo erectus" are names."""

SURE, NO_PLACE, NO_ENTITY = range(3)
"""Doubts about a name: none; it is none if it leads to a place, or to a page without class."""


def doubt(
    text: str,
    title: str,
    language: str,
    *,
    plain: Callable[[str], bool] = lambda word: False,
    lexicon: bool = False,
    is_concept: bool = False,
) -> int:
    """The reason why an anchor with the letters of a name may be none.

    English words such as "French" are no names of places, and texts that lead to titles in lower
    case ("GDP" to "Gross domestic product") are mostly none, nor are German texts that end
    with a common noun, and Japanese ones without a proper noun. In other languages texts that begin
    with a common noun may be topics ("histoire de France"), and a word is no name of a place if the
    page has it in lower case, too ("Німецький" and "німецький", to Germany).

    Args:
        text: text of the anchor.
        title: title of the linked page.
        language: code of the language.
        plain: whether the page has a word in lower case.
        lexicon: whether the Japanese lexicon is used; see `pipeline.wikitext.lexicon`.
        is_concept: whether it may be a common noun, which some languages write with a capital.

    Returns:
        SURE, NO_PLACE or NO_ENTITY.
    """
    if is_concept or (language in ENGLISH and _DESCRIPTION.search(title)):
        return NO_ENTITY
    if (lexicon and not has_proper_noun(text)) or has_common_word(text, title, language):
        return NO_ENTITY
    if language in ENGLISH:
        return NO_PLACE if is_demonym(text, title, language) else SURE
    is_form = text.isalpha() and not title.startswith(text)
    return NO_PLACE if is_form and not text.isupper() and plain(text.lower()) else SURE


def _is_lower(word: str) -> bool:
    """Whether the first letter of a word is in lower case, and so are the others."""
    letters = word.strip(_APOSTROPHES)
    first = next((char for char in letters if char.isalnum()), "")
    return first.islower() and not any(char.isupper() for char in letters)
