"""Servers that are wrong or hostile: one line, and no file of the user is touched."""

import gzip
import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress

import pytest

from nerbert.commands.table import main
from nerbert.errors import RunError, UserError
from nerbert.fetch import client, download
from nerbert.fetch.download import Downloader
from nerbert.fetch.wanted import Wanted
from nerbert.storage.places import Place
from tests.helpers.mirror import CUT

WIKI, DATE = "ukwiki", "20250201"
NAME = f"{WIKI}-{DATE}-pages-articles-multistream.xml.bz2"
STATUS = f"/{WIKI}/{DATE}/dumpstatus.json"
CONTENT = b"dump" * 1000


@pytest.fixture
def wiki(mirror):
    mirror.add_dump(WIKI, DATE, {"articlesmultistreamdump": {NAME: CONTENT}})
    return mirror


def fetch(mirror, capsys, folder, *flags):
    arguments = ["--wiki", WIKI, "--mirror", mirror.url, "--output", str(folder / "out"), *flags]
    code = main(["fetch", "dump", *arguments])
    return code, *capsys.readouterr()


def entry(mirror):
    return json.loads(mirror.files[STATUS])["jobs"]["articlesmultistreamdump"]["files"][NAME]


def listing(**files):
    job = {"status": "done", "files": files}
    return json.dumps({"jobs": {"articlesmultistreamdump": job}}).encode()


@pytest.mark.parametrize(
    "name",
    [
        "{folder}/evil-multistream.xml.bz2",
        f"../{NAME}",
        f"..\\{NAME}",
        f"x/{NAME}",
        f".{NAME}",
        NAME.replace("ukwiki", "enwiki"),
        NAME.replace(DATE, "20250101"),
        NAME.replace("pages", "\x1b[31mpages"),
        NAME.replace(".xml", "\n.xml"),
        NAME.replace("stream", "stream1" * 1000),
    ],
)
def test_names_of_other_files(wiki, capsys, tmp_path, name):
    """Every name that the pattern of articles lets through, and some that it does not."""
    name = name.format(folder=tmp_path)
    wiki.files[STATUS] = listing(**{name: entry(wiki), NAME: entry(wiki)})
    name = name.replace("-multistream", "-pages-articles-multistream")
    wiki.files[STATUS] = wiki.files[STATUS].replace(b"evil-multi", b"evil-pages-articles-multi")
    code, _, err = fetch(wiki, capsys, tmp_path)
    written = {path.name for path in tmp_path.rglob("*") if path.is_file()}
    assert written <= {NAME, ".lock"}
    assert len(err.strip().splitlines()) == 1
    assert err.rstrip("\n").isprintable()
    assert code == 0 or "no file of this dump" in err


@pytest.mark.parametrize(
    "url",
    ["@127.0.0.1:9/x", "http://127.0.0.1:9/x", "/../x", f"/ukwiki/../{NAME}", "//evil/x", "", 7],
)
def test_addresses_of_other_hosts(wiki, capsys, tmp_path, url):
    wiki.files[STATUS] = listing(**{NAME: {**entry(wiki), "url": url}})
    code, _, err = fetch(wiki, capsys, tmp_path)
    assert code == 1, err
    assert len(err.strip().splitlines()) == 1
    assert not (tmp_path / "out" / NAME).exists()


@pytest.mark.parametrize(
    "status",
    [
        listing(**{NAME: []}),
        listing(**{NAME: {"url": "/x", "size": "many"}}),
        listing(**{NAME: {"url": "/x", "size": -1}}),
        listing(**{NAME: {"url": "/x", "size": 1, "sha1": "../../x"}}),
        json.dumps(
            {"jobs": {"articlesmultistreamdump": {"status": "done", "files": [1]}}}
        ).encode(),
        json.dumps({"jobs": [1]}).encode(),
        b'{"jobs": ' * 100_000,
        b"[" * 1_000_000,
        b"\xff\xfe\x00",
        listing(),
        listing(
            **{
                f"{WIKI}-{DATE}-abstract.xml.bz2": {
                    "url": f"/{WIKI}-{DATE}-abstract.xml.bz2",
                    "size": 3,
                }
            }
        ),
    ],
)
@pytest.mark.parametrize("date", ["latest", DATE])
def test_other_json(wiki, capsys, tmp_path, status, date):
    wiki.files[STATUS] = status
    code, out, err = fetch(wiki, capsys, tmp_path, "--date", date)
    assert (code, out) == (1, ""), err
    assert len(err.strip().splitlines()) == 1


@pytest.mark.parametrize("parts", ["9" * 5000, "1-" + "9" * 5000, "²"])
def test_parts_of_many_digits(wiki, capsys, tmp_path, parts):
    code, _, err = fetch(wiki, capsys, tmp_path, "--parts", parts)
    assert code == 2
    assert len(err.strip().splitlines()) == 1


