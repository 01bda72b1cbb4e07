"""The class of a page by its infobox, by the rules of DBpedia's mappings wiki."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import mwparserfromhell
from lxml import etree

from nerbert.storage.places import Place
from ontology.classes import ROOT, ClassTree, lines_of, rows_of
from ontology.titles import normal_title


@dataclass(frozen=True)
class Case:
    """One condition of a mapping: `operator` is isSet, equals, contains or otherwise."""

    parameter: str
    operator: str
    value: str
    class_name: str

    def holds(self, arguments: Mapping[str, str]) -> bool:
        """Whether a template with these arguments meets the condition; case is ignored.

        Source: DBpedia extraction framework, ConditionMapping.scala.
        """
        if self.operator == "otherwise":
            return True
        text = arguments.get(self.parameter, "").lower().strip()
        if self.operator == "isSet":
            return bool(text)
        value = self.value.lower()
        return text == value if self.operator == "equals" else value in text


class InfoboxMapping:
    """Template -> cases in order. The first case that holds gives the class.

    Attributes:
        cases: the cases of each template that the mapping has.
    """

    def __init__(self, cases: Mapping[str, Sequence[Case]]) -> None:
        self.cases = {name: tuple(rows) for name, rows in cases.items()}
        shipped_cases = {
            name: rows for name, rows in _shipped_cases().items() if name not in self.cases
        }
        all_cases = {**shipped_cases, **self.cases} if self.cases else {}
        self._exact = all_cases
        # Editors write the names in several cases, and the redirect may not be in the dump.
        self._folded = {name.lower(): all_cases[name] for name in sorted(all_cases, reverse=True)}

    @classmethod
    def shipped(cls, language: str = "en") -> InfoboxMapping:
        """The English mapping, and before it that of a language if the shipped table has one.

        Many wikis have templates with English names beside their own.
        """
        return _shipped(language if language in mapped_languages() else "en")

    @classmethod
    def empty(cls) -> InfoboxMapping:
        """A mapping without templates."""
        return cls({})

    @classmethod
    def from_xml(cls, path: Place) -> InfoboxMapping:
        """Reads one of DBpedia's `Mapping_xx.xml` files (also .xz, .bz2, .gz).

        Raises:
            ValueError: the file is not such an export, or has no mapping.
        """
        parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
        try:
            with path.open_decompressed() as file:
                tree = etree.parse(file, parser)
        except etree.XMLSyntaxError as error:
            raise ValueError(f"{path}: not a mappings export ({error})") from None
        cases: dict[str, list[Case]] = {}
        redirects: dict[str, str] = {}
        for page in tree.iter("{*}page"):
            title = page.findtext("{*}title") or ""
            text = page.findtext("{*}revision/{*}text") or ""
            name = template_name(title.partition(":")[2])
            if text.lstrip().lower().startswith("#redirect"):
                target = text.partition("[[")[2].partition("]]")[0].partition(":")[2]
                redirects[name] = template_name(target)
            elif name and (rows := _parse_mapping(text)):
                cases[name] = rows
        for name, target in redirects.items():
            if target in cases:
                cases.setdefault(name, cases[target])
        if not cases:
            raise ValueError(f"{path}: it has no TemplateMapping")
        return cls(cases)

    @property
    def templates(self) -> list[str]:
        """Names of the mapped templates, sorted."""
        return sorted(self.cases)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._cases_of(name) is not None

    def _cases_of(self, name: str) -> tuple[Case, ...] | None:
        """Cases of a template; if there is none of this name, of its name in another case."""
        return self._exact.get(name) or self._folded.get(name.lower())

    def class_of(
        self,
        templates: Iterable[tuple[str, Sequence[str]]],
        redirects: Mapping[str, str] | None = None,
    ) -> str | None:
        """Class by the first mapped template of a page; None if no template gives one.

        A template gives no class if it maps to owl:Thing, or if none of its conditions holds.

        Args:
            templates: name and arguments ("name=value") of the page's templates, in order.
            redirects: old name -> new name of renamed templates.
        """
        for name, arguments in templates:
            cases = self._cases_of(resolve_redirect(name, redirects or {}))
            if cases is None:
                continue
            values = dict(argument.split("=", 1) for argument in arguments if "=" in argument)
            matching = next((case for case in cases if case.holds(values)), None)
            if matching is not None and matching.class_name != ROOT:
                return matching.class_name
        return None


def template_name(title: str) -> str:
    """Normal form of a template's name, without namespace."""
    return normal_title(title)


