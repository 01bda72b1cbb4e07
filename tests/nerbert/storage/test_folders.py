"""Only files that a run made are removed, and a finished folder has all of its files."""

import os
import shutil

import pytest

from nerbert.errors import UserError
from nerbert.storage.folders import Folder, prepared
from nerbert.storage.places import Place
from nerbert.storage.records import seal, sealed


def made(path, finish=True, **made_from):
    """A folder with two parts, their reports, and another file."""
    folder = Folder.of(Place(path), "extract", made_from or {"a": 1})
    with prepared(folder):
        for name in ("part-00000.parquet", "part-00001.parquet", "train/part-00001.parquet"):
            Place(path / name).write_bytes(b"rows")
        for name in ("part-00000.json", "part-00001.json"):
            Place(path / "reports" / name).write_json({})
        Place(path / "words.json").write_bytes(b"{}")
    if finish:
        folder.finish(counts=3)
    return folder


def names(path):
    return sorted(Place(path).listing())


def test_state(tmp_path):
    folder = made(tmp_path, False, a=1, dump_files=["x"])
    assert not folder.is_complete()
    renamed = Folder.of(Place(tmp_path), "extract", {"a": 1, "dump_files": ["y"]})
    renamed.prepare()
    assert len(names(tmp_path)) == 7
    renamed.finish(counts=3)
    assert folder.is_complete()
    assert folder.on_disk()["counts"] == 3
    assert "sizes" not in folder.on_disk()


@pytest.mark.parametrize("finish", [True, False])
def test_a_folder_is_emptied_if_it_was_made_from_something_else(tmp_path, finish):
    made(tmp_path, finish)
    Place(tmp_path / ".DS_Store").write_bytes(b"hidden")
    (tmp_path / ".part-00003.parquet.12.tmp").write_bytes(b"half")
    Folder.of(Place(tmp_path), "extract", {"a": 2}).prepare()
    assert names(tmp_path) == [".DS_Store", "stage.json"]
    assert sorted(os.listdir(tmp_path)) == [".DS_Store", "stage.json"]


@pytest.mark.parametrize("finish", [True, False])
@pytest.mark.parametrize("name", ["thesis.tex", "train/notes.txt", "reports/part-1.tar"])
def test_a_folder_with_a_users_file_is_not_emptied(tmp_path, finish, name):
    made(tmp_path, finish)
    Place(tmp_path / name).write_bytes(b"mine")
    before = Place(tmp_path).listing()
    with pytest.raises(UserError, match=f"{name}: changed since a run wrote it"):
        Folder.of(Place(tmp_path), "extract", {"a": 2}).prepare()
    assert Place(tmp_path).listing() == before
    made(tmp_path, finish)  # the same outputs again: nothing must be removed
    assert (tmp_path / name).read_bytes() == b"mine"


def test_a_part_that_no_run_listed_or_somebody_changed_is_a_users_file(tmp_path):
    made(tmp_path)
    for name in ("part-00007.parquet", "part-00001.parquet"):
        (tmp_path / name).write_bytes(b"other rows")
        with pytest.raises(UserError, match=f"{name}: changed since a run wrote it"):
            Folder.of(Place(tmp_path), "extract", {"a": 2}).prepare()
        (tmp_path / name).unlink()


def test_a_folder_without_our_state_is_not_emptied(tmp_path):
    (tmp_path / "part-00000.parquet").write_bytes(b"of another program")
    with pytest.raises(UserError, match="not empty, and no run made it"):
        made(tmp_path)
    assert names(tmp_path) == ["part-00000.parquet"]


def test_a_run_that_was_killed_while_it_marked_its_folder_goes_on(tmp_path):
    (tmp_path / ".stage.json.12ab.tmp").write_bytes(b'{"sta')
    made(tmp_path, True)
    assert ".stage.json.12ab.tmp" not in os.listdir(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / ".stage.json.12ab.tmp").write_bytes(b"half")
    (tmp_path / "mine" / "notes").write_bytes(b"mine")
    with pytest.raises(UserError, match="notes: changed since a run wrote it"):
        made(tmp_path / "mine", True)


def test_a_folder_that_is_removed_while_a_run_writes(tmp_path):
    folder = made(tmp_path / "f", False)
    shutil.rmtree(tmp_path / "f")
    (tmp_path / "f").mkdir()
    (tmp_path / "f" / "part-00001.parquet").write_bytes(b"rows")
    with pytest.raises(UserError, match="f: changed while the run wrote; run the same command"):
        folder.finish()
    assert not folder.is_complete()