def test_the_missing_table_and_the_wiki_are_named(wiki, capsys, tmp_path):
    _, _, err = fetch(wiki, capsys, tmp_path, "--tables")
    assert f"({DATE} lacks pagepropstable, langlinkstable); try another --mirror" in err
    _, _, err = fetch(wiki, capsys, tmp_path, "--tables", "--date", DATE)
    assert "pagepropstable is 'missing' there; take an earlier --date" in err
    arguments = ["--mirror", wiki.url, "--output", str(tmp_path)]
    assert main(["fetch", "dump", "--wiki", "uz", *arguments]) == 2
    assert "/uzwiki/: no such file on the server; check name and date" in capsys.readouterr().err


def wanted(mirror, folder, size=True):
    mirror.files["/a"] = CONTENT
    return Wanted(mirror.url + "/a", Place(folder / "a"), len(CONTENT) if size else None)


def serve_raw(answers):
    """A server that sends these bytes, one answer for each connection, and then closes it."""
    listener = socket.create_server(("127.0.0.1", 0))
    code = (
        "import socket, sys, time, json\n"
        "listener = socket.socket(fileno=int(sys.argv[1]))\n"
        "for text, repeat in json.loads(sys.argv[2]):\n"
        "    connection, _ = listener.accept()\n"
        "    connection.recv(65536)\n"
        "    try:\n"
        "        connection.sendall(text.encode('latin-1'))\n"
        "        for _ in range(repeat): connection.sendall(b'x' * 65536)\n"
        "    except OSError: pass\n"
        "    connection.close()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(listener.fileno()), json.dumps(answers)],
        pass_fds=[listener.fileno()],
    )
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/a"
    listener.close()
    return process, url


@pytest.fixture
def raw():
    processes = []

    def start(*answers):
        process, url = serve_raw(answers)
        processes.append(process)
        return url

    yield start
    for process in processes:
        process.kill()
        process.wait()


def test_a_body_without_end_stops_at_the_published_size(raw, tmp_path, downloader):
    url = raw(*[("HTTP/1.1 200 OK\r\n\r\n", 10_000)] * 2)
    with pytest.raises(RunError, match="checksum mismatch after two downloads"):
        downloader.fetch([Wanted(url, Place(tmp_path / "a"), 200_000)])
    assert [path.name for path in tmp_path.iterdir()] == []


def test_a_body_without_end_and_without_a_size(raw, tmp_path, downloader, monkeypatch):
    monkeypatch.setattr(download, "MOST_UNKNOWN", 1 << 20)
    url = raw(("HTTP/1.1 200 OK\r\n\r\n", 10_000))
    with pytest.raises(UserError, match="more than 1,048,576 bytes of a file without a known size"):
        downloader.fetch([Wanted(url, Place(tmp_path / "a"))])
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 2 << 20


@pytest.mark.parametrize("encoding", ["", "Content-Encoding: gzip\r\n"])
def test_a_list_without_end(raw, encoding, monkeypatch):
    """As it comes, and as a small file of gzip that would take a thousand times its size."""
    monkeypatch.setattr(client, "MOST_TEXT", 1 << 20)
    body = gzip.compress(bytes(8 << 20)).decode("latin-1") if encoding else ""
    repeat = 0 if encoding else 10_000
    url = raw((f"HTTP/1.1 200 OK\r\n{encoding}\r\n{body}", repeat))
    with pytest.raises(RunError, match="more than 1,048,576 bytes, which is no list of files"):
        client.Client().text(url)


@pytest.mark.parametrize(
    "headers", ["Content-Encoding: br", "Content-Encoding: gzip", "Content-Encoding: \xff"]
)
def test_encodings_that_nobody_asked_for(raw, headers):
    url = raw((f"HTTP/1.1 200 OK\r\n{headers}\r\nContent-Length: 3\r\n\r\nabc", 0))
    with pytest.raises(RunError, match=r"damaged|which we did not ask for"):
        client.Client().text(url)


@pytest.mark.parametrize("header", ["Content-Length: abc", "Content-Length: " + "9" * 5000])
def test_odd_lengths(raw, header):
    url = raw((f"HTTP/1.1 200 OK\r\n{header}\r\nConnection: close\r\n\r\n", 0))
    with suppress(RunError):
        assert client.Client([].append).size(url) is None