def resolve_redirect(name: str, redirects: Mapping[str, str]) -> str:
    """The end of a chain of redirects from `name`; in a cycle the last name before it repeats."""
    visited = {name}
    while (following := redirects.get(name)) is not None and following not in visited:
        visited.add(following)
        name = following
    return name


def _parse_mapping(text: str) -> list[Case]:
    """Cases of a mapping page. A plain TemplateMapping is a single case "otherwise"."""
    code = mwparserfromhell.parse(text, skip_style_tags=True)
    for template in code.filter_templates(recursive=False):
        kind = str(template.name).strip()
        if kind == "TemplateMapping":
            return _cases("", "otherwise", "", template)
        if kind == "ConditionalMapping" and template.has("cases"):
            conditions = template.get("cases").value.filter_templates(recursive=False)
            return [case for condition in conditions for case in _condition(condition)]
    return []


def _condition(condition: mwparserfromhell.nodes.Template) -> list[Case]:
    if str(condition.name).strip() != "Condition" or not condition.has("mapping"):
        return []
    mappings = condition.get("mapping").value.filter_templates(recursive=False)
    parameter, operator, value = (
        _text(condition, name) for name in ("templateProperty", "operator", "value")
    )
    for mapping in mappings:
        if str(mapping.name).strip() == "TemplateMapping":
            return _cases(parameter, operator, value, mapping)
    return []


def _cases(
    parameter: str, operator: str, value: str, mapping: mwparserfromhell.nodes.Template
) -> list[Case]:
    class_name = _text(mapping, "mapToClass")
    return [Case(parameter, operator, value, class_name)] if class_name else []


def _text(template: mwparserfromhell.nodes.Template, name: str) -> str:
    if not template.has(name):
        return ""
    text = template.get(name).value.strip_code().replace("\u200e", "")  # left-to-right marks
    return " ".join(text.split())


@cache
def _shipped_cases() -> dict[str, tuple[Case, ...]]:
    rows = rows_of("infobox_more.tsv")
    return {name: (Case("", "otherwise", "", class_name),) for name, class_name, _ in rows}


@cache
def _shipped(language: str) -> InfoboxMapping:
    cases = {**_cases_in("en"), **_cases_in(language)}
    tree = ClassTree.shipped()
    for name, rows in _shipped_cases().items():
        above = (ROOT, *tree.ancestors(rows[0].class_name))
        class_names = {case.class_name for case in cases.get(name, ())}
        # Ours corrects, or is more specific.
        if class_names and (rows[0].class_name == ROOT or class_names <= {*above}):
            cases[name] = [*rows]
    return InfoboxMapping(cases)


def _cases_in(language: str) -> dict[str, list[Case]]:
    cases: dict[str, list[Case]] = {}
    for line in _table()[language]:
        name, *facts = line.split("\t")
        cases.setdefault(name, []).append(Case(*facts))
    return cases


def mapped_languages() -> list[str]:
    """Codes of the languages with a shipped mapping, sorted."""
    return sorted(_table())


@cache
def _table() -> dict[str, list[str]]:
    """Language -> rows of the shipped table, each without the language."""
    rows: dict[str, list[str]] = {}
    for line in lines_of("infobox.tsv"):
        language, _, row = line.partition("\t")
        rows.setdefault(language, []).append(row)
    return rows
