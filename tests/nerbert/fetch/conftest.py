import pytest

from nerbert.fetch.download import Downloader
from tests.helpers.mirror import served


@pytest.fixture
def mirror():
    with served() as found:
        yield found


@pytest.fixture
def pauses():
    """The pauses of a downloader, in seconds, which it does not wait."""
    return []


@pytest.fixture
def downloader(pauses):
    return Downloader(pauses.append)
