import copy
import json
import os
import pickle
from pathlib import Path

import pytest

from nerbert.commands.options import CHECKED, Location, Locations, option, options_class, options_of
from nerbert.storage.places import Place, local_copies


@pytest.fixture(params=["disk", "store"])
def folder(request, tmp_path):
    return Place(tmp_path if request.param == "disk" else f"memory:///{tmp_path.name}")


def test_the_same_on_the_disk_and_in_a_store(folder):
    assert not folder.is_used_folder()
    assert not folder.files()
    file = folder / "a" / "part-1.json"
    assert (file.name, file.folder, str(file)) == (
        "part-1.json",
        folder / "a",
        f"{folder}/a/part-1.json",
    )
    assert file.read_json_or_none() is None
    file.write_json({"ß": [1]})
    (folder / "a" / "part-2.txt.gz").write_bytes(b"torn")
    (folder / "a" / ".hidden").write_bytes(b"")
    (folder / "b").write_bytes(b"{")
    assert file.read_json() == {"ß": [1]}
    assert (folder / "b").read_json_or_none() is None
    assert file.exists()
    assert folder.is_used_folder()
    assert file.size() == len(file.read_bytes())
    assert file.checksum() == (folder / "a" / "part-1.json").checksum()
    names = ["a/.hidden", "a/part-1.json", "a/part-2.txt.gz", "b"]
    assert list(folder.listing()) == names
    assert [place.name for place in (folder / "a").files()] == ["part-1.json", "part-2.txt.gz"]
    assert (folder / "a" / "part-*.json").files() == [file]
    assert file.files() == [file]
    with pytest.raises(OSError, match="zip"):
        list((folder / "a" / "part-2.txt.gz").read_blocks())
    with local_copies([file, folder / "b"]) as (first, second):
        assert json.loads(Path(first).read_bytes()) == {"ß": [1]}
        assert os.path.basename(second).endswith("b")
    folder.remove(["a/part-1.json", "a/.hidden", "missing"])
    assert list(folder.listing()) == ["a/part-2.txt.gz", "b"]


def test_a_failed_write_leaves_the_old_file(folder):
    (folder / "x").write_bytes(b"old")
    with pytest.raises(KeyError), (folder / "x").atomic_write() as file:
        file.write({}["new"])
    assert (folder / "x").read_bytes() == b"old"
    assert list(folder.listing()) == ["x"]


def test_it_stays_a_place_in_other_processes_and_is_a_string(folder):
    for twin in (pickle.loads(pickle.dumps(folder)), copy.deepcopy(folder), Place(folder)):
        assert (type(twin), twin) == (type(folder), folder)
    assert json.dumps([folder]) == json.dumps([str(folder)])
    assert folder.absolute() == folder
    assert folder.is_remote == ("://" in folder)


def test_options_that_are_places(tmp_path, monkeypatch):
    @options_class(frozen=True, config=CHECKED)
    class Options:
        output: Location = option("out")
        dump: Locations = option(())
        earlier: Location | None = option(None)

    monkeypatch.chdir(tmp_path)
    options = Options(dump=tmp_path, earlier="s3://bucket/run")
    assert options.output.absolute() == f"{tmp_path}/out"
    assert (*options.dump, options.earlier) == (str(tmp_path), "s3://bucket/run")
    assert options.earlier.is_remote
    kinds = {entry.name: (entry.kind, entry.annotation) for entry in options_of(Options)}
    assert kinds["dump"] == (str, tuple[str, ...])
    assert kinds["output"] == (str, str)
    assert kinds["earlier"][0] is str
