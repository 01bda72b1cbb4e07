import asyncio
import signal
import socket
import subprocess
import sys
from html import escape
from urllib.request import urlopen

import numpy as np
import pytest
from browser import dom, screenshot
from lazy import lazy
from runs import ROOT, run

from finetune.entities import Entity
from finetune.serving import html

app = lazy("finetune.serving.app")
image = lazy("matplotlib.image")

pytest.importorskip("fastapi")
TEXT = "Ada <b>Byron</b> lived in Ulm"


class Upper:
    """Words in upper case are SHOUTs."""

    def predict(self, texts):
        return [
            [
                Entity(m, m + len(word), "SHOUT&", 0.5, word)
                for word in text.split()
                if word.isupper()
                for m in [text.index(word)]
            ]
            for text in texts
        ]


@pytest.fixture
def client():
    from starlette.testclient import TestClient

    page = app.Page({"one": Upper(), "two & more": Upper()}, 50)
    return TestClient(app.application(page, ["testserver"]), raise_server_exceptions=True)


def test_marked_is_escaped_and_keeps_the_text():
    found = html.marked("a <B> C", [Entity(2, 5, "X<", 0.987, "<B>"), Entity(6, 7, "Y", 1, "C")])
    assert found.startswith(f'a <mark style="background:{html.color("X<")}" title="X&lt; 0.99">')
    assert "&lt;B&gt;<small>X&lt;</small></mark> <mark" in found
    assert html.color("X<") != html.color("Y") == html.color("Y")


def test_form_and_result(client):
    answer = client.get("/")
    assert answer.status_code == 200
    assert "<option selected>one</option>" in answer.text
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    answer = client.post("/", data={"text": "see <i> NATO\r\nω", "model": "two & more"})
    assert answer.status_code == 200
    assert "see &lt;i&gt; <mark" in answer.text
    assert "NATO<small>SHOUT&amp;</small></mark>\nω</p>" in answer.text
    assert "<option selected>two &amp; more</option>" in answer.text
    assert "<td>0.50" in answer.text.replace('<td class="number">', "<td>")
    assert "No entities." in client.post("/", data={"text": "quiet"}).text


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ("text=", 400, "There is no text."),
        ("text=x&model=three", 400, "There is no such model."),
        ("text=" + "x" * 51, 413, "51 characters; at most 50 are accepted."),
        ("text=" + "x" * 6000, 413, "This text is too long."),
        ("text=%FF", 400, "This is not a form in UTF-8."),
        ("&".join("abcdefghij"), 400, "This is not a form in UTF-8."),
    ],
)
def test_what_is_refused(client, body, status, message):
    answer = client.post("/", content=body)
    assert answer.status_code == status
    assert f'role="alert">{escape(message)}</p>' in answer.text
    assert 'id="result"' not in answer.text


@pytest.mark.parametrize(("answer", "status"), [("slow", 408), ("left", 400)])
def test_a_reader_who_is_slow_or_leaves(monkeypatch, answer, status):
    monkeypatch.setattr("finetune.serving.app._SECONDS", 0.1)
    page = app.application(app.Page({"one": Upper()}, 50), ["testserver"])
    sent = []

    async def receive():
        if answer == "slow":
            await asyncio.sleep(60)
        return {"type": "http.disconnect"}

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/",
        "query_string": b"",
        "headers": [(b"host", b"testserver"), (b"content-length", b"100")],
    }
    asyncio.run(page(scope, receive, send))
    assert sent[0]["status"] == status
    assert (b"connection", b"close") in sent[0]["headers"]


def test_other_hosts_and_ports(client, tmp_path):
    assert client.get("/", headers={"host": "evil.example"}).status_code == 400
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, _, err = run(
            "--model", tmp_path, "--port", port, cwd=ROOT, program=("-m", "finetune.demo")
        )
    assert code == 2
    assert err.startswith(f"--host 127.0.0.1 --port {port}: ")
    assert err.count("\n") == 1


def test_names_on_the_page(tmp_path):
    for name in ("a/x", "b/x", "b/y"):
        (tmp_path / name).mkdir(parents=True)
    paths = [str(tmp_path / name) for name in ("a/x", "b/y", "b/x")]
    assert app.shown_names([*paths[:2], "hub/name"]) == {
        "x": paths[0],
        "y": paths[1],
        "hub/name": "hub/name",
    }
    assert app.shown_names(paths) == {path: path for path in paths}


@pytest.fixture
def server(saved):
    command = [sys.executable, "-m", "finetune.demo", "--model", saved, "--port", "0"]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        yield process.stderr.readline().strip()
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
        assert process.stderr.read() == ""


def test_in_a_browser(server, saved, tmp_path):
    with urlopen(server) as answer:
        assert answer.status == 200
    page = tmp_path / "submit.html"
    page.write_text(
        f'<meta charset="utf-8"><form method="post" action="{server}">'
        f'<textarea name="text">{escape(TEXT)}</textarea></form>'
        "<script>document.forms[0].submit()</script>"
    )
    found = dom(page, tmp_path)
    assert "Ulm<small>city</small></mark>" in found
    assert "&lt;b&gt;" in found
    pixels = image.imread(screenshot(page, tmp_path))[..., :3]
    assert pixels.shape[:2] == (900, 900)
    assert np.mean(pixels.min(-1) > 0.99) > 0.7  # a white page
    spread = pixels.max(-1) - pixels.min(-1)
    assert 200 < (spread > 0.15).sum() < 90_000  # with some colour on it
