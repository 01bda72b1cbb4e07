"""Attacks that end without a word where nobody looks: what is sent, believed, shared and judged."""

from __future__ import annotations

import io
import json
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any

from nerbert.errors import RunError, UserError
from tests.attacks.kill import same_bytes
from tests.attacks.models import taggers

_ODD = (None, True, -1, 0, 2, 1.5, 10**400, "", "x", "\ud800", [], [1], {}, {"a": 1}, [[[]]])
_TABLES = (".npy", ".json")
_TEXT = "Ada Byron lived in Ulm for years, and Emmy Noether in Rom."


def _nerbert(*arguments: object, streams: str = "") -> tuple[int, str, str]:
    """Runs a command by the shell; its exit code, output and errors."""
    line = f'"{sys.executable}" -m nerbert "$@" {streams}'
    command = ["sh", "-c", line, "sh", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    return done.returncode, done.stdout, done.stderr


def _one_line(work: Callable[[], Any]) -> Any:
    """What `work` returns, or the one line that it ends with; a text says what is wrong."""
    try:
        return work()
    except (UserError, RunError) as error:
        return error if "\n" not in str(error) else f"several lines: {error}"
    except Exception as error:
        return f"{error!r:.300}"


@cache
def demo() -> Path:
    """A run of the demo dump."""
    folder = Path(tempfile.mkdtemp()) / "demo"
    if (done := _nerbert("corpus", "--output", folder))[0]:
        raise RuntimeError(done[2])
    return folder


@cache
def open_tagger() -> Any:
    """A small tagger with an open head."""
    from finetune.tagger.tagger import Tagger

    folder = demo().parent / "open"
    flags = ("--recipe", "open-debug", "--max-steps", 120, "--output", folder)
    if (done := _nerbert("pretrain", "--corpus", demo() / "corpus", *flags))[0]:
        raise RuntimeError(done[2])
    return Tagger.load(folder, device="cpu")


def _spoil(path: Path, draw: random.Random) -> None:
    """Removes, cuts, empties or flips a file."""
    content = bytearray(path.read_bytes())
    kind = draw.choice(["removed", "cut", "emptied", "flipped"])
    if kind == "removed":
        path.unlink()
    elif kind == "flipped" and content:
        content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
        path.write_bytes(content)
    else:
        path.write_bytes(content[: draw.randrange(len(content) or 1)] if kind == "cut" else b"")


def _edited(value: Any, draw: random.Random) -> Any:
    """JSON with another value at a random place."""
    if isinstance(value, dict) and value and draw.random() < 0.8:
        key = draw.choice(list(value))
        return {**value, key: _edited(value[key], draw)}
    if isinstance(value, list) and value and draw.random() < 0.8:
        place = draw.randrange(len(value))
        return [*value[:place], _edited(value[place], draw), *value[place + 1 :]]
    return draw.choice(_ODD)


def push(folder: Path, draw: random.Random) -> str:
    """A file of a corpus is spoilt, or one of the user's lies in its folder."""
    from finetune.use.sending import files_to_send
    from nerbert.storage.folders import STATE

    corpus = folder / "corpus"
    shutil.copytree(demo() / "corpus", corpus)
    usual = files_to_send(corpus, STATE)
    foreign = draw.choice([".env", "notes.txt", "train/id_rsa", "link", ""])
    if foreign == "link":
        (corpus / "link").symlink_to(demo() / "manifest.json")
    elif foreign:
        (corpus / foreign).write_text("secret")
    else:
        _spoil(corpus / draw.choice([name for name in usual if name != "README.md"]), draw)
    names = _one_line(lambda: files_to_send(corpus, STATE))
    if isinstance(names, UserError) or (not foreign and names == usual):
        return ""  # a flipped bit has the same size
    return f"{foreign or 'spoilt'}: {names}"


def reproduce(folder: Path, draw: random.Random) -> str:
    """`steps.json` is edited, or the outputs of a step are changed."""
    from finetune.papers.reproduce import run
    from finetune.papers.reproduce.plan import Plan, ReproduceOptions

    plan = Plan.of(ReproduceOptions(paper="dualner", scale="debug", output=str(folder)))
    steps = {}
    for step in plan.steps:
        (folder / step.name).mkdir(exist_ok=True)
        (folder / step.name / "report.json").write_text("{}")
        outputs = run._outputs(folder, step)
        steps[step.name] = {
            "command": step.command,
            "seconds": 1.0,
            "done": True,
            "outputs": outputs,
        }
    record: Any = {"paper": "dualner", "scale": "debug", "steps": steps}
    chosen = draw.choice(plan.steps).name
    is_edited = draw.random() < 0.5
    if is_edited:
        record = _edited(record, draw)
    elif draw.random() < 0.5:
        shutil.rmtree(folder / chosen)
    else:
        (folder / chosen / "report.json").write_text("")
    try:
        (folder / run.STEPS).write_text(json.dumps(record))
    except UnicodeEncodeError:
        return ""
    text = _one_line(lambda: run._outlook(plan, run._record(folder), folder))
    if isinstance(text, UserError) or (isinstance(text, str) and text.startswith(plan.title)):
        believed = (
            f"\n{chosen}: " in text and "(done)" in text.split(f"\n{chosen}: ")[1].split("\n")[0]
        )
        return "" if is_edited or not believed else f"{chosen} counts as done"
    return str(text)


def link(folder: Path, draw: random.Random) -> str:
    """A table of a run is spoilt or exchanged, or the run is not finished."""
    from finetune.use.linking import Linker

    run = folder / "run"
    shutil.copytree(demo(), run)
    names = ["Albert Einstein", "Berlin", "Bern", "Nothing Such"]
    usual = Linker.open(run).links(names)
    entities = run / "entities"
    kind = draw.choice(["spoilt", "order", "text", "unfinished", "edited"])
    if kind == "spoilt":
        _spoil(draw.choice([path for path in entities.iterdir() if path.suffix in _TABLES]), draw)
    elif kind == "order":
        content = (entities / "keys.npy").read_bytes()
        (entities / "keys.npy").write_bytes(content[:128] + content[128:][::-1])
    elif kind == "text":
        path = draw.choice([entities / "classes.json", entities / "keys.npy"])
        path.write_bytes(b"[" + b" " * (path.stat().st_size - 2) + b"]")
    else:
        state = json.loads((entities / "stage.json").read_text())
        changed = {**state, "complete": False} if kind == "unfinished" else _edited(state, draw)
        try:
            (entities / "stage.json").write_text(json.dumps(changed))
        except UnicodeEncodeError:
            return ""
    found = _one_line(lambda: Linker.open(run).links(names))
    # A flipped bit of the same size may be in a row that nobody asks for.
    return "" if isinstance(found, UserError) or found == usual else f"{kind}: {found}"


def onnx_facts(folder: Path, draw: random.Random) -> str:
    """`export.json` is edited."""
    from finetune.tagger.tagger import Tagger

    one, _ = taggers()
    shutil.copytree(one, folder / "tagger")
    path = folder / "tagger" / "onnx" / "export.json"
    record = json.loads(path.read_text())
    try:
        path.write_text(json.dumps(_edited(record, draw)))
    except UnicodeEncodeError:
        return ""
    usual = Tagger.load(one, device="cpu", backend="torch").predict(_TEXT)
    backend = draw.choice(["onnx", "auto"])
    found = _one_line(
        lambda: Tagger.load(folder / "tagger", device="cpu", backend=backend).predict(_TEXT)
    )
    if isinstance(found, UserError | RunError):
        return ""
    types = [(e.start, e.end, e.type) for e in found] if not isinstance(found, str) else found
    return "" if types == [(e.start, e.end, e.type) for e in usual] else f"{backend}: {found}"


def threads(_: Path, draw: random.Random) -> str:
    """Eight threads ask for their own types, or pickle the tagger."""
    tagger, names = open_tagger(), ["scientist", "city", "person", "river", "album"]
    wanted = [draw.sample(names, draw.randrange(1, 4)) for _ in range(20)]
    alone = [tagger.predict(_TEXT, types=types) for types in wanted]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda types: tagger.predict(_TEXT, types=types), wanted))
    return "" if together == alone else "types of another thread"