@pytest.mark.parametrize("header", ["²", "-7", "soon", "9" * 400, ""])
def test_odd_retry_after(raw, tmp_path, downloader, pauses, header):
    again = f"HTTP/1.1 429 Busy\r\nRetry-After: {header}\r\nContent-Length: 0\r\n\r\n"
    url = raw((again, 0), ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", 0))
    downloader.fetch([Wanted(url, Place(tmp_path / "a"), 3)])
    assert pauses == [1.0]


@pytest.mark.parametrize(
    ("location", "message"),
    [
        ("http://[::1", "broken address"),
        ("http://localhost.example/a", "'localhost.example', which is no known host"),
        ("http://169.254.169.254/latest/meta-data", "no known host"),
        ("file:///etc/passwd", "file://None"),
        ("//evil.example/a", "no known host"),
        ("/a", "more than 5 redirects"),
    ],
)
def test_redirects_stay_on_known_hosts(mirror, tmp_path, downloader, pauses, location, message):
    file = wanted(mirror, tmp_path)
    mirror.redirects["/a"] = location
    with pytest.raises(UserError, match=message):
        downloader.fetch([file])
    assert pauses == []
    assert list(tmp_path.iterdir()) == []


def test_redirects_to_hosts_of_the_table(monkeypatch):
    place = "https://huggingface.co/datasets/x"
    for location in ("https://cdn-lfs.hf.co/x", "https://raw.githubusercontent.com/x", "/y"):
        assert client._redirected(place, place, location).startswith("https://")
    with pytest.raises(UserError, match=r"http://huggingface\.co"):
        client._redirected(place, place, "http://huggingface.co/x")


def test_a_server_that_always_cuts_at_the_same_byte(mirror, tmp_path, pauses):
    """No ETag and no checksum: each try begins anew, and none comes farther."""
    mirror.etags = False
    file = wanted(mirror, tmp_path)
    mirror.faults["/a"] = [CUT] * 100
    with pytest.raises(RunError, match="6 tries"):
        Downloader(pauses.append).fetch([file])
    assert len(pauses) <= 6


def test_a_part_without_content_range(raw, tmp_path, downloader, pauses):
    answer = "HTTP/1.1 206 Partial\r\nContent-Length: 4000\r\nETag: x\r\n\r\nabc"
    url = raw(*[(answer, 0)] * 50)
    with pytest.raises(RunError, match="6 tries"):
        downloader.fetch([Wanted(url, Place(tmp_path / "a"), 4000)])
    assert len(pauses) <= 6


@pytest.mark.parametrize("name", [".a.part", ".a.part.json"])
def test_links_in_place_of_our_files(mirror, tmp_path, downloader, name):
    """A link plus a matching record would make us write through the link."""
    file = wanted(mirror, tmp_path)
    precious = tmp_path / "precious"
    precious.write_bytes(CONTENT[:100])
    (tmp_path / ".a.part.json").write_text(json.dumps({"url": file.url, "etag": "x"}))
    (tmp_path / name).unlink(missing_ok=True)
    (tmp_path / name).symlink_to(precious)
    with pytest.raises(UserError, match=f"{name}: is a link; remove it"):
        downloader.fetch([file])
    assert precious.read_bytes() == CONTENT[:100]


@pytest.mark.parametrize("facts", ["[1]", "7", '{"url": 7, "etag": [1]}', "null", "{"])
def test_odd_records_of_an_earlier_download(mirror, tmp_path, downloader, facts):
    file = wanted(mirror, tmp_path)
    (tmp_path / ".a.part").write_bytes(b"old")
    (tmp_path / ".a.part.json").write_text(facts)
    downloader.fetch([file])
    assert (tmp_path / "a").read_bytes() == CONTENT


@pytest.mark.parametrize("page", [b"\n <!DOCTYPE html><p>Log in", b"\xef\xbb\xbf<HTML>"])
def test_a_login_page_is_no_file(mirror, tmp_path, downloader, page):
    mirror.files["/a"] = page
    with pytest.raises(RunError, match="sends a page of HTML instead of this file"):
        downloader.fetch([Wanted(mirror.url + "/a", Place(tmp_path / "a"))])
    assert list(tmp_path.iterdir()) == []


def test_no_network_is_one_line_at_once(tmp_path, capsys):
    began = time.monotonic()
    arguments = ["--wiki", WIKI, "--mirror", "http://nowhere.invalid", "--output", str(tmp_path)]
    assert main(["fetch", "dump", *arguments]) == 1
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert err.endswith("is there a network?\n")
    assert time.monotonic() - began < 15


def test_sigterm_has_its_line(wiki, tmp_path):
    wiki.slow_s = 30
    command = [sys.executable, "-m", "nerbert", "fetch", "dump", "--wiki", WIKI]
    command += ["--mirror", wiki.url, "--output", str(tmp_path)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 30
    while not wiki.requests:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGTERM)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert err == f"Stopped. Run the same command again to continue {tmp_path}.\n"
