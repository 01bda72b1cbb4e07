import threading

import pytest

from nerbert.storage import unfinished
from nerbert.storage.places import WORK_FOLDER, Place


def test_a_file_lands_from_the_room_of_its_run(tmp_path):
    with unfinished.work_folder(Place(tmp_path)) as room, unfinished.kept_in(room):
        with Place(tmp_path / "part").atomic_write() as file:
            file.write(b"x")
            assert len([p for p in (tmp_path / room).iterdir() if p.name.startswith(".part")]) == 1
        assert (tmp_path / "part").read_bytes() == b"x"
    assert [path.name for path in tmp_path.iterdir()] == ["part"]


def test_a_late_writer_cannot_land(tmp_path):
    """Neither one that is in the middle of a file, nor one that begins."""
    path = Place(tmp_path / "part")
    with unfinished.work_folder(Place(tmp_path)) as room:
        pass
    with unfinished.kept_in(room), pytest.raises(FileNotFoundError):
        Place(path).write_bytes(b"late")
    with unfinished.work_folder(Place(tmp_path)) as room, unfinished.kept_in(room):
        writing = Place(path).atomic_write()
        writing.__enter__().write(b"late")
        unfinished.remove(Place(tmp_path))
        with pytest.raises(FileNotFoundError):
            writing.__exit__(None, None, None)
    assert list(tmp_path.iterdir()) == []


def test_a_room_is_of_one_thread(tmp_path):
    """Workers have several threads, and the room of one stage is not that of another."""
    with unfinished.work_folder(Place(tmp_path)) as room, unfinished.kept_in(room):
        seen = []
        thread = threading.Thread(target=lambda: seen.append(WORK_FOLDER.get()))
        thread.start()
        thread.join()
        assert (seen, WORK_FOLDER.get()) == ([None], room)


def test_rooms_and_files_of_the_dead_are_removed(tmp_path):
    dead = tmp_path / ".run-0a1b.tmp"
    dead.mkdir()
    (dead / ".part-00001.parquet.77aa.tmp").touch()
    (tmp_path / ".part-00002.parquet.4711.tmp").touch()
    (tmp_path / "part-00003.parquet").touch()
    (tmp_path / ".hidden").touch()
    unfinished.remove(Place(tmp_path))
    assert sorted(p.name for p in tmp_path.iterdir()) == [".hidden", "part-00003.parquet"]


def test_in_a_store_a_late_writer_looks_before_it_writes():
    memory = Place(f"memory:///{id(object())}")
    with unfinished.work_folder(memory) as room, unfinished.kept_in(room):
        (memory / "part").write_bytes(b"x")
    with unfinished.kept_in(room), pytest.raises(FileNotFoundError):
        (memory / "late").write_bytes(b"x")
    assert list(memory.listing()) == ["part"]
