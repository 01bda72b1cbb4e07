r"""Makes the tables in `ontology/data` from DBpedia's files and the paper's list of categories.

    python -m ontology.sources.make_tables --ontology ontology.owl.xz --mappings FOLDER \
        --names nerbert315.txt

FOLDER has `Mapping_xx.xml`, plain or packed, of each language that is shipped.

Sources: the DBpedia ontology and mappings wiki (CC BY-SA 3.0); Liu et al. 2021 (arXiv:2112.00405),
appendix B for the 315 names. The paper does not list its sets of 212 and 4 categories; the
functions `merge_to` and `coarse` have the rules that make ours.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from nerbert.storage.places import Place
from ontology.categories import ENTITY
from ontology.classes import NAMESPACE, ROOT, ClassTree, rows_of
from ontology.sources.infobox import InfoboxMapping

ALIASES = {
    "Place": "location",
    "DartsPlayer": "dartplayer",
    "GridironFootballPlayer": "footballplayer",
    "AmericanFootballPlayer": "footballplayer",
    "AmericanFootballTeam": "footballteam",
}
"""Classes whose name in the paper's list is not their own name in lower case."""

MERGED_NAMES = {"Tournament": "sportstournament"}
"""Parent -> name of its merged group, if the name is not the parent's own.

The paper's example (section 4.4) merges the tournaments into `sportstournament`.
"""

SPORT = ("Athlete", "SportsTeam", "SportsLeague", "SportsClub", "SportsEvent", "SportsTeamSeason")
"""Classes of sport. The groups below them are merged first: the paper's example is one of them."""

COARSE = {"Person": "person", "Place": "location", "Organisation": "organization"}


def nerbert315(tree: ClassTree, names: Iterable[str]) -> dict[str, str]:
    """Class -> its name in the paper's list, for the classes in the list."""
    listed = set(names) - {ENTITY}
    return {cls: name for cls in tree.names if (name := ALIASES.get(cls, cls.lower())) in listed}


def coarse(tree: ClassTree, classes: dict[str, str]) -> dict[str, str]:
    """Each of the 315 names -> person, location, organization or ENTITY, by its ancestors."""
    merged: dict[str, str] = {ENTITY: ENTITY}
    for cls, name in sorted(classes.items()):
        line = [cls, *tree.ancestors(cls)]
        merged.setdefault(name, next((COARSE[c] for c in line if c in COARSE), ENTITY))
    return merged


def merge_to(size: int, tree: ClassTree, classes: dict[str, str]) -> dict[str, str]:
    """Each of the 315 names -> one of `size` names. The most fine-grained names are merged.

    A group are the names of all leaf classes with the same parent; it is merged as a whole, and
    takes the name of the parent. Groups of sport come first, then those of the greatest depth below
    their kind, then the largest. A group that would leave fewer than `size` names is not merged.
    """
    by_name = {name: cls for cls, name in sorted(classes.items(), reverse=True)}
    inner = {parent for cls in classes for parent in tree.ancestors(cls)}
    groups: dict[str, list[str]] = {}
    for name, cls in by_name.items():
        for parent in tree.parents(cls)[:1] if cls not in inner else ():
            groups.setdefault(parent, []).append(name)

    def order(parent: str) -> tuple[bool, int, int, str]:
        is_sport = bool({parent, *tree.ancestors(parent)} & set(SPORT))
        return not is_sport, -tree.depth(parent), -len(groups[parent]), parent

    merged = {name: name for name in (ENTITY, *classes.values())}
    for parent in sorted((name for name in groups if len(groups[name]) > 1), key=order):
        name = MERGED_NAMES.get(parent) or classes.get(parent, parent.lower())
        tried = {**merged, **dict.fromkeys(groups[parent], name)}
        if len(set(tried.values())) >= size:
            merged = tried
    return merged


def equivalents(path: Place, tree: ClassTree) -> list[tuple[str, str]]:
    """Wikidata's classes that the ontology calls equivalent to one of its own, and that class.

    Of several, the most specific; those of `wikidata_more.tsv` are left out.
    """
    from rdflib import OWL, Graph  # takes 0.2 s; see ClassTree.from_owl

    graph = Graph()
    with path.open_decompressed() as file:
        graph.parse(data=file.read(), format="xml")
    by_class: dict[str, list[str]] = {}
    for cls, equivalent in graph.subject_objects(OWL.equivalentClass):
        item, name = str(equivalent).rpartition("/")[2], str(cls).removeprefix(NAMESPACE)
        if re.fullmatch(r"Q[1-9]\d*", item) and "wikidata" in str(equivalent) and name in tree:
            by_class.setdefault(item, []).append(name)
    shipped_items = {item for item, *_ in rows_of("wikidata_more.tsv")}
    rows = [(item, tree.most_specific(names) or "") for item, names in by_class.items()]
    return sorted(
        (row for row in rows if row[0] not in shipped_items), key=lambda row: int(row[0][1:])
    )


def infobox_rows(folder: Path, tree: ClassTree) -> list[list[str]]:
    """The mappings of all languages in a folder: language, template, and its cases in order.

    Templates that are mapped as in English are left out: the English mapping holds for every wiki.
    A class that the ontology does not have gives none.
    """
    paths = {re.split(r"[_.]", path.name)[1]: path for path in folder.glob("Mapping_*.xml*")}
    mappings = {code: InfoboxMapping.from_xml(Place(path)).cases for code, path in paths.items()}
    return [
        [
            *(code, name, case.parameter, case.operator, case.value),
            tree.known_name(case.class_name) or ROOT,
        ]
        for code, cases_of in sorted(mappings.items())
        for name, cases in sorted(cases_of.items())
        if code == "en" or cases != mappings["en"].get(name)
        for case in cases
    ]


def _write(path: Path, head: str, rows: Iterable[Sequence[str]]) -> None:
    lines = [f"# {head}", *("\t".join(row) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main(argv: Sequence[str] | None = None) -> None:
    """Writes the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for name in ("--ontology", "--mappings", "--names"):
        parser.add_argument(name, required=True)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent.parent / "data")
    options = parser.parse_args(argv)
    tree = ClassTree.from_owl(options.ontology)
    names = Path(options.names).read_text(encoding="utf-8").split()
    classes = nerbert315(tree, names)
    source = "Source: DBpedia ontology, CC BY-SA 3.0."
    _write(
        options.output / "classes.tsv",
        f"class, its parents, with those of corrections.tsv. {source}",
        ([name, " ".join(tree.parents(name))] for name in tree.names),
    )
    _write(
        options.output / "nerbert315.tsv",
        "class, its name in Liu et al. 2021 (appendix B). Others take their nearest ancestor's.",
        sorted(classes.items()),
    )
    merges = {"nerbert212": merge_to(212, tree, classes), "coarse4": coarse(tree, classes)}
    for file, table in merges.items():
        head = "name of the 315, the name it becomes"
        _write(options.output / f"{file}.tsv", head, sorted(table.items()))
    _write(
        options.output / "wikidata_classes.tsv",
        f"class of Wikidata, class by owl:equivalentClass. {source}",
        equivalents(options.ontology, tree),
    )
    _write(
        options.output / "infobox.tsv",
        "language, template, parameter, operator, value, class. Templates that are mapped as in "
        "English are left out. Source: DBpedia mappings, CC BY-SA 3.0.",
        infobox_rows(Path(options.mappings), tree),
    )


if __name__ == "__main__":
    main()
