import bz2

import pytest

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
        ("A (b)", "City"),
        None,
        None,
        None,
        ("Éclair", "Food"),
    ]


def test_cut_file_raises(tmp_path):
    path = tmp_path / "types.nt.bz2"
    path.write_bytes(bz2.compress(b"x\n" * 1000)[:-8])
    with pytest.raises(EOFError):
        list(read_instance_types(str(path)))
