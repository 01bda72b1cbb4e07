"""`nerbert fetch types` against a local server laid out as DBpedia's downloads."""

import bz2

import pytest

from nerbert.commands.table import main

MAPPED, WIKIDATA = "mappings/instance-types", "wikidata/instance-types"


def types(language):
    return f"instance-types_lang={language}_specific.ttl.bz2"


@pytest.fixture
def dbpedia(mirror):
    old, new = bz2.compress(b"old"), bz2.compress(b"new")
    mirror.add_release(MAPPED, "2022.09.01", {types("uk"): old, types("vi"): old})
    mirror.add_release(MAPPED, "2022.12.01", {types("uk"): new})
    mirror.add_release(WIKIDATA, "2022.12.01", {"instance-types_specific.ttl.bz2": new}, False)
    mirror.files["/mappings/Mapping_uk.xml"] = b"<mediawiki/>"
    mirror.files["/ontology.owl"] = b"<rdf/>"
    return mirror


def fetch(mirror, capsys, folder, *flags):
    code = main(["fetch", "types", "--mirror", mirror.url, "--output", str(folder), *flags])
    return code, *capsys.readouterr()


def test_a_language(dbpedia, capsys, tmp_path):
    code, out, err = fetch(dbpedia, capsys, tmp_path, "--language", "uk")
    assert code == 0, err
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != ".lock") == sorted(
        [types("uk"), "instance-types_specific.ttl.bz2", "Mapping_uk.xml", "ontology.owl"]
    )
    assert bz2.decompress((tmp_path / types("uk")).read_bytes()) == b"new"
    assert f"{types('uk')}: {len(bz2.compress(b'new'))} bytes, sha256" in err
    assert "Mapping_uk.xml: 12 bytes, size" in err
    assert "4 files" in out


def test_newest_release_that_has_the_file(dbpedia, capsys, tmp_path):
    code, _, err = fetch(dbpedia, capsys, tmp_path, "--language", "vi", "--no-wikidata")
    assert code == 0, err
    assert bz2.decompress((tmp_path / types("vi")).read_bytes()) == b"old"


def test_what_is_missing_is_said(dbpedia, capsys, tmp_path):
    code, out, _ = fetch(dbpedia, capsys, tmp_path, "--language", "ltg", "uk", "--dry-run")
    assert code == 0
    assert f"{types('ltg')}: DBpedia has no such file, left out" in out
    assert "Mapping_ltg.xml: DBpedia has no such file, left out" in out
    assert "nothing was downloaded" in out
    assert list(tmp_path.iterdir()) == []


def test_a_release(dbpedia, capsys, tmp_path):
    code, _, _ = fetch(dbpedia, capsys, tmp_path, "--language", "uk", "--date", "2022.09.01")
    assert code == 0
    assert bz2.decompress((tmp_path / types("uk")).read_bytes()) == b"old"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--language", "../x"], "--language ../x: write a code such as uk"),
        (["--language", "uk", "--date", "2022"], "--date 2022: write YYYY.MM.DD, or latest"),
        ([], "--language"),
    ],
)
def test_errors(dbpedia, capsys, tmp_path, flags, message):
    code, _, err = fetch(dbpedia, capsys, tmp_path, *flags)
    assert code == 2
    assert message in err


def test_no_release(mirror, capsys, tmp_path):
    mirror.files[f"/{MAPPED}/"] = b"<html></html>"
    code, _, err = fetch(mirror, capsys, tmp_path, "--language", "uk")
    assert code == 1
    assert "no release there; try another --mirror" in err
