import bz2
from contextlib import nullcontext

import pytest

from nerbert.storage.places import Place
from ontology.classes import NAMESPACE
from ontology.sources import types as types_module
from ontology.sources.types import UNREADABLE, UnreadableError, read_instance_types
from tests.helpers.lazy import lazy

rdflib = lazy("rdflib")
RDF = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"


def test_lines_of_all_kinds(tmp_path):
    lines = [
        f"<http://dbpedia.org/resource/A_%28b%29> {RDF} <http://dbpedia.org/ontology/City> .",
        "# comment",
        "@prefix x: <y> .",
        "",
        *[f"<http://x> {RDF} <http://y> ."] * 200,
        f"<http://dbpedia.org/resource/A> {RDF} <http://schema.org/City> .",
        "<http://dbpedia.org/resource/A> <http://x/label> <http://dbpedia.org/ontology/City> .",
        "broken line",
        f"<http://xx.dbpedia.org/resource/\\u00C9clair> {RDF} <http://dbpedia.org/ontology/Food> .",
    ]
    path = tmp_path / "types.ttl.bz2"
    path.write_bytes(bz2.compress("\n".join(lines).encode()))
    assert list(read_instance_types(Place(path))) == [
        ("en", "A (b)", "City"),
        *[None] * 202,
        UNREADABLE,
        ("xx", "Éclair", "Food"),
    ]


ITEM, DIRECT = "http://www.wikidata.org/entity/", "http://www.wikidata.org/prop/direct/"


@pytest.mark.parametrize(
    ("line", "statement"),
    [
        (
            f"<http://wikidata.dbpedia.org/resource/Q42> {RDF} <{NAMESPACE}Writer> .",
            ("wikidata", "Q42", "Writer"),
        ),
        (f"<{ITEM}Q42> {RDF} <{NAMESPACE}Writer> .", ("wikidata", "Q42", "Writer")),
        (f"<{ITEM}Q42> {RDF} <{ITEM}Q5> .", ("wikidata", "Q42", "Q5")),
        (f"<{ITEM}Q42> <{DIRECT}P31> <{ITEM}Q5> .", ("wikidata", "Q42", "Q5")),
        (f"<{ITEM}Q515> <{DIRECT}P279> <{ITEM}Q7930989> .", ("subclass", "Q515", "Q7930989")),
        (
            f"<http://uk.dbpedia.org/resource/Київ> {RDF} <{NAMESPACE}City> .",
            ("uk", "Київ", "City"),
        ),
        (f"<http://wikidata.dbpedia.org/resource/P31> {RDF} <{NAMESPACE}City> .", None),
        (f"<{ITEM}Q42> <{DIRECT}P21> <{ITEM}Q6581097> .", None),
        (f"<{ITEM}Q0> {RDF} <{NAMESPACE}Writer> .", None),
        (f"<{ITEM}Q515> <{DIRECT}P279> <{NAMESPACE}City> .", None),
        (f"<http://dbpedia.org/resource/A> <{DIRECT}P31> <{ITEM}Q5> .", None),
    ],
)
def test_wikidatas_items_and_other_languages(tmp_path, line, statement):
    path = tmp_path / "types.nt"
    path.write_text(f"# comment\n{line}\n", encoding="utf-8")
    assert list(read_instance_types(Place(path))) == [statement]


def test_cut_file_raises(tmp_path):
    path = tmp_path / "types.nt.bz2"
    path.write_bytes(bz2.compress(b"x\n" * 1000)[:-8])
    with pytest.raises(EOFError):
        list(read_instance_types(Place(path)))


SUBJECTS = [f"http://dbpedia.org/resource/Page_{n}" for n in range(40)]
TYPES = [f"{NAMESPACE}{name}" for name in ("City", "Person", "Scientist")]
PREFIXES = f"@prefix dbo: <{NAMESPACE}> .\n@prefix rdf: <{RDF[1:-5]}> .\n"


