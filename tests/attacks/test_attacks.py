"""A few cases of each kind of attack, damage and signal; the scripts beside this file take more."""

import pytest

from tests.conftest import SHARED

pytestmark = pytest.mark.slow

NAME = "enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2"
SLICE = SHARED / "data" / "dumps" / NAME


@pytest.fixture(scope="module")
def slice_of_dump():
    if not SLICE.is_file():
        pytest.skip(f"no dump: {SLICE} is missing (NERBERT_SHARED names the folder)")
    return str(SLICE)


def test_damaged_files_and_outputs():
    from tests.attacks import faults

    assert faults.main(["--cases", "100", "--outputs", "8"]) == 0


def test_kills(slice_of_dump):
    from tests.attacks import kill

    assert kill.main(["--dump", slice_of_dump, "--kills", "4"]) == 0


def test_signals(slice_of_dump):
    from tests.attacks import storm

    assert storm.main(["--dump", slice_of_dump, "--copies", "1", "--cases", "8"]) == 0


def test_each_attack_once(slice_of_dump):
    from tests.attacks import attack

    assert attack.main(["--dump", slice_of_dump, "--copies", "1", "--cases", "1"]) == 0