def test_a_linked_folder_is_emptied_behind_its_link(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "documents").symlink_to(tmp_path / "disk")
    made(tmp_path / "documents")
    Folder.of(Place(tmp_path / "documents"), "extract", {"a": 2}).prepare()
    assert names(tmp_path / "disk") == ["stage.json"]
    assert (tmp_path / "documents").is_symlink()


def test_a_link_inside_is_not_followed(tmp_path):
    made(tmp_path / "f", False)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "part-00000.parquet").write_bytes(b"mine")
    (tmp_path / "f" / "validation").symlink_to(tmp_path / "mine")
    with pytest.raises(UserError, match="validation: changed since a run wrote it"):
        Folder.of(Place(tmp_path / "f"), "extract", {"a": 2}).prepare()


@pytest.mark.parametrize("torn", [b"", b'{"stage": "ext'])
def test_a_torn_state_is_made_again(tmp_path, torn):
    folder = made(tmp_path)
    (tmp_path / "stage.json").write_bytes(torn)
    assert folder.on_disk() == {}
    assert not folder.is_complete()
    folder.prepare()
    assert names(tmp_path) == ["stage.json"]


@pytest.mark.parametrize("change", ["removed", "cut"])
@pytest.mark.parametrize(
    ("name", "gone"),
    [
        (
            "train/part-00001.parquet",
            {"part-00001.parquet", "reports/part-00001.json", "train/part-00001.parquet"},
        ),
        ("reports/part-00000.json", {"part-00000.parquet", "reports/part-00000.json"}),
        ("words.json", {"words.json", "stage.json"}),
    ],
)
def test_a_damaged_part_is_made_again(tmp_path, caplog, change, name, gone):
    folder = made(tmp_path)
    before = set(names(tmp_path))
    (tmp_path / name).unlink() if change == "removed" else (tmp_path / name).write_bytes(b"")
    assert not folder.is_complete()
    folder.prepare()
    assert before - set(names(tmp_path)) == gone - {"stage.json"}
    assert f"1 files, such as {name}, are missing or have another size" in caplog.text


def result(folder):
    """A result of two files, a card that users change, and files that are not a part of it."""
    for name, content in (("a.bin", b"weights"), ("in/b.bin", b"more"), ("README.md", b"card")):
        Place(folder / name).write_bytes(content)
    (folder / ".lock").touch()
    Place(folder / ".work" / "x.bin").write_bytes(b"x")
    seal(Place(folder / "result.json"), {"f1": 0.5})


def test_a_sealed_result(tmp_path, caplog):
    result(tmp_path)
    assert sealed(Place(tmp_path / "result.json")) == {"f1": 0.5}
    (tmp_path / "README.md").write_text("my own words")
    (tmp_path / ".work" / "x.bin").unlink()
    (tmp_path / "notes.txt").write_text("mine")
    assert sealed(Place(tmp_path / "result.json")) == {"f1": 0.5}
    assert sealed(Place(tmp_path / "other.json")) is None
    assert caplog.messages == []


@pytest.mark.parametrize("name", ["a.bin", "in/b.bin", "README.md", "result.json"])
@pytest.mark.parametrize("how", ["removed", "cut", "other"])
def test_a_torn_result(tmp_path, caplog, name, how):
    result(tmp_path)
    path = tmp_path / name
    content = path.read_bytes()
    path.unlink()
    if how != "removed":
        path.write_bytes(content[: len(content) // 2] if how == "cut" else b"[]")
    expected = {"f1": 0.5} if name == "README.md" and how != "removed" else None
    assert sealed(Place(tmp_path / "result.json")) == expected
    told = expected is None and not (name == "result.json" and how == "removed")
    assert [message.startswith(str(path)) for message in caplog.messages] == [True] * told


def test_records_of_older_versions_have_no_sizes(tmp_path):
    Place(tmp_path / "result.json").write_json({"f1": 0.5})
    assert sealed(Place(tmp_path / "result.json")) == {"f1": 0.5}


def test_only_some_files_of_a_folder(tmp_path):
    for name in ("one.conll", "two.conll"):
        Place(tmp_path / name).write_bytes(b"x")
    seal(Place(tmp_path / "one.json"), {}, ["one.conll"])
    (tmp_path / "two.conll").unlink()
    assert sealed(Place(tmp_path / "one.json")) == {}