def judges(folder: Path, draw: random.Random) -> str:
    """A file of judgements is edited, doubled, or that of another corpus."""
    from nerbert.text.corpus import load_corpus
    from pipeline.audit.judgements import QUESTIONS, read_judgements, table

    mark = load_corpus(demo()).fingerprint
    rows = [
        {"id": f"{n}:0:0", "number": 0, "category": "City", "source": "link", "others": []}
        | dict.fromkeys(QUESTIONS, draw.choice([True, False, None]))
        | {"missed": draw.randrange(3)}
        for n in range(5)
    ]
    content: Any = {"mentions": rows, "fingerprint": mark}
    kind = draw.choice(["edited", "doubled", "other"])
    if kind == "edited":
        content["mentions"] = _edited(rows, draw)
    elif kind == "doubled":
        content["mentions"] = [*rows, draw.choice(rows)]
    else:
        content["fingerprint"] = draw.choice(_ODD[:-5])
    path = folder / "audit.json"
    path.write_text(json.dumps(content))
    read = _one_line(lambda: read_judgements(str(path), mark))
    if isinstance(read, UserError):
        return ""
    if isinstance(read, str) or kind != "edited":
        return f"{kind}: {read}"
    shown = _one_line(lambda: table(read).encode())
    return "" if isinstance(shown, bytes) else f"{kind}: {shown}"


