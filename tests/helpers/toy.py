"""A made-up set that a tiny model learns in seconds."""

from finetune.data import conll
from finetune.settings import FitSettings
from nerbert.text.columns import Sentence

QUICK = FitSettings(learning_rate=2e-3, epochs=12, patience=5, batch_size=8)
CITIES = ("Bern", "Ulm", "Rom", "Genf")
FLAGS = (
    "--epochs",
    8,
    "--least-steps",
    1,
    "--eval-steps",
    1,
    "--learning-rate",
    "2e-3",
    "--batch-size",
    8,
)


def rows(count, start=0, person="person", city="city"):
    found = []
    for number in range(start, start + count):
        name = ("Ada", "Byron") if number % 3 else ("Emmy", "Noether")
        words = [*name, "lived", "in", CITIES[number % 4], *["for", "years"][: number % 3]]
        tags = [f"B-{person}", f"I-{person}", "O", "O", f"B-{city}", "O", "O"]
        found.append(Sentence(words, tags[: len(words)]))
    return found


def write_set(folder, **names):
    folder.mkdir()
    for name, found in (
        ("train", rows(40, **names)),
        ("valid", rows(12, 40, **names)),
        ("test", rows(12, 52, **names)),
    ):
        conll.write(found, str(folder / f"{name}.txt"))
    return folder
