"""Attacks on checkpoints and exports: mixed and torn files, and odd texts."""

from __future__ import annotations

import json
import random
import shutil
import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from finetune.data import conll
from nerbert.errors import RunError, UserError
from tests.helpers.corpora import simple_corpus
from tests.helpers.toy import QUICK, rows

_TEXTS = ["Ada Byron lived in Ulm for years.", "Emmy Noether lived in Rom", "", "x" * 300]


@cache
def taggers() -> tuple[Path, Path]:
    """Two small taggers of other words and types, with ONNX files."""
    import torch
    from datasets import disable_progress_bars
    from transformers.utils import logging

    from finetune.tagger.tagger import Tagger
    from finetune.use.onnx_file import export_onnx
    from nerbert.text.corpus import Corpus
    from pretrain.training import features, tiny

    disable_progress_bars()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    folder = Path(tempfile.mkdtemp())
    corpus = Corpus.open(str(simple_corpus(folder / "corpus")))
    sentences = features.load_split(corpus, "train", cache_dir=str(folder / "cache"))
    found = []
    for number, names in enumerate(({}, {"person": "PER", "city": "LOC"})):
        torch.manual_seed(number)
        base = folder / f"base-{number}"
        words = sentences if not number else sentences.map(_reversed)
        tiny.build(words, base)
        path = folder / f"tagger-{number}"
        data = rows(48, **names)
        Tagger(str(base), replace(QUICK, head="linear")).fit(data).save(path)
        export_onnx(str(path), ("onnx",))
        found.append(path)
    return found[0], found[1]


def _reversed(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "tokens": [token[::-1] for token in row["tokens"]]}


def _tags(folder: Path, backend: str) -> Any:
    """The mentions that a tagger finds, or the one line that it ends with."""
    from finetune.tagger.tagger import Tagger

    try:
        return Tagger.load(folder, device="cpu", backend=backend).predict(_TEXTS)
    except (UserError, RunError) as error:
        return error if "\n" not in str(error) else f"several lines: {error}"


def mixed(folder: Path, draw: random.Random) -> str:
    """A file of a checkpoint is removed, cut, emptied, or that of another checkpoint."""
    one, other = taggers()
    shutil.copytree(one, folder / "tagger")
    names = [path.name for path in one.iterdir() if path.is_file()]
    path = folder / "tagger" / draw.choice(names)
    kind = draw.choice(["removed", "cut", "emptied", "other", "no JSON", "list"])
    content = path.read_bytes()
    if kind == "removed":
        path.unlink()
    elif kind == "other":
        # The names of types stand in config.json only, so those of another tagger are as good.
        if path.name == "config.json":
            return ""
        shutil.copy(other / path.name, path)
    else:
        changed = {"cut": content[: draw.randrange(len(content))], "emptied": b"", "list": b"[1]"}
        path.write_bytes(changed.get(kind, b"\xff{"))
    try:
        found = _tags(folder / "tagger", "torch")
    except Exception as error:
        return f"{path.name} {kind}: {error!r:.300}"
    if isinstance(found, UserError | RunError) or found == _tags(one, "torch"):
        return ""
    if kind == "other" and path.name == "model.safetensors":
        return ""  # a whole other model of the same shape
    return f"{path.name} {kind}: other tags"


def onnx(folder: Path, draw: random.Random) -> str:
    """The ONNX file is that of another tagger, or torn; the record says that it is right."""
    one, other = taggers()
    shutil.copytree(one, folder / "tagger")
    path = folder / "tagger" / "onnx" / "model.onnx"
    kind = draw.choice(["other", "cut", "emptied"])
    if kind == "other":
        shutil.copytree(other / "onnx", path.parent, dirs_exist_ok=True)
    else:
        content = path.read_bytes()
        path.write_bytes(content[: draw.randrange(len(content))] if kind == "cut" else b"")
    record = path.with_name("export.json")
    facts = json.loads((one / "onnx" / "export.json").read_text())
    sizes = {one.name: one.stat().st_size for one in path.parent.iterdir() if one != record}
    record.write_text(json.dumps({**facts, "sizes": sizes}))
    try:
        found = _tags(folder / "tagger", draw.choice(["onnx", "auto"]))
    except Exception as error:
        return f"{kind}: {error!r:.300}"
    if isinstance(found, UserError | RunError):
        return ""
    same = [[(e.start, e.end, e.type) for e in text] for text in found] == [
        [(e.start, e.end, e.type) for e in text] for text in _tags(one, "torch")
    ]
    return "" if same else f"{kind}: other tags"


_ODD = ["\u200b", "a\tb", "a b", "", " ", "\n", "\ud800", "\x00", "#", "-DOCSTART-", "O", "🙂", "ا"]


def exports(folder: Path, draw: random.Random) -> str:
    """Sentences with odd tokens, which come back from the file, or are refused in one line."""
    from finetune.data.sets import DataSets
    from finetune.use.labelled import Labelled
    from nerbert.seams import parts

    words = ["Ulm", "is", *_ODD]
    given = []
    for _ in range(5):
        tokens = [draw.choice(words) for _ in range(draw.randrange(1, 6))]
        given.append({"tokens": tokens, "tags": ["B-x", *["O"] * (len(tokens) - 1)]})
    kind = draw.choice(list(parts("exports")))
    path = folder / "out.file"
    try:
        rows = list(map(Labelled.of_sentence, DataSets().raw_sentences(given, "train")))
        parts("exports")[kind](rows, path)
        back = _read_back(kind, path)
    except (UserError, RunError):
        return ""
    except Exception as error:
        return f"{kind}: {error!r:.300}"
    texts = [row.text for row in rows]
    return "" if back == texts else f"{kind}: {texts} came back as {back}"


def _read_back(kind: str, path: Path) -> list[str]:
    """The texts of a file, as another tool reads them."""
    if kind == "conll":
        return [" ".join(row.tokens) for row in conll.read(path)]
    if kind == "spacy":
        from spacy.tokens import DocBin
        from spacy.vocab import Vocab

        return [doc.text for doc in DocBin().from_disk(path).get_docs(Vocab())]
    if kind == "jsonl":
        return [json.loads(line)["text"] for line in path.read_text("utf-8").split("\n")[:-1]]
    rows = json.loads(path.read_text("utf-8"))
    return [
        row["data"]["text"] if "data" in row else " ".join(row["tokenized_text"]) for row in rows
    ]
