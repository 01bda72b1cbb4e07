"""`nerbert search`: trials, a kill in the middle, and what is left behind."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import tomllib
from itertools import pairwise

import pytest

from finetune.settings import FitSettings
from nerbert.commands.table import main
from nerbert.errors import UserError
from tests.helpers.lazy import lazy
from tests.helpers.runs import ROOT
from tests.helpers.toy import rows, write_set

optuna = lazy("optuna")
fits = lazy("finetune.experiments.trials")
search = lazy("finetune.experiments.search")
space = lazy("finetune.experiments.trials")
tagger = lazy("finetune.tagger.tagger")

FLAGS = ("--epochs", "4", "--least-steps", "1", "--eval-steps", "1", "--partial-epochs", "2")
GRID = ("--kept", "2", "--space", "learning_rate=2e-3,1e-6", "batch-size=8,20")


@pytest.fixture(scope="module")
def toy_set(tmp_path_factory):
    return str(write_set(tmp_path_factory.mktemp("sets") / "toy"))


def command(base, data, output, *flags):
    found = ["search", "--base-model", base, "--data", data, "--output", str(output)]
    return [*found, *FLAGS, *flags]


def test_a_flag_and_values_of_it_to_try(base, toy_set, tmp_path, capsys):
    space = ("--space", "learning_rate=2e-3,1e-6")
    assert main(command(base, toy_set, tmp_path / "x", "--learning-rate", "1e-3", *space)) == 2
    assert (
        "--space learning-rate tries other values than --learning-rate" in capsys.readouterr().err
    )
    assert not (tmp_path / "x").exists()


def test_typed_settings_are_not_in_the_default_space(base, toy_set, tmp_path):
    flags = ("--head", "linear", "--learning-rate", "1e-3", "--kept", "1")
    assert main(command(base, toy_set, tmp_path / "x", *flags)) == 0
    assert all(params.keys() == {"batch_size"} for _, params, _ in trials(tmp_path / "x"))


def trials(output):
    study = optuna.load_study(study_name="search", storage=f"sqlite:///{output}/study.db")
    done = [trial for trial in study.trials if trial.state.name == "COMPLETE"]
    return [(trial.user_attrs["stage"], trial.params, trial.value) for trial in done]


@pytest.fixture(scope="module")
def grid(base, toy_set, tmp_path_factory):
    output = tmp_path_factory.mktemp("search") / "grid"
    assert main(command(base, toy_set, output, *GRID)) == 0
    return output


def test_two_stages(grid):
    found = trials(grid)
    first = [trial for trial in found if trial[0] == 1]
    assert len(first) == 4
    ranked = sorted(first, key=lambda trial: -trial[2])
    second = [trial for trial in found if trial[0] == 2]
    assert [trial[1] for trial in second] == [trial[1] for trial in ranked[:2]]
    # Training goes on where it paused, so it never gets worse.
    assert all(late[2] >= early[2] for late, early in zip(second, ranked, strict=False))
    best = max(trial[2] for trial in found)
    mark = json.loads((grid / "model" / "trial.json").read_text())
    assert mark["dev_f1"] == best
    loaded = tagger.Tagger.load(grid / "model")
    assert loaded.score(rows(12, 40)) == pytest.approx(best)
    recipe = tomllib.loads((grid / "best.toml").read_text())
    assert recipe["learning_rate"] == mark["settings"]["learning_rate"] == 2e-3
    assert set(recipe) <= set(FitSettings.__dataclass_fields__)
    text = (grid / "search.md").read_text()
    assert "| learning_rate | " in text.split("What mattered")[1]
    assert (grid / "search.png").stat().st_size > 5000
    assert not (grid / "trials").exists()


def test_the_best_goes_on_until_it_drops(base, tmp_path):
    """A finished training whose last evaluation was its best one is continued, not repeated."""
    settings = FitSettings(batch_size=8, epochs=4, eval_steps=8)
    made = fits.Fits(base, settings, rows(40), rows(12, 40), tmp_path, "cpu")
    values = {"learning_rate": 1.5e-4}
    first = made.fit(values, pause=2)
    second = made.fit(values)
    third = made.fit(values, until_drop=True)
    assert third[: len(second)] == second
    assert second[: len(first)] == first
    assert second[-1] > max(second[:-1])
    assert len(third) > len(second) + 1
    rising = third[len(second) - 1 :]
    assert all(late > early for early, late in pairwise(rising[:-1]))
    assert rising[-1] <= rising[-2]


def test_a_time_budget_is_kept_and_the_search_goes_on(grid, base, toy_set, tmp_path, capsys):
    output = tmp_path / "grid"
    assert main(command(base, toy_set, output, *GRID, "--time-budget", "0.0001")) == 0
    assert len(trials(output)) == 1
    told = capsys.readouterr().err
    assert "5 more in about" in told
    assert "--time-budget 0.0001 is spent; run it again to go on" in told
    assert (output / "model" / "trial.json").is_file()
    assert main(command(base, toy_set, output, *GRID)) == 0
    assert trials(output) == trials(grid)


def test_no_trial_is_longer_than_the_epochs_that_are_typed(base, toy_set, tmp_path, monkeypatch):
    """The recipe's least number of steps and the last stage do not count then."""
    asked = []

    class Watched(fits.Fits):
        def fit(self, values, **how):
            asked.append((self.settings_of(values), how))
            return [0.1, 0.2]

        def keep(self, values, f1):
            """Nothing was trained."""

        def has(self, values):
            return True

    monkeypatch.setattr(search, "Fits", Watched)
    space = ("--space", "learning_rate=1e-3,2e-3")

    def searched(name, *flags):
        where = ("--base-model", base, "--data", toy_set, "--output", str(tmp_path / name))
        return main(["search", *where, *space, *flags])

    assert searched("typed", "--epochs", "3") == 0
    assert {(settings.epochs, settings.least_steps) for settings, _ in asked} == {(3, 0)}
    assert not any("until_drop" in how for _, how in asked)
    asked.clear()
    assert searched("recipe") == 0
    assert [how.get("until_drop", False) for _, how in asked] == [False] * 4 + [True]
    assert {settings.least_steps for settings, _ in asked} == {1000}


