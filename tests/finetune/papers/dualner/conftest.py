import pytest

from tests.helpers.lazy import lazy
from tests.helpers.runs import call

tongues = lazy("tests.helpers.tongues")
torch = lazy("torch")

RECIPE = """epochs = {epochs}
batch_size = 16
second_batch_size = 32
device_batch_size = 32
learning_rate = 1e-3
warmup_steps = 10
eval_steps = {steps}
regularisation = 0.5
"""


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("world")
    torch.manual_seed(0)
    tongues.write_world(folder)
    (folder / "recipe.toml").write_text(RECIPE.format(epochs=12, steps=24))
    (folder / "short.toml").write_text(RECIPE.format(epochs=1, steps=6))
    return folder


@pytest.fixture
def teach(world, capsys):
    def called(*flags, recipe="short", targets=("second",)):
        command = [
            "--source",
            world / "first",
            "--targets",
            *(world / name for name in targets),
            "--base-model",
            world / "base",
            "--recipe",
            world / f"{recipe}.toml",
            *flags,
        ]
        code = call("dualner", *command)
        return code, *capsys.readouterr()

    return called
