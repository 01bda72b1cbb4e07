"""The wiki of a dump: its language and namespaces, which decide how wikitext is read."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files

from lxml import etree

from nerbert.commands.values import near
from ontology.titles import normal_title

DEFAULT_LINK_TRAIL = "a-z"
"""MediaWiki's link trail for a language without one of its own (MessagesEn.php)."""


@dataclass(frozen=True)
class Language:
    """A row of `data/languages.toml`; the comment at the top of that file describes the fields."""

    code: str
    link_trail: str = DEFAULT_LINK_TRAIL
    link_prefix: str = ""
    abbreviations: str = ""
    file: tuple[str, ...] = ()
    category: tuple[str, ...] = ()
    template: tuple[str, ...] = ()
    user: tuple[str, ...] = ()
    redirect: tuple[str, ...] = ()
    disambiguation: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    punkt: str | None = None


@cache
def _rows() -> dict[str, dict[str, str | list[str]]]:
    text = (files("pipeline.dump") / "data" / "languages.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


@cache
def language(code: str) -> Language:
    """Facts about the language with this code, such as "en"; MediaWiki's defaults if unknown."""
    row = _rows().get(code, {})
    fields = {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}
    return Language(code=code, **fields)  # type: ignore[arg-type]


@cache
def interwiki_prefixes() -> dict[str, str]:
    """Lower-case prefixes of links that leave a Wikipedia -> "languages" or "projects"."""
    text = (files("pipeline.dump") / "data" / "interwiki.toml").read_text(encoding="utf-8")
    groups = tomllib.loads(text)
    return {prefix: group for group, words in groups.items() for prefix in words.split()}


CANONICAL_NAMESPACES = {
    "media": -2,
    "special": -1,
    "talk": 1,
    "user": 2,
    "user talk": 3,
    "project": 4,
    "project talk": 5,
    "file": 6,
    "image": 6,
    "file talk": 7,
    "image talk": 7,
    "mediawiki": 8,
    "mediawiki talk": 9,
    "template": 10,
    "template talk": 11,
    "help": 12,
    "help talk": 13,
    "category": 14,
    "category talk": 15,
}
"""Names that work on every wiki. Source: MediaWiki, NamespaceInfo::CANONICAL_NAMES."""

WIKIPEDIA_NAMESPACES = {
    "wikipedia": 4,
    "wikipedia talk": 5,
    "wp": 4,
    "portal": 100,
    "portal talk": 101,
    "book": 108,
    "draft": 118,
    "timedtext": 710,
    "module": 828,
    "module talk": 829,
}
"""Names that Wikipedias add; used only for dumps without siteinfo."""

ARTICLE, TEMPLATE, CATEGORY, FILE = 0, 10, 14, 6


@dataclass(frozen=True)
class Site:
    """The wiki of a dump: facts that decide how its wikitext is read.

    Attributes:
        language: code such as "en".
        namespaces: pairs of a lower-case name or alias of a namespace, and its number.
        names: pairs of the number of a namespace, and its name in titles.
        first_letter: whether the first letter of every title is in upper case.
    """

    language: str
    namespaces: tuple[tuple[str, int], ...]
    names: tuple[tuple[int, str], ...]
    first_letter: bool = True

    @cached_property
    def namespace_numbers(self) -> dict[str, int]:
        """Lower-case name or alias of a namespace -> its number."""
        return dict(self.namespaces)

    @cached_property
    def namespace_names(self) -> dict[int, str]:
        """Number of a namespace -> its name in titles."""
        return dict(self.names)

    @classmethod
    def for_language(cls, code: str) -> Site:
        """The Wikipedia in a language, from the shipped tables."""
        facts = language(code)
        numbers = {**CANONICAL_NAMESPACES, **WIKIPEDIA_NAMESPACES}
        names = {4: "Wikipedia", 6: "File", 10: "Template", 14: "Category", 2: "User"}
        aliases_of = ((6, facts.file), (14, facts.category), (10, facts.template), (2, facts.user))
        for number, aliases in aliases_of:
            numbers.update((alias.lower(), number) for alias in aliases)
            names[number] = aliases[0] if aliases else names[number]
        names.update(
            (number, name.capitalize()) for name, number in numbers.items() if number not in names
        )
        return cls(code, tuple(sorted(numbers.items())), tuple(sorted(names.items())))

    @classmethod
    def from_siteinfo(
        cls, siteinfo: str | bytes | etree._Element, language: str | None = None
    ) -> Site:
        """Reads the facts from the `<siteinfo>` element of a dump.

        Args:
            siteinfo: the element, or XML text that contains it.
            language: code that overrides the one in the dump, which is sometimes wrong.

        Raises:
            ValueError: there is no complete siteinfo element, or it is not well-formed.
        """
        if isinstance(siteinfo, str):
            siteinfo = siteinfo.encode()
        data = siteinfo if isinstance(siteinfo, bytes) else etree.tostring(siteinfo)
        match = re.search(rb"<(?:\w+:)?siteinfo\b.*?</(?:\w+:)?siteinfo\s*>", data, re.DOTALL)
        if match is None:
            raise ValueError("no <siteinfo> element")
        try:
            root = etree.fromstring(match[0], xml_parser())
        except etree.XMLSyntaxError as error:
            raise ValueError(f"broken <siteinfo>: {error}") from None
        code = language or declared_language(data) or _database_language(root) or "en"
        base = cls.for_language(code)
        # The shipped tables stay as aliases: dumps omit English names, which work on every wiki.
        numbers, names = dict(base.namespaces), {}
        for element in root.iter("{*}namespace"):
            number, name = int(element.get("key", "0")), (element.text or "").replace("_", " ")
            if number:
                numbers[name.lower()] = number
                names[number] = name
        case = root.findtext("{*}case") or "first-letter"
        merged = {**dict(base.names), **names} if 6 not in names else names
        return cls(
            code,
            tuple(sorted(numbers.items())),
            tuple(sorted(merged.items())),
            case != "case-sensitive",
        )

    def split(self, title: str) -> tuple[int, str]:
        """Number of a title's namespace, and the rest of the title: "Kategorie:X" -> (14, "X")."""
        prefix, colon, name = title.partition(":")
        if colon:
            number = self.namespace_numbers.get(prefix.replace("_", " ").strip().lower())
            if number is not None:
                return number, name.strip(" _")
        return ARTICLE, title

    def title(self, text: str) -> str:
        """Normal form of a title, with the namespace's name in titles."""
        number, name = self.split(text)
        name = normal_title(name, first_letter=self.first_letter)
        return name if number == ARTICLE else f"{self.namespace_names.get(number, '')}:{name}"

    def interwiki(self, prefix: str) -> str | None:
        """Group ("languages" or "projects") of a lower-case prefix whose links leave the wiki."""
        return None if prefix in self.namespace_numbers else interwiki_prefixes().get(prefix)


ENGLISH = Site.for_language("en")


@cache
def xml_parser() -> etree.XMLParser:
    """A parser that resolves no entities and loads no other files."""
    return etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=True)