def test_again_does_nothing_and_other_settings_are_refused(grid, base, toy_set, capsys):
    before = (grid / "model" / "model.safetensors").stat().st_mtime_ns
    assert main(command(base, toy_set, grid, *GRID)) == 0
    assert (grid / "model" / "model.safetensors").stat().st_mtime_ns == before
    assert main(command(base, toy_set, grid, *GRID, "--head", "crf")) == 2
    assert "made with head 'linear', not 'crf'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("moment", "place"), [("fit", 3), pytest.param("keep", 2, marks=pytest.mark.slow)]
)
def test_stopped_and_continued_to_the_same_report(
    grid, base, toy_set, tmp_path, monkeypatch, moment, place
):
    """As a kill does: nothing of the trial in whose middle it came is seen."""
    output = tmp_path / "grid"
    made = getattr(fits.Fits, moment)
    calls = []

    def stopped(self, *args, **kwargs):
        calls.append(args)
        result = made(self, *args, **kwargs)
        if len(calls) == place:
            raise KeyboardInterrupt
        return result

    with monkeypatch.context() as patch:
        patch.setattr(f"finetune.experiments.trials.Fits.{moment}", stopped)
        first = main(command(base, toy_set, output, *GRID))
    assert first == (130 if len(calls) == place else 0)
    assert main(command(base, toy_set, output, *GRID)) == 0
    assert trials(output) == trials(grid)
    texts = [(one / "search.md").read_text().replace(str(one), "") for one in (output, grid)]
    assert texts[0] == texts[1]
    weights = [folder / "model" / "model.safetensors" for folder in (output, grid)]
    assert weights[0].read_bytes() == weights[1].read_bytes()


