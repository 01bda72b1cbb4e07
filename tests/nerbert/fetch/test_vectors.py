"""`nerbert fetch vectors` against a local server; the files are those that --vectors reads."""

import io
import tarfile
import zipfile

import pytest

from finetune.papers.words.vocabulary import VectorFiles
from nerbert.commands.table import main
from nerbert.storage.places import Place
from tests.helpers.mirror import served

GLOVE, GRAMS = b"the 0.5 -1.0\nUlm 1 2\n", b"2gram-ab 3 4\n3gram-#BEGIN#ab 5 6\n"


@pytest.fixture
def mirror():
    packed, tarred = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("glove.6B.50d.txt", "other")
        archive.writestr("glove.6B.100d.txt", b"short 1 2\n")
        archive.writestr("glove.6B.300d.txt", GLOVE)
    with tarfile.open(fileobj=tarred, mode="w:gz") as archive:
        member = tarfile.TarInfo("jmt_pre-trained_embeddings/charNgram.txt")
        member.size = len(GRAMS)
        archive.addfile(member, io.BytesIO(GRAMS))
    with served() as found:
        found.files["/glove.6B.zip"] = packed.getvalue()
        found.files["/jmt_pre-trained_embeddings.tar.gz"] = tarred.getvalue()
        yield found


def fetch(mirror, folder, *names):
    flags = ("--mirror", mirror.url, "--output", str(folder))
    return main(["fetch", "vectors", *names, *flags])


def test_both_are_unpacked_and_read(mirror, tmp_path, capsys):
    for _ in range(2):
        assert fetch(mirror, tmp_path, "glove-6b-300", "charngram-100") == 0
        *_, glove, grams = capsys.readouterr().out.splitlines()
    read = VectorFiles.read([Place(glove), Place(grams)])
    assert {name: vector.tolist() for name, vector in read.words.items()} == {
        "the": [0.5, -1.0],
        "ulm": [1, 2],
    }
    assert {name: vector.tolist() for name, vector in read.grams.items()} == {
        "ab": [3, 4],
        "#BEGIN#ab": [5, 6],
    }


def test_two_sizes_of_one_archive(mirror, tmp_path, capsys):
    assert fetch(mirror, tmp_path, "glove-6b-300", "glove-6b-100") == 0
    *_, long, short = capsys.readouterr().out.splitlines()
    assert [[*VectorFiles.read([Place(one)]).words] for one in (long, short)] == [
        ["the", "ulm"],
        ["short"],
    ]
    assert [path for path, *_ in mirror.requests].count("/glove.6B.zip") <= 2  # size, and content


def test_what_is_wrong_is_one_line(mirror, tmp_path, capsys):
    assert fetch(mirror, tmp_path) == 0
    assert "glove-6b-300    PDDL 1.0" in capsys.readouterr().out
    assert fetch(mirror, tmp_path, "fasttext") == 2
    assert "fasttext: no such vectors; there are glove-6b-300, " in capsys.readouterr().err
    mirror.files["/glove.6B.zip"] = mirror.files["/jmt_pre-trained_embeddings.tar.gz"]
    mirror.files["/jmt_pre-trained_embeddings.tar.gz"] = b"torn"
    for name, archive in (("glove-6b-300", "glove.6B.zip"), ("charngram-100", "jmt_")):
        assert fetch(mirror, tmp_path, name) == 2
        err = capsys.readouterr().err
        assert archive in err
        assert "cannot be unpacked" in err
    assert not [path for path in tmp_path.iterdir() if path.suffix == ".txt"]


def encrypted():
    """A zip whose member says that it is encrypted."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("glove.6B.300d.txt", GLOVE)
    content = bytearray(file.getvalue())
    content[6] |= 1
    content[content.index(b"PK\x01\x02") + 8] |= 1
    return bytes(content)


def packed_by(method):
    content = bytearray(encrypted())
    content[6] &= ~1
    place = content.index(b"PK\x01\x02")
    content[place + 8] &= ~1
    content[8:10] = content[place + 10 : place + 12] = method.to_bytes(2, "little")
    return bytes(content)


def tar(*members):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        for name, kind, target in members:
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, target
            archive.addfile(member)
    return file.getvalue()


NGRAMS = "jmt_pre-trained_embeddings/charNgram.txt"


@pytest.mark.parametrize(
    ("name", "archive", "content"),
    [
        ("glove-6b-300", "/glove.6B.zip", encrypted()),
        ("glove-6b-300", "/glove.6B.zip", packed_by(99)),
        (
            "charngram-100",
            "/jmt_pre-trained_embeddings.tar.gz",
            tar((NGRAMS, tarfile.LNKTYPE, NGRAMS)),
        ),
        (
            "charngram-100",
            "/jmt_pre-trained_embeddings.tar.gz",
            tar((NGRAMS, tarfile.SYMTYPE, "charNgram.txt")),
        ),
        ("charngram-100", "/jmt_pre-trained_embeddings.tar.gz", tar()[:-20] + b"x" * 90),
    ],
    ids=["encrypted", "unknown method", "link to itself", "soft link to itself", "damaged"],
)
def test_hostile_archives_are_one_line(mirror, tmp_path, capsys, name, archive, content):
    mirror.files[archive] = content
    assert fetch(mirror, tmp_path, name) == 2
    *_, line = capsys.readouterr().err.splitlines()
    assert "cannot be unpacked" in line
    assert not [path for path in tmp_path.iterdir() if path.suffix == ".txt"]
