import bz2

import pytest

from ontology.classes import NAMESPACE
from ontology.instance_types import read_instance_types

RDF = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"


def test_lines_of_all_kinds(tmp_path):
    lines = [
        f"<http://dbpedia.org/resource/A_%28b%29> {RDF} <http://dbpedia.org/ontology/City> .",
        "# comment",
        "@prefix x: <y> .",
        "",
        f"<http://dbpedia.org/resource/A> {RDF} <http://schema.org/City> .",
        "<http://dbpedia.org/resource/A> <http://x/label> <http://dbpedia.org/ontology/City> .",
        "broken line",
        f"<http://xx.dbpedia.org/resource/\\u00C9clair> {RDF} <http://dbpedia.org/ontology/Food> .",
    ]
    path = tmp_path / "types.ttl.bz2"
    path.write_bytes(bz2.compress("\n".join(lines).encode()))
    assert list(read_instance_types(str(path))) == [
        ("en", "A (b)", "City"),
        None,
        None,
        None,
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
    assert list(read_instance_types(str(path))) == [statement]


def test_cut_file_raises(tmp_path):
    path = tmp_path / "types.nt.bz2"
    path.write_bytes(bz2.compress(b"x\n" * 1000)[:-8])
    with pytest.raises(EOFError):
        list(read_instance_types(str(path)))