@pytest.mark.parametrize("name", ["model/model.safetensors", "model/trial.json", "model"])
def test_a_torn_tagger_is_made_again(grid, base, toy_set, tmp_path, name):
    output = tmp_path / "grid"
    shutil.copytree(grid, output)
    path = output / name
    shutil.rmtree(path) if path.is_dir() else path.write_bytes(b"[]")
    assert main(command(base, toy_set, output, *GRID)) == 0
    weights = [folder / "model" / "model.safetensors" for folder in (output, grid)]
    assert weights[0].read_bytes() == weights[1].read_bytes()
    assert trials(output) == trials(grid)


def test_a_study_of_garbage(grid, base, toy_set, tmp_path, capsys):
    output = tmp_path / "grid"
    shutil.copytree(grid, output)
    (output / "study.db").write_bytes(b"garbage" * 1000)
    assert main(command(base, toy_set, output, *GRID)) == 2
    err = capsys.readouterr().err.strip().splitlines()[-1]
    assert "study.db: no study of optuna (" in err
    assert err.endswith("; move it away")


@pytest.mark.slow
def test_killed_and_continued(grid, base, toy_set, tmp_path):
    output = tmp_path / "grid"
    process = subprocess.Popen(
        [sys.executable, "-m", "nerbert", *command(base, toy_set, output, *GRID)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
    )
    deadline = time.monotonic() + 120
    while not _finished(output / "study.db"):
        assert time.monotonic() < deadline
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.05)
    time.sleep(0.3)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert main(command(base, toy_set, output, *GRID)) == 0
    assert trials(output) == trials(grid)
    weights = [folder / "model" / "model.safetensors" for folder in (output, grid)]
    assert weights[0].read_bytes() == weights[1].read_bytes()


def _finished(path):
    """Whether a trial is finished."""
    if not path.exists():
        return False
    try:
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as table:
            states = [row[0] for row in table.execute("select state from trials")]
    except sqlite3.OperationalError:  # the tables are being made
        return False
    return "COMPLETE" in states


@pytest.mark.parametrize("method", [pytest.param("random", marks=pytest.mark.slow), "tpe"])
def test_draws_go_on_as_if_not_stopped(base, toy_set, tmp_path, method):
    flags = ("--method", method, "--space", "learning_rate=1e-5..1e-2", "batch_size=8..20")
    assert main(command(base, toy_set, tmp_path / "a", *flags, "--trials", "2")) == 0
    assert main(command(base, toy_set, tmp_path / "a", *flags, "--trials", "3")) == 0
    found = trials(tmp_path / "a")
    assert len(found) == 3
    assert len({trial[1]["learning_rate"] for trial in found}) == 3
    assert all(1e-5 <= trial[1]["learning_rate"] <= 1e-2 for trial in found)


def test_spaces():
    found = space.parse(["learning-rate=1e-5,1e-4", "head=linear,crf", "bf16=true,false"])
    assert [len(one.choices) for one in found.values()] == [2, 2, 2]
    assert len(space.points(found)) == 8
    assert {point["bf16"] for point in space.points(found)} == {True, False}
    for text, told in (
        ("speed=1", r"^speed=1: write NAME=VALUE,VALUE or NAME=LOW\.\.HIGH"),
        ("learning_rat=1", "did you mean learning_rate"),
        ("learning_rate=fast", "fast is no value of learning_rate"),
        ("learning_rate=-1,1", "--space learning_rate -1: give 0 or more"),
        ("learning_rate=1..0.1", "give the lower number first: LOW..HIGH"),
        ("head=a..b", "a is no value of head"),
    ):
        with pytest.raises(UserError, match=told):
            space.parse([text])
    with pytest.raises(UserError, match="a grid needs values; --method random takes ranges"):
        space.points(space.parse(["learning_rate=1e-5..1e-3"]))
