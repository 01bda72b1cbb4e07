import pytest

from nerbert.errors import UserError
from pipeline.clusters.engine import check_flags, is_given


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--runner=X", "--alhpa", "0.5"], "--alhpa 0.5: neither our flag nor Beam's; see --help"),
        (["word", "--runner=X"], "word: neither"),
        (["--runner=X", "--execution_retry_delay", "5", "--no", "3"], "--no 3: neither"),
        (["--project=p"], "--project=p: Beam's flag, but there is no --runner"),
    ],
)
def test_wrong_flags(flags, message):
    with pytest.raises(UserError) as raised:
        check_flags(flags, {"execution_retry_delay"})
    assert str(raised.value).startswith(message)


def test_options_of_the_job_server_are_taken():
    check_flags(
        ["--runner=X", "--execution_retry_delay", "5", "--no=3"], {"execution_retry_delay", "no"}
    )


def test_given():
    assert is_given(["--a-b=3", "--c"], "a_b")
    assert not is_given(["--a_bc=3"], "a_b")
