"""Downloads against a local server: whole or not at all, whatever happens on the way."""

import hashlib
import os
import shutil
import time

import pytest

from nerbert.errors import RunError, UserError
from nerbert.fetch import client
from nerbert.fetch.download import Downloader, report
from nerbert.fetch.wanted import Wanted
from nerbert.storage.places import Place
from tests.helpers.mirror import CUT, EMPTY

CONTENT = bytes(range(256)) * 5000  # 1.28 MB, several blocks


def wanted(mirror, folder, name="/a.bz2", content=CONTENT, check="sha1", size=True):
    mirror.files[name] = content
    digest = (check, hashlib.new(check, content).hexdigest()) if check else None
    path = Place(folder / name.strip("/"))
    return Wanted(mirror.url + name, path, len(content) if size else None, digest)


def only(folder):
    return sorted(entry.name for entry in folder.iterdir())


@pytest.mark.parametrize("check", ["sha1", "md5", "sha256"])
def test_whole_and_checked(mirror, tmp_path, downloader, check):
    file = wanted(mirror, tmp_path, check=check)
    (fetched,) = downloader.fetch([file])
    assert (fetched.bytes, fetched.check) == (len(CONTENT), check)
    assert (tmp_path / "a.bz2").read_bytes() == CONTENT
    assert only(tmp_path) == ["a.bz2"]
    assert all(agent.startswith("nerbert/") for agent in mirror.agents)


def test_there_already(mirror, tmp_path, downloader):
    file = wanted(mirror, tmp_path)
    downloader.fetch([file])
    mirror.requests.clear()
    assert downloader.fetch([file])[0].bytes == 0
    assert mirror.requests == []


def test_another_file_in_its_place_is_left_alone(mirror, tmp_path, downloader):
    file = wanted(mirror, tmp_path)
    (tmp_path / "a.bz2").write_bytes(b"mine")
    with pytest.raises(UserError, match=r"a\.bz2: not the published file .* move it away"):
        downloader.fetch([file])
    assert (tmp_path / "a.bz2").read_bytes() == b"mine"


def test_cut_connections_continue(mirror, tmp_path, downloader, pauses):
    file = wanted(mirror, tmp_path)
    mirror.faults["/a.bz2"] = [CUT] * 9
    (fetched,) = downloader.fetch([file])
    starts = mirror.starts_of("/a.bz2")
    assert starts[0] == 0
    assert starts == sorted(starts)
    assert len(set(starts)) == 10
    assert (tmp_path / "a.bz2").read_bytes() == CONTENT
    assert fetched.bytes == len(CONTENT)
    assert set(pauses) == {1.0}  # bytes came every time


def test_an_earlier_command_was_killed(mirror, tmp_path, downloader, monkeypatch):
    file = wanted(mirror, tmp_path)
    mirror.faults["/a.bz2"] = [CUT]
    monkeypatch.setattr(client, "TRIES", 1)
    with pytest.raises(RunError, match="run the same command again"):
        Downloader().fetch([file])
    assert not (tmp_path / "a.bz2").exists()
    (fetched,) = downloader.fetch([file])
    assert 0 < fetched.bytes < len(CONTENT)
    assert (tmp_path / "a.bz2").read_bytes() == CONTENT
    assert only(tmp_path) == ["a.bz2"]


@pytest.mark.parametrize("ranges", [True, False])
def test_the_file_changed_in_between(mirror, tmp_path, downloader, monkeypatch, ranges):
    """The first half of the old file never becomes the beginning of the new one."""
    old = wanted(mirror, tmp_path, check=None)
    mirror.faults["/a.bz2"] = [CUT]
    monkeypatch.setattr(client, "TRIES", 1)
    with pytest.raises(RunError):
        Downloader().fetch([old])
    mirror.ranges = ranges
    new = wanted(mirror, tmp_path, content=CONTENT[::-1], check=None)
    downloader.fetch([new])
    assert (tmp_path / "a.bz2").read_bytes() == CONTENT[::-1]


def test_nothing_to_tell_versions_apart(mirror, tmp_path, downloader):
    """Without checksum and ETag nobody knows whether the rest fits: from the start."""
    mirror.etags = False
    file = wanted(mirror, tmp_path, check=None)
    mirror.faults["/a.bz2"] = [CUT]
    downloader.fetch([file])
    assert mirror.starts_of("/a.bz2") == [0, 0]
    assert (tmp_path / "a.bz2").read_bytes() == CONTENT


def test_wrong_checksum(mirror, tmp_path, downloader):
    file = wanted(mirror, tmp_path)
    mirror.files["/a.bz2"] = CONTENT[:-1] + b"?"
    with pytest.raises(RunError, match=r"a\.bz2: checksum mismatch after two downloads .*sha1 "):
        downloader.fetch([file])
    assert only(tmp_path) == []


def test_wrong_checksum_once(mirror, tmp_path, downloader, monkeypatch):
    """A damaged first half, as an earlier run may have left it: the second time is from the start."""
    file = wanted(mirror, tmp_path)
    mirror.faults["/a.bz2"] = [CUT]
    monkeypatch.setattr(client, "TRIES", 1)
    with pytest.raises(RunError):
        Downloader().fetch([file])
    partial = tmp_path / ".a.bz2.part"
    partial.write_bytes(b"?" + partial.read_bytes()[1:])
    downloader.fetch([file])
    assert (tmp_path / "a.bz2").read_bytes() == CONTENT


