"""What builds and publishes a release is named by digest, and only one job may publish."""

import re

import pytest

from tests.helpers.runs import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_named_by_commit(path):
    used = re.findall(r"uses: (\S+)", path.read_text())
    assert used
    assert all(re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40}", action) for action in used)


def test_the_job_that_may_publish_runs_no_code_of_ours():
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text()
    first, publish = text.split("\n  publish:\n")
    assert "id-token" not in first
    assert "id-token: write" in publish
    assert "run:" not in publish
    assert "checkout" not in publish


def test_what_builds_a_release_has_hashes():
    lines = (ROOT / ".github" / "release.txt").read_text().split("\n\n")[0].splitlines()
    names = [line for line in lines if not line.startswith((" ", "#"))]
    assert {"build", "twine", "setuptools"} <= {name.partition("==")[0] for name in names}
    text = "\n".join(lines)
    for block in re.split(r"\n(?=\S)", text)[1:]:
        assert "==" in block
        assert "--hash=sha256:" in block


def test_the_image_is_pinned_and_not_run_as_root():
    text = (ROOT / "Dockerfile").read_text()
    bases = re.findall(r"^FROM (\S+)", text, re.MULTILINE)
    assert all("@sha256:" in base for base in bases if base.startswith("python:"))
    assert re.findall(r"^USER (\w+)", text, re.MULTILINE) == ["nerbert"]
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    assert "*" in ignored
    assert "!.git" not in ignored