def turtle_forms():
    """The same statements in forms of Turtle that are not one triple a line."""
    rows = list(zip(SUBJECTS, TYPES * 14, strict=False))
    short = [(subject, "dbo:" + kind.removeprefix(NAMESPACE)) for subject, kind in rows]
    lines = [f"<{subject}> {RDF} <{kind}> ." for subject, kind in rows]
    return {
        "prefixes": PREFIXES + "".join(f"<{s}> rdf:type {k} .\n" for s, k in short),
        "a": "".join(f"<{s}> a <{k}> .\n" for s, k in rows),
        "commas": "".join(f"<{s}> {RDF} <{k}>,\n  <http://schema.org/Thing> .\n" for s, k in rows),
        "semicolons": "".join(f'<{s}> {RDF} <{k}> ;\n <http://x/y> "z. <a>" .\n' for s, k in rows),
        "two on a line": " ".join(lines[:20]) + "\n" + " ".join(lines[20:]),
        "base": "@base <http://dbpedia.org/resource/> .\n"
        + "".join(f"<{s.rpartition('/')[2]}> a <{k}> .\n" for s, k in rows),
        "carriage returns": "\r".join(lines),
        "spaces": "".join(f"\t<{s}>\n{RDF}\n\n<{k}>\n.\n" for s, k in rows),
        "only the last differs": "\n".join([*lines[:-1], lines[-1].replace(RDF, "a")]),
        "byte order mark": "\ufeff" + "".join(f"<{s}> a <{k}> .\n" for s, k in rows),
    }


@pytest.mark.parametrize("name", turtle_forms())
def test_every_form_of_turtle_as_rdflib(tmp_path, name):
    path = tmp_path / "types.ttl"
    path.write_bytes(turtle_forms()[name].encode())
    expected = {("en", f"Page {n}", TYPES[n % 3].removeprefix(NAMESPACE)) for n in range(40)}
    text = turtle_forms()[name].removeprefix("\ufeff").replace("\r", "\n")
    graph = rdflib.Graph().parse(data=text, format="turtle")
    typed = [triple for triple in graph if str(triple[2]).startswith(NAMESPACE)]
    assert len(typed) == len(expected)
    found = list(read_instance_types(Place(path)))
    assert {statement for statement in found if statement} == expected
    assert len(found) == len(graph)  # so by rdflib, which sees no lines


@pytest.mark.parametrize("start", ["", "\ufeff"])
@pytest.mark.parametrize("end", ["\n", "\r\n", " # City\n", "\t\n\n"])
def test_lines_are_not_given_to_rdflib(tmp_path, monkeypatch, start, end):
    monkeypatch.setattr(types_module, "_read_turtle", None)
    path = tmp_path / "types.nt"
    lines = [f"<{s}> {RDF} <{k}> .{end}" for s, k in zip(SUBJECTS, TYPES * 14, strict=False)]
    lines[7:7] = [
        f'<{SUBJECTS[0]}> <http://x/label> "a \\"quote\\" . <b>"@en .{end}',
        f"_:b1 {RDF} <{TYPES[0]}> .{end}",
        f"<{SUBJECTS[0]}> {RDF} <{TYPES[0]}> <http://graph> .{end}",
    ]
    path.write_bytes((start + "".join(lines)).encode())
    found = list(read_instance_types(Place(path)))
    assert len(found) == 43
    assert sum(statement is None for statement in found) == 2
    assert UNREADABLE not in found


@pytest.mark.parametrize(("bad", "fails"), [(20, False), (40, True)])
def test_the_share_of_unreadable_lines(tmp_path, bad, fails):
    """The first lines are triples, and bad ones follow between good ones."""
    path = tmp_path / "types.nt"
    good = f"<{SUBJECTS[0]}> {RDF} <{TYPES[0]}> .\n"
    path.write_text(good * 1500 + (good + "<x> broken\n") * bad + good * 1000)
    found = []
    with pytest.raises(UnreadableError) if fails else nullcontext() as raised:
        for statement in read_instance_types(Place(path)):
            found.append(statement)
    assert found.count(UNREADABLE) == bad
    assert found.count(("en", "Page 0", "City")) == 2500 + bad
    if fails:
        assert str(raised.value) == "40 of its 2,580 lines are no triples"


@pytest.mark.parametrize(
    "content", ["<!DOCTYPE html>\n<p>Log in</p>\n", "x" * (3 << 20), "a b c\n" * 9]
)
def test_no_triples_at_all(tmp_path, content):
    path = tmp_path / "types.ttl"
    path.write_text(content)
    with pytest.raises(UnreadableError, match="neither lines of triples nor Turtle"):
        list(read_instance_types(Place(path)))