def test_busy_server(mirror, tmp_path, downloader, pauses):
    file = wanted(mirror, tmp_path)
    mirror.faults["/a.bz2"] = [503, 429, EMPTY, 500]
    downloader.fetch([file])
    assert pauses == [1.0, 7.0, 4.0, 8.0]  # growing; 429 said 7


def test_server_that_stays_busy(mirror, tmp_path, downloader, pauses):
    file = wanted(mirror, tmp_path)
    mirror.faults["/a.bz2"] = [503] * 99
    with pytest.raises(RunError, match="503 Service Unavailable; 6 tries; run the same command"):
        downloader.fetch([file])
    assert pauses == [1.0, 2.0, 4.0, 8.0, 16.0]


def test_no_server(tmp_path, downloader, pauses):
    with pytest.raises(RunError, match="refused"):
        downloader.fetch([Wanted("http://127.0.0.1:9/a", Place(tmp_path / "a"))])
    assert len(pauses) == 5


def test_missing_and_forbidden(mirror, tmp_path, downloader, pauses):
    with pytest.raises(UserError, match="no such file on the server"):
        downloader.fetch([Wanted(mirror.url + "/none", Place(tmp_path / "none"))])
    file = wanted(mirror, tmp_path)
    mirror.faults["/a.bz2"] = [403]
    with pytest.raises(UserError, match="the server says 403 Forbidden"):
        downloader.fetch([file])
    assert pauses == []
    assert only(tmp_path) == []


def test_redirect(mirror, tmp_path, downloader):
    file = wanted(mirror, tmp_path)
    mirror.redirects["/old/a.bz2"] = "/a.bz2"
    moved = Wanted(mirror.url + "/old/a.bz2", file.path, file.size, file.digest)
    downloader.fetch([moved])
    assert (tmp_path / "a.bz2").read_bytes() == CONTENT


def test_bad_file_between_good_ones(mirror, tmp_path, downloader):
    """The good ones that came are kept, and the next run takes only the others."""
    files = [wanted(mirror, tmp_path, f"/{n}") for n in range(5)]
    content = mirror.files.pop("/2")
    with pytest.raises(UserError, match="/2: no such file"):
        downloader.fetch(files)
    mirror.files["/2"] = content
    mirror.requests.clear()
    downloader.fetch(files)
    assert only(tmp_path) == ["0", "1", "2", "3", "4"]
    assert ("/0", 0) not in mirror.requests


def test_two_connections(mirror, tmp_path, downloader):
    mirror.slow_s = 0.05
    downloader.fetch([wanted(mirror, tmp_path, f"/{n}") for n in range(8)])
    assert mirror.most_at_once == 2


def test_free_disk_is_looked_at_first(mirror, tmp_path, downloader, monkeypatch):
    usage = shutil.disk_usage(tmp_path)._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(UserError, match=r"1,280,000 bytes are needed, and 1,000 are free"):
        report([wanted(mirror, tmp_path / "new")], False, downloader, Place(tmp_path / "new"))
    assert mirror.requests == []
    assert not (tmp_path / "new").exists()


def test_ctrl_c_ends_a_pause(mirror, tmp_path):
    """Another file fails while this one waits for the server: the command ends at once."""
    slow, missing = wanted(mirror, tmp_path, "/slow"), wanted(mirror, tmp_path, "/missing")
    mirror.faults["/slow"] = [429] * 9
    del mirror.files["/missing"]
    before = time.monotonic()
    with pytest.raises(UserError, match="no such file on the server"):
        Downloader().fetch([missing, slow])
    assert time.monotonic() - before < 6  # 429 says to wait for 7 s


def test_a_second_command_on_the_same_folder(mirror, tmp_path, downloader):
    with Place(tmp_path).locked(), pytest.raises(UserError, match="another run is writing here"):
        report([wanted(mirror, tmp_path)], False, downloader, Place(tmp_path))


def test_disk_full_on_the_way(mirror, small_disk, downloader):
    file = wanted(mirror, small_disk, content=os.urandom(3 << 20), size=False)
    with pytest.raises(OSError, match="No space left"):
        downloader.fetch([file])
    assert not (small_disk / "a.bz2").exists()


@pytest.mark.parametrize("size", [True, False])
@pytest.mark.parametrize("check", ["sha1", None])
def test_an_empty_answer_is_no_file(mirror, tmp_path, downloader, size, check):
    file = wanted(mirror, tmp_path, size=size, check=check)
    mirror.files["/a.bz2"] = b""
    with pytest.raises(RunError, match=r"a\.bz2: (the server sends nothing|.*tries)"):
        downloader.fetch([file])
    assert not (tmp_path / "a.bz2").exists()


def test_all_bytes_are_there_says_a_server_that_has_sent_none(mirror, tmp_path, downloader):
    file = wanted(mirror, tmp_path)
    mirror.faults["/a.bz2"] = [416]
    with pytest.raises(RunError, match=r"a\.bz2: the server sends nothing; run it again later"):
        downloader.fetch([file])


def test_a_link_that_leads_nowhere_is_not_replaced(mirror, tmp_path, downloader):
    file = wanted(mirror, tmp_path)
    (tmp_path / "a.bz2").symlink_to(tmp_path / "nowhere")
    with pytest.raises(UserError, match="a link that leads nowhere; remove it"):
        downloader.fetch([file])
    assert (tmp_path / "a.bz2").is_symlink()


def test_a_lock_that_is_a_pipe_does_not_hang(mirror, tmp_path, downloader):
    os.mkfifo(tmp_path / ".lock")
    with pytest.raises(UserError, match=r"\.lock: not a file; remove it"):
        report([wanted(mirror, tmp_path)], False, downloader, Place(tmp_path))
