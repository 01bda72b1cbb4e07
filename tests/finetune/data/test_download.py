"""`nerbert fetch sets` against a local server; the files are those that the readers want."""

import lzma

import pytest

from finetune.data.download import _files, remote_path
from finetune.data.registry import known_set, registry
from finetune.data.sets import DataSets
from nerbert.commands.table import main
from nerbert.fetch.wanted import source
from tests.helpers.mirror import served


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
        if name in ask or known.elsewhere:
            continue
        places = [remote_path(known, path) for _, path in _files(known)]
        assert len(set(places)) == len(places)
        assert not any("{" in place for place in places)
    assert set(ask) <= set(registry())
    assert (
        remote_path(known_set("crossner/ai"), "crossner/ai/dev.txt")
        == "zliucr/CrossNER/main/ner_data/ai/dev.txt"
    )
    for name, split, end in (
        ("wikiann/de", "dev", "data/wikiann/de/val.conllu"),
        ("multinerd/zh", "dev", "data/zh/dev_zh.tsv"),
        ("sec_filings", "test", "data/test/FIN3.txt"),
    ):
        known = known_set(name)
        assert remote_path(known, known.files[split]).endswith(end)


@pytest.mark.slow
def test_real_sets_into_the_layout_that_is_read(mirror, capsys, tmp_path, shared):
    names = ["crossner/ai", "wikigold", "wikiann/nl", "re3d", "sec_filings"]
    for name in names:
        known = known_set(name)
        for path in known.files.values():
            content = lzma.decompress((shared / "ner" / f"{path}.xz").read_bytes())
            mirror.files["/" + remote_path(known, path)] = content
    code, out, err = fetch(mirror, capsys, tmp_path, *names)
    assert code == 0, err
    assert "11 files" in out
    assert err.count(" sha256 ") == 11
    sets = DataSets(str(tmp_path))
    for name in names:
        known = known_set(name)
        for split, (sentences, *_) in known.counts.items():
            assert len(sets.sentences(name, split)) == sentences


def test_the_list_says_what_there_is(capsys, tmp_path):
    for path in known_set("wikigold").files.values():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        with lzma.open(tmp_path / f"{path}.xz", "wt") as file:
            file.write("EU B-ORG\n")
    assert main(["fetch", "sets", "--output", str(tmp_path)]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    by_name = {line.split()[0]: line for line in lines}
    assert head.split()[:4] == ["set", "language", "types", "sentences"]
    assert by_name["wikigold"].split()[1:5] == ["en", "4", "1,696", "yes"]
    assert by_name["wikiann/ru"].split()[1:4] == ["ru", "3", "40,000"]
    assert by_name["wnut17"].split()[1:4] == ["en", "6", "-"]
    assert [name for name, line in by_name.items() if " yes " in line] == ["wikigold"]


def test_changed_file(mirror, capsys, tmp_path):
    known = known_set("wikigold")
    mirror.files["/" + remote_path(known, known.files["test"])] = b"EU B-ORG\n"
    code, _, err = fetch(mirror, capsys, tmp_path, "wikigold")
    assert code == 1
    assert "checksum mismatch after two downloads" in err
    assert not (tmp_path / known.files["test"]).exists()


def test_a_group_of_sets(mirror, capsys, tmp_path):
    for domain in ("ai", "literature", "music", "politics", "science"):
        known = known_set(f"crossner/{domain}")
        for path in known.files.values():
            mirror.files["/" + remote_path(known, path)] = b"12345"
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
    assert len(out.splitlines()) == 1 + sum(not one.like for one in registry().values())


@pytest.mark.slow
def test_archives_and_other_hosts(mirror, capsys, tmp_path, shared):
    """Two sets in one archive; a set of another host with a file of labels beside its splits."""
    archive = (shared / "ner" / "conll2002" / "conll2002.zip").read_bytes()
    mirror.files["/nltk/nltk_data/gh-pages/packages/corpora/conll2002.zip"] = archive
    for name, content in (
        ("2020.train.json", b'{"tokens": ["Ulm"], "tags": [1]}\n'),
        ("2020.dev.json", b'{"tokens": ["Ulm"], "tags": [1]}\n'),
        ("2021.test.json", b'{"tokens": ["in", "Rom"], "tags": [0, 1]}\n'),
        ("label.json", b'{"O": 0, "B-location": 1}'),
    ):
        mirror.files[f"/datasets/tner/tweetner7/resolve/main/dataset/{name}"] = content
    code, out, err = fetch(mirror, capsys, tmp_path, "conll2002", "tweetner7")
    assert code == 0, err
    assert "5 files" in out
    sets = DataSets(tmp_path)
    assert len(sets.sentences("conll2002/es", "dev")) == 1915
    assert len(sets.sentences("conll2002/nl", "test")) == 5195
    assert sets.sentences("tweetner7", "test")[0].tags == ["O", "B-location"]


@pytest.mark.parametrize(
    "content", [b'{"error": "rate limit"}', b"noise", b"\x00\x01" * 90, b"a b\n"]
)
def test_what_is_no_set_is_not_kept(mirror, capsys, tmp_path, content):
    """Sets without a published checksum are read once; the bad file is between good ones."""
    known = known_set("wnut17")
    files = sorted(known.files.values())
    for path in files:
        mirror.files["/" + remote_path(known, path).split("/", 3)[-1]] = b"Ulm\tB-location\nis\tO\n"
    address = remote_path(known, files[1])
    mirror.files["/" + (address.split("/", 3)[3] if "//" in address else address)] = content
    for path in files:
        address = remote_path(known, path)
        place = "/" + (address.split("/", 3)[3] if "//" in address else address)
        mirror.files.setdefault(place, b"Ulm\tB-location\nis\tO\n")
    code, _, err = fetch(mirror, capsys, tmp_path, "wnut17")
    assert code == 1
    assert "the server sends something else; run it again later" in err.splitlines()[-1]
    assert not (tmp_path / files[1]).exists()
    assert (tmp_path / files[0]).exists()
