"""`nerbert fetch sets` against a local server; the files are those that the readers want."""

import lzma

import pytest
from mirror import served

from finetune.data.registry import known_set, registry
from finetune.data.sets import DataSets
from finetune.fetch import remote_path
from nerbert.cli import main
from nerbert.fetch.sources import source


@pytest.fixture
def mirror():
    with served() as found:
        yield found


def fetch(mirror, capsys, folder, *flags):
    code = main(["fetch", "sets", *flags, "--mirror", mirror.url, "--output", str(folder)])
    return code, *capsys.readouterr()


def test_every_set_has_an_address_or_a_line():
    ask = source("sets")["ask"]
    for name, known in registry().items():
        if name in ask:
            continue
        places = [remote_path(known, split) for split in known.files]
        assert len(set(places)) == len(places)
        assert not any("{" in place for place in places)
    assert set(ask) <= set(registry())
    assert (
        remote_path(known_set("crossner/ai"), "dev") == "zliucr/CrossNER/main/ner_data/ai/dev.txt"
    )
    assert remote_path(known_set("wikiann/de"), "dev").endswith("data/wikiann/de/val.conllu")
    assert remote_path(known_set("sec_filings"), "test").endswith("data/test/FIN3.txt")


def test_real_sets_into_the_layout_that_is_read(mirror, capsys, tmp_path, shared):
    names = ["crossner/ai", "wikigold", "wikiann/nl", "re3d", "sec_filings"]
    for name in names:
        known = known_set(name)
        for split, path in known.files.items():
            content = lzma.decompress((shared / "ner" / f"{path}.xz").read_bytes())
            mirror.files["/" + remote_path(known, split)] = content
    code, out, err = fetch(mirror, capsys, tmp_path, *names)
    assert code == 0, err
    assert "11 files" in out
    assert err.count(" sha256 ") == 11
    sets = DataSets(str(tmp_path))
    for name in names:
        known = known_set(name)
        for split, (sentences, *_) in known.counts.items():
            assert len(sets.sentences(name, split)) == sentences


def test_changed_file(mirror, capsys, tmp_path):
    known = known_set("wikigold")
    mirror.files["/" + remote_path(known, "test")] = b"EU B-ORG\n"
    code, _, err = fetch(mirror, capsys, tmp_path, "wikigold")
    assert code == 1
    assert "twice another file than was published" in err
    assert not (tmp_path / known.files["test"]).exists()


def test_a_group_of_sets(mirror, capsys, tmp_path):
    for domain in ("ai", "literature", "music", "politics", "science"):
        known = known_set(f"crossner/{domain}")
        for split in known.files:
            mirror.files["/" + remote_path(known, split)] = b"12345"
    code, out, _ = fetch(mirror, capsys, tmp_path, "crossner", "--dry-run")
    assert code == 0
    assert "75 bytes in 15 files; nothing was downloaded" in out


def test_sets_to_ask_for(mirror, capsys, tmp_path):
    code, out, err = fetch(mirror, capsys, tmp_path, "conll2003", "ontonotes5")
    assert code == 2
    assert "conll2003: ask NIST for Reuters RCV1" in out
    assert "ontonotes5: order LDC2013T19" in out
    assert "none of these sets may be downloaded" in err


def test_unknown_set_and_list(mirror, capsys, tmp_path):
    code, _, err = fetch(mirror, capsys, tmp_path, "conll1999")
    assert code == 2
    assert "conll1999: no such set; there are bc5cdr" in err
    code, out, _ = fetch(mirror, capsys, tmp_path)
    assert code == 0
    assert len(out.splitlines()) == len(registry())
