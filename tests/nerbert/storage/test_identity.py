import os

import pytest
import xxhash

from nerbert.storage import identity
from nerbert.storage.identity import Identities
from nerbert.storage.places import Place


def test_a_digest_is_of_the_whole_content(tmp_path):
    path = tmp_path / "dump.xml"
    data = bytearray(os.urandom(9 << 20))
    path.write_bytes(data)
    size, digest = Identities().of(Place(path))
    assert (size, digest) == (9 << 20, xxhash.xxh3_128(data).hexdigest())
    data[5 << 20] ^= 1
    path.write_bytes(data)
    assert Identities().of(Place(path))[1] != digest


def test_digests_of_large_files_are_kept_until_the_file_changes(tmp_path, monkeypatch):
    monkeypatch.setattr(identity, "_LARGE", 10)
    large, small = tmp_path / "large", tmp_path / "small"
    large.write_bytes(b"x" * 20)
    small.write_bytes(b"x")
    output = tmp_path / "out"
    first = Identities(Place(output))
    wanted = [first.of(Place(large)), first.of(Place(small))]
    first.save()

    def refuse(path):
        raise AssertionError(path)

    digest = Place.checksum
    monkeypatch.setattr(Place, "checksum", refuse)
    assert Identities(Place(output)).of(Place(large)) == wanted[0]
    with pytest.raises(AssertionError, match="small"):
        Identities(Place(output)).of(Place(small))
    monkeypatch.setattr(Place, "checksum", digest)
    large.write_bytes(b"y" * 20)
    os.utime(large, ns=(1, 1))
    assert Identities(Place(output)).of(Place(large)) != wanted[0]


def test_a_torn_record_is_made_again(tmp_path):
    (tmp_path / ".digests.json").write_bytes(b'{"')
    (tmp_path / "f").write_bytes(b"x")
    assert Identities(Place(tmp_path)).of(Place(tmp_path / "f"))[0] == 1


def test_files_that_change_after_they_were_identified(tmp_path):
    identities = Identities()
    for name in ("a", "b"):
        (tmp_path / name).write_text("x")
        identities.of(Place(tmp_path / name))
    assert identities.changed() == []
    (tmp_path / "b").write_text("y" * 2)
    assert identities.changed() == [Place(tmp_path / "b")]
    (tmp_path / "a").unlink()
    assert identities.changed() == [Place(tmp_path / "a"), Place(tmp_path / "b")]
