"""The tutorial runs as it stands."""

import re
import shlex
from pathlib import Path

import pytest

from nerbert.commands.table import main
from tests.helpers.runs import ROOT

BLOCK = re.compile(r'```(\w+)(?: title="(.+?)")?\n(.*?)```', re.DOTALL)


def test_every_block(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    text = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    kinds = []
    for kind, title, content in BLOCK.findall(text):
        kinds.append(kind)
        if kind == "bash":
            for line in content.splitlines():
                program, *arguments = shlex.split(line)
                assert (program, main(arguments)) == ("nerbert", 0), line
        elif kind == "python":
            exec(compile(content, "tutorial", "exec"), {})
        else:
            Path(title).parent.mkdir(exist_ok=True)
            Path(title).write_text(content, encoding="utf-8")
    assert kinds.count("bash") == 7
    lines = (tmp_path / "entities.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) == len((tmp_path / "texts.txt").read_text().splitlines())
    assert (tmp_path / "weak-corpus" / "labels.json").is_file()
