import asyncio
import base64
import hashlib
import itertools
import json
import math
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from html import escape, unescape
from urllib.request import urlopen

import numpy as np
import pytest

from finetune.tagger import entities as html
from finetune.tagger.entities import Entity
from nerbert.errors import UserError
from tests.helpers.browser import dom, screenshot, session
from tests.helpers.lazy import lazy
from tests.helpers.runs import ROOT, run

app = lazy("finetune.use.app")
image = lazy("matplotlib.image")

pytest.importorskip("fastapi")
TEXT = "Ada <b>Byron</b> lived in Ulm"


class Upper:
    """Words in upper case are SHOUTs."""

    is_open = False
    min_score = 0.0
    types = ("SHOUT&",)

    def predict(self, texts, split=True, types=()):
        if types and not self.is_open:
            raise UserError("it has its own types")
        kind = types[-1] if types else "SHOUT&"
        return [
            [
                Entity(m, m + len(word), kind, 0.5, word)
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
    palette = html.Palette()
    entities = [Entity(2, 5, "X<", 0.987, "<B>"), Entity(6, 7, "Y", 1, "C")]
    found = html.marked("a <B> C", entities, palette, threshold=0.99)
    color = palette.background("X<")
    assert found.startswith(
        f'a <mark class="t0 off" data-score="0.9870" style="background:{color}" title="X&lt; 0.99">'
    )
    assert '&lt;B&gt;<small>X&lt;</small></mark> <mark class="t1"' in found
    assert palette.types == ["X<", "Y"]


TO_CONES = [
    [1, 0.3963377774, 0.2158037573],
    [1, -0.1055613458, -0.0638541728],
    [1, -0.0894841775, -1.2914855480],
]
TO_RGB = [
    [4.0767416621, -3.3077115913, 0.2309699292],
    [-1.2684380046, 2.6097574011, -0.3413193965],
    [-0.0041960863, -0.7034186147, 1.7076147010],
]
"""Matrices of OKLab (Ottosson 2020): to roots of cone responses, and from these cubed to RGB."""


def oklab(number):
    """What a screen shows of a colour: in OKLab, after clipping to sRGB."""
    lightness, chroma, hue = html.color(number)
    angle = math.radians(hue)
    wanted = [lightness / 100, chroma * math.cos(angle), chroma * math.sin(angle)]
    shown = np.clip(TO_RGB @ (TO_CONES @ np.array(wanted)) ** 3, 0, 1)
    return np.linalg.solve(TO_CONES, np.cbrt(np.linalg.solve(TO_RGB, shown)))


@pytest.mark.parametrize(("count", "least"), [(14, 0.05), (20, 0.05), (60, 0.03)])
def test_no_two_types_look_alike(count, least):
    places = [oklab(number) for number in range(count)]
    assert min(math.dist(one, two) for one, two in itertools.combinations(places, 2)) > least


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
    monkeypatch.setattr("finetune.use.app._SECONDS", 0.1)
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


@pytest.mark.parametrize(
    ("host", "status"),
    [
        *(
            (name, 400)
            for name in ("evil.example", "", "localhost.evil.example", "1.2.3.4.example")
        ),
        *((name, 400) for name in ("testserver.evil", "[::1].evil:80", "0x7f000001")),
        *((name, 200) for name in ("TestServer:8000", "127.0.0.2:8000", "[::1]:80", "10.0.0.7")),
    ],
)
def test_names_of_hosts(client, host, status):
    """A foreign page that leads its own name to this machine sends this name."""
    assert client.get("/", headers={"host": host}).status_code == status


def test_ports_that_are_taken(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, _, err = run("--model", tmp_path, "--port", port, cwd=ROOT, name="demo")
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
    command = [sys.executable, "-m", "nerbert", "demo", "--model", saved, "--port", "0"]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        yield process.stderr.readline().strip()
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
        assert process.stderr.read() == ""


HALVES = (b"", b"GET / HTTP/1.1\r\nHost: x", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\nGET /")
"""What a connection sends before it waits: nothing, half a head, or a request and half a head."""


@pytest.mark.slow
def test_many_connections_that_wait(saved):
    """They are closed in time, so that they do not take the places of readers for ever."""
    code = (
        "import sys; from finetune.use import app; app.HEAD_S = 1.0; "
        "from nerbert.commands.table import run_command; sys.exit(run_command('demo'))"
    )
    command = [sys.executable, "-c", code, "--model", saved, "--port", "0", "--host", "127.0.0.2"]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        server = process.stderr.readline().strip()
        host, port = server.removeprefix("http://").split(":")
        waiting = [socket.create_connection((host, int(port))) for _ in range(250)]
        for number, connection in enumerate(waiting):
            connection.sendall(HALVES[number % len(HALVES)])
        began = time.monotonic()
        while True:
            with suppress(OSError), urlopen(server, timeout=5) as answer:
                assert answer.status == 200
                break
            assert time.monotonic() < began + 30
            time.sleep(0.2)
        for connection in waiting:
            connection.settimeout(20)
            with suppress(ConnectionResetError):
                while connection.recv(65536):  # until it is closed
                    pass
            connection.close()
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        assert "Traceback" not in process.stderr.read()


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


def test_examples_threshold_and_two_models():
    from starlette.testclient import TestClient

    page = app.Page({"one": Upper(), "two & more": Upper()}, 500)
    client = TestClient(app.application(page, ["testserver"]))
    page = client.get("/").text
    assert page.count('name="example"') == 5
    answer = client.post("/", data={"text": "", "example": "AI", "model": "one", "other": "one"})
    assert "Yoshua Bengio" in answer.text
    assert answer.text.count("<section") == 1
    fields = {"text": "see NATO now", "model": "one", "other": "two & more", "threshold": "0.6"}
    answer = client.post("/", data=fields)
    assert answer.text.count("<section") == 2
    assert answer.text.count('class="t0 off"') == 4  # a mark and a row on each side
    assert answer.text.count('id="type-0"') == 1
    assert client.post("/", data={"text": "x", "threshold": "2"}).status_code == 400


def test_the_script_is_the_one_that_the_policy_allows(client):
    answer = client.get("/")
    script = answer.text.split("<script>")[1].split("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in answer.headers["content-security-policy"]


def test_api(client):
    body = {"texts": ["see NATO", "a UN b WHO"], "model": "two & more"}
    answer = client.post("/api/predict", json=body)
    assert answer.status_code == 200
    found = answer.json()
    assert found["model"] == "two & more"
    assert [[one["text"] for one in text["entities"]] for text in found["texts"]] == [
        ["NATO"],
        ["UN", "WHO"],
    ]
    assert found["texts"][0]["entities"][0] == {
        "start": 4,
        "end": 8,
        "type": "SHOUT&",
        "score": 0.5,
        "text": "NATO",
    }
    answer = client.post("/api/predict", json={**body, "threshold": 0.6})
    assert answer.json()["texts"] == [{"entities": []}] * 2


def test_a_single_text_and_the_json_of_the_page(client):
    one = client.post("/api/predict", json={"text": "see NATO"}).json()
    assert one["texts"] == client.post("/api/predict", json={"texts": ["see NATO"]}).json()["texts"]
    assert client.post("/api/predict", json={"text": "x", "texts": ["y"]}).status_code == 422
    assert client.post("/api/predict", json={"text": 1}).status_code == 422
    page = client.post("/", data={"text": 'see NATO & "</pre>', "model": "one"}).text
    (side,) = json.loads(unescape(page.split('<pre id="json" hidden>')[1].split("</pre>")[0]))
    assert (side["model"], side["text"]) == ("one", 'see NATO & "</pre>')
    assert [entity["text"] for entity in side["entities"]] == ["NATO"]
    assert "1 type of one</summary>SHOUT&amp;<" in page


DROP = """
const dropped = new DataTransfer();
dropped.items.add(new File(["from a file"], "a.txt", { type: "text/plain" }));
text.dispatchEvent(new DragEvent("drop", { dataTransfer: dropped, cancelable: true }));
undefined
"""


def test_the_slider_starts_where_the_model_says():
    from starlette.testclient import TestClient

    careful = Upper()
    careful.min_score = 0.6
    page = app.Page({"one": Upper(), "careful": careful}, 50)
    client = TestClient(app.application(page, ["testserver"]))
    for model, start, off in (("one", 0.0, False), ("careful", 0.6, True)):
        shown = client.post("/", data={"text": "see NATO", "model": model}).text
        assert f'value="{start}"' in shown
        assert (" off" in shown.split("<mark")[1].split(">")[0]) == off
        found = client.post("/api/predict", json={"texts": ["see NATO"], "model": model}).json()
        assert len(found["texts"][0]["entities"]) == (not off)
    everything = {"texts": ["see NATO"], "model": "careful", "threshold": 0}
    assert len(client.post("/api/predict", json=everything).json()["texts"][0]["entities"]) == 1


def test_types_of_ones_own():
    from starlette.testclient import TestClient

    opened = Upper()
    opened.is_open = True
    page = app.Page({"closed": Upper(), "open": opened}, 50)
    client = TestClient(app.application(page, ["testserver"]))
    assert '<input id="types" name="types"' in client.get("/").text
    form = {"text": "see NATO", "model": "open", "other": "closed", "types": " big club,, a & b "}
    shown = client.post("/", data=form).text
    assert 'value="big club, a &amp; b"' in shown
    assert "<small>a &amp; b</small>" in shown
    assert "<small>SHOUT&amp;</small>" in shown
    body = {"texts": ["see NATO"], "types": ["club"], "model": "open"}
    (found,) = client.post("/api/predict", json=body).json()["texts"]
    assert found["entities"][0]["type"] == "club"


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({"texts": ["x"], "types": ["y"]}, 400, "it has its own types"),
        ({"texts": ["x"], "model": "three"}, 400, "There is no such model."),
        ({"texts": [" "]}, 400, "There is no text."),
        ({"texts": ["x" * 30] * 2}, 413, "60 characters; at most 50 are accepted."),
        ({"texts": []}, 422, "texts: List should have at least 1 item"),
        ({"texts": ["x"], "speed": 1}, 422, "speed: Extra inputs are not permitted"),
        ({}, 422, "texts: Field required"),
        ("[", 422, "Invalid JSON"),
        ("x" * 6000, 413, "This text is too long."),
    ],
)
def test_what_the_api_refuses(client, body, status, message):
    content = body if isinstance(body, str) else json.dumps(body)
    answer = client.post("/api/predict", content=content)
    assert answer.status_code == status
    assert message in answer.json()["error"]


def test_openapi_and_its_page(client):
    found = client.get("/openapi.json").json()
    post = found["paths"]["/api/predict"]["post"]
    schema = post["requestBody"]["content"]["application/json"]["schema"]
    assert set(schema["properties"]) == {"texts", "model", "threshold", "split", "types"}
    assert {"200", "400", "413", "422"} <= set(post["responses"])
    page = client.get("/api").text
    assert "curl http://testserver/api/predict" in page
    assert "one, two &amp; more" in page


SHOWN = "[...document.querySelectorAll('mark:not(.off)')].map(one => one.innerText)"
BACKGROUND = "getComputedStyle(document.querySelector('mark.t0')).backgroundColor"


@pytest.mark.slow
def test_a_reader_with_a_keyboard(server, tmp_path):
    """Legend, threshold, Ctrl and Enter, and the sign of progress, in a real browser."""

    async def read():
        async with session(server, tmp_path) as tab:
            await tab.until("document.activeElement.id === 'text'")
            await tab("Input.insertText", text="Ada Byron lived in Ulm")
            await tab.key("Enter", 13, modifiers=2)
            await tab.until("document.querySelector('mark')")
            await tab.until("document.activeElement.innerText === 'Result'")
            assert [one.split("\n")[0] for one in await tab.js(SHOWN)] == [
                "Ada Byronperson",
                "Ulmcity",
            ]
            names = await tab.js(
                "[...document.querySelectorAll('input, select, textarea')].map(one => "
                "one.labels.length > 0)"
            )
            assert all(names)
            # The next stop of the Tab key is the first box of the legend; Space unticks it.
            await tab.key("Tab", 9)
            assert await tab.js("document.activeElement.id") == "type-0"
            colored = await tab.js(BACKGROUND)
            await tab("Input.dispatchKeyEvent", type="keyDown", key=" ", code="Space", text=" ")
            await tab("Input.dispatchKeyEvent", type="keyUp", key=" ", code="Space")
            assert await tab.js(BACKGROUND) == "rgba(0, 0, 0, 0)" != colored
            assert await tab.js("document.querySelector('tr.t0').offsetHeight") == 0
            found = json.loads(await tab.js("shown()"))
            assert [one["text"] for one in found[0]["entities"]] == ["Ada Byron", "Ulm"]
            dark = [{"name": "prefers-color-scheme", "value": "dark"}]
            await tab("Emulation.setEmulatedMedia", features=dark)
            await tab.js(
                "threshold.value = 1; threshold.dispatchEvent(new Event('input')); undefined"
            )
            # What is hidden has the colour of the text around it, also in the dark.
            colors = await tab.js(
                "[...document.querySelectorAll('mark.off'), document.body].map(one => "
                "getComputedStyle(one).color)"
            )
            assert len(colors) == 3
            assert len(set(colors)) == 1
            assert json.loads(await tab.js("shown()"))[0]["entities"] == []
            await tab.js("location.hash = new URLSearchParams({text: 'a & <b>\\nα'}); undefined")
            await tab.until("text.value === 'a & <b>\\nα'")
            await tab.js(DROP)
            await tab.until("text.value === 'from a file'")
            assert await tab.js(SHOWN) == []
            assert await tab.js("document.getElementById('shown-threshold').value") == "1.00"
            await tab.js(
                "form.addEventListener('submit', event => event.preventDefault()); "
                "form.requestSubmit()"
            )
            assert await tab.js("document.getElementById('progress').innerText") == "Tagging …"
            assert await tab.js("document.body.getAttribute('aria-busy')") == "true"
            await tab.picture(tmp_path / "page.png")

    asyncio.run(read())
    assert (tmp_path / "page.png").stat().st_size > 10_000