def open_types(_: Path, draw: random.Random) -> str:
    """Names of types that are odd, alike, or too long."""
    tagger = open_tagger()
    odd = [
        "",
        " ",
        "City",
        "CITY",
        "ci\u200bty",
        "a,b",
        "word " * 700,
        None,
        5,
        "\u202e",
        "x" * 5000,
    ]
    types: Any = [
        draw.choice(["city", "scientist", "river", *odd]) for _ in range(draw.randrange(1, 4))
    ]
    types = draw.choice([types, str(types[0]), {str(n): one for n, one in enumerate(types)}])
    found = _one_line(lambda: (tagger.use_types(types), tagger.predict(_TEXT))[1])
    if isinstance(found, str):
        return f"{types!r:.200}: {found}"
    return ""


_STREAMS = ("2>&-", "<&-", ">&-", ">/dev/full", "2>/dev/full", "<&- 2>&-", "<&- >&- 2>&-")


def streams(folder: Path, draw: random.Random) -> str:
    """A command whose standard streams are closed or full."""
    how = draw.choice(_STREAMS)
    one, _ = taggers()
    command: Sequence[object] = draw.choice(
        [
            ["corpus", "--output", folder / "out"],
            ["predict", "--model", one, "--device", "cpu", _TEXT],
            ["audit", demo(), "--sample", 3, "--output", folder / "x.html"],
            ["corpus", "--print-recipe"],
        ]
    )
    code, out, err = _nerbert(*command, streams=how)
    is_lost = ">&-" in how.replace("2>&-", "") or ">/dev/full" in how.replace("2>/dev/full", "")
    if "Traceback" in err or code not in (0, 1):
        return f"{how} {command[0]}: {code} {err[-200:]}"
    if (code == 0) == is_lost:
        return f"{how} {command[0]}: exit code {code}"
    return "" if is_lost or out else f"{how} {command[0]}: no output"


def state_files(folder: Path, draw: random.Random) -> str:
    """A record of a stage, or the manifest, is edited, and the run goes on."""
    shutil.copytree(demo(), folder / "out")
    names = ["documents/stage.json", "entities/stage.json", "corpus/stage.json", "manifest.json"]
    path = folder / "out" / draw.choice(names)
    try:
        path.write_text(json.dumps(_edited(json.loads(path.read_text()), draw)))
    except UnicodeEncodeError:
        return ""
    code, _, err = _nerbert("corpus", "--output", folder / "out")
    if "Traceback" in err or code not in (0, 2):
        return f"{path.name}: {code} {err[-300:]}"
    return "" if code or same_bytes(folder / "out", demo()) else f"{path.name}: other bytes"


def quiet(case: Callable[[Path, random.Random], str]) -> Callable[[Path, random.Random], str]:
    """A case that prints nothing."""

    def work(folder: Path, draw: random.Random) -> str:
        with redirect_stdout(io.StringIO()):
            return case(folder, draw)

    return work


CASES = {
    "push: spoilt, foreign files, links": push,
    "reproduce: steps, outputs": reproduce,
    "link: spoilt, unfinished runs": link,
    "ONNX: edited facts": onnx_facts,
    "threads": threads,
    "judges": judges,
    "open types": open_types,
    "streams: closed, full": streams,
    "state files": state_files,
}
