import subprocess
import sys

import pytest


@pytest.mark.slow
def test_vocabulary_is_the_same_in_every_process():
    code = (
        "from pretrain.training.tiny import wordpiece_vocabulary as make\n"
        "texts = [' '.join(a + b + c for b in 'aeiou') for a in 'bdgklmnprst' for c in 'nrstx']\n"
        "vocabulary = make(lambda: texts, 150)\n"
        "print(sorted(vocabulary, key=vocabulary.get))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
        for _ in range(3)
    }
    assert len(found) == 1
    assert "##aeiou" not in found.pop()