def declared_language(head: bytes) -> str | None:
    """The `xml:lang` of the start tag `<mediawiki>` of a dump; None if it has none."""
    match = re.search(rb"<mediawiki\b[^>]*\bxml:lang\s*=\s*[\"']([\w-]+)", head)
    return match[1].decode() if match else None


def database(head: bytes, name: str) -> str | None:
    """A wiki's database, such as enwiki, by siteinfo or the file's name; None if unknown."""
    if match := re.search(rb"<dbname>(\w+)</dbname>", head):
        return match[1].decode()
    if match := re.search(rb"<base>https?://([a-z-]+)\.wikipedia\.org/", head):
        return match[1].decode().replace("-", "_") + "wiki"
    named = re.match(r"([a-z_]{2,16}wiki)[-.]", name)
    return named[1] if named else None


_PROJECTS = re.compile(
    r"\w*(?:wiktionary|wikibooks|wikinews|wikiquote|wikisource|wikiversity|wikivoyage)"
    r"|(?:commons|wikidata|species|meta|mediawiki|incubator|outreach|foundation)wiki"
)
"""Databases of Wikimedia's other projects, whose pages are about no entities."""


def is_other_project(wiki: str | None) -> bool:
    """Whether a database is of another project of Wikimedia than Wikipedia."""
    return wiki is not None and _PROJECTS.fullmatch(wiki) is not None


def is_stub(head: bytes, name: str) -> bool:
    """Whether a dump has the pages' facts without their text, by its first bytes or its name."""
    texts = re.findall(rb"<text\b[^>]*?(/?)>", head)
    return "-stub-" in name or (len(texts) > 2 and all(texts))


def check_language(code: str, wiki: str | None, head: bytes, name: str) -> None:
    """Checks a language that a user gave against what a dump says.

    Some dumps name a wrong wiki; then the file's name must say the language.

    Args:
        code: the language.
        wiki: database of the dump.
        head: first bytes of the dump.
        name: name of its file.

    Raises:
        ValueError: no Wikipedia has this language, or the dump is of another one.
    """
    languages = {declared_language(head), _language_of(wiki)} - {None}
    prefixes = interwiki_prefixes()
    if code not in languages and code not in _rows() and prefixes.get(code) != "languages":
        raise ValueError(f"no Wikipedia has this language{near(code, [*_rows()])}")
    by_name = re.match(r"[a-z_]+(?=(?:wiki)?[-.])", name)
    if (
        wiki is not None
        and code not in languages
        and not (by_name and by_name[0].removesuffix("wiki").replace("_", "-") == code)
    ):
        raise ValueError(
            f"the dump says {wiki}; leave --language out, or call the file {code}wiki-... if that "
            "is wrong"
        )


def _database_language(root: etree._Element) -> str | None:
    return _language_of(root.findtext("{*}dbname"))


def _language_of(wiki: str | None) -> str | None:
    """The language of the Wikipedia with a database; None if the database does not say it."""
    match = re.fullmatch(r"(\w+?)wiki", wiki or "")
    return match[1].replace("_", "-") if match else None
