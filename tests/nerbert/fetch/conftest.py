import pytest
from mirror import served


@pytest.fixture
def mirror():
    with served() as found:
        yield found
