"""Shares of the documents: several runs at once, and one that does the rest; jobs of Slurm."""

import os
import re
import subprocess
import sys

import pytest

from tests.helpers.runs import DEMO, ROOT, assert_same_bytes, examples, run, start

# Starts the tasks of an array at once, and a job that depends on another when that has ended.
SBATCH = """#!/bin/bash
for word; do case $word in
  --array=*) array=${word#*=} ;;
  --dependency=afterok:*) [ -e "done-${word##*:}" ] || exit 1 ;;
esac; done
script=${!#}
export SLURM_CPUS_PER_TASK=1
if [ -n "${array-}" ]; then
  export SLURM_ARRAY_TASK_COUNT=${array#*-}
  for SLURM_ARRAY_TASK_ID in $(seq "$SLURM_ARRAY_TASK_COUNT"); do
    export SLURM_ARRAY_TASK_ID
    bash "$script" > "log-$SLURM_ARRAY_TASK_ID" 2>&1 & tasks+=($!)
  done
  for task in "${tasks[@]}"; do wait "$task" || exit 1; done
  touch done-7; echo 7
else
  bash "$script"
fi
"""


@pytest.fixture
def wiki(tmp_path):
    """The demo dump three times over: three files, which are three units."""
    folder = tmp_path / "enwiki"
    folder.mkdir()
    text = DEMO.read_text(encoding="utf-8")
    for number in range(3):
        more = re.sub(
            r"<id>(\d+)</id>", lambda m, n=number: f"<id>{int(m[1]) + 10000 * n}</id>", text
        )
        (folder / f"enwiki-p{number}.xml").write_text(more, encoding="utf-8")
    return folder


def test_an_array_of_slurm_gives_the_bytes_of_one_run(wiki, tmp_path):
    page = (ROOT / "docs" / "running.md").read_text(encoding="utf-8")
    script = re.search("```bash\n(#!/bin/bash\n#SBATCH.*?)```", page, re.DOTALL)[1]
    script = script.replace("/shared/enwiki-corpus", "out").replace("/shared/enwiki", "enwiki")
    programs = tmp_path / "bin"
    programs.mkdir()
    here = f'#!/bin/bash\nexec "{sys.executable}" -m "$@"\n'
    for name, text in (("sbatch", SBATCH), ("srun", here)):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    (tmp_path / "corpus.sh").write_text(script)
    environment = {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
    }

    def sbatch(*words):
        command = ["sbatch", *words, "corpus.sh"]
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True
        )

    job = sbatch("--parsable", "--array=1-3")
    assert job.stdout == "7\n", "".join((tmp_path / f"log-{n}").read_text() for n in (1, 2, 3))
    assert len(list((tmp_path / "out" / "documents").glob("part-*.parquet"))) == 3
    said = (tmp_path / "log-2").read_text()
    assert "Done 2/3 of the documents: out; then the same without --share" in said
    merge = sbatch("--dependency=afterok:7")
    assert merge.returncode == 0, merge.stderr
    assert "extract: 3 of 3 parts" in merge.stderr
    code, _, err = run("--dump", "enwiki", "--output", "one", cwd=tmp_path)
    assert code == 0, err
    assert len(examples(tmp_path / "one" / "corpus", "train")) > 100
    assert_same_bytes(tmp_path / "one", tmp_path / "out")


@pytest.mark.slow
def test_what_a_task_that_was_stopped_left_is_made_later(wiki, tmp_path):
    flags = ("--dump", "enwiki", "--output", "out", "--workers", "1")
    for share in ("1/3", "3/3"):
        assert run(*flags, "--share", share, cwd=tmp_path)[0] == 0
    leftover = tmp_path / "out" / "documents" / ".part-00001.parquet.4711c0de.tmp"
    leftover.touch()
    assert run(*flags, "--share", "1/3", cwd=tmp_path)[0] == 0
    assert leftover.exists()  # it may be that of a task that still runs
    code, _, err = run(*flags, cwd=tmp_path)
    assert code == 0, err
    assert not leftover.exists()
    assert run("--dump", "enwiki", "--output", "one", cwd=tmp_path)[0] == 0
    assert_same_bytes(tmp_path / "one", tmp_path / "out")


def test_what_cannot_be(wiki, tmp_path):
    flags = ("--dump", "enwiki", "--output", "out")
    for share in ("0/3", "4/3", "2", "a/b"):
        code, _, err = run(*flags, "--share", share, cwd=tmp_path)
        assert (code, err.splitlines()[-1]) == (
            2, f"--share {share}: give K/N, such as 2/3 for the second of three",
        )  # fmt: skip
    code, _, err = run(*flags, "--share", "1/2", "--runner", "DirectRunner", cwd=tmp_path)
    assert (code, err.splitlines()[-1]) == (2, "--share: for local workers, not with --runner")
    assert run(*flags, "--share", "1/2", cwd=tmp_path)[0] == 0
    other = ("--share", "1/2", "--list-items")
    code, _, err = run(*flags, *other, cwd=tmp_path)
    assert code == 2
    assert "out/documents: of another run; remove it, or choose --output" in err


def test_a_share_beside_a_whole_run_is_refused(wiki, tmp_path):
    process = start("--dump", "enwiki", "--output", "out", cwd=tmp_path)
    try:
        while not (tmp_path / "out" / "documents" / "stage.json").exists():
            assert process.poll() is None
        code, _, err = run("--dump", "enwiki", "--output", "out", "--share", "1/2", cwd=tmp_path)
        assert code == 2
        assert "another run is writing here" in err
    finally:
        process.kill()
        process.communicate()
