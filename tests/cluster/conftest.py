import bz2
import shutil

import pytest

from tests.helpers.clusters import DUMPS, arguments, made_cluster, missing
from tests.helpers.runs import start


def started(cluster):
    cluster.start()
    yield cluster
    cluster.stop()


@pytest.fixture(scope="module")
def flink(tmp_path_factory):
    yield from started(made_cluster("flink", 2, tmp_path_factory))


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    yield from started(made_cluster("spark", 1, tmp_path_factory))


@pytest.fixture
def flink_pools(flink):
    """Flink, whose pools a test may change."""
    yield flink
    flink.renew_pools()


@pytest.fixture
def spark_pools(spark):
    """Spark, whose pools a test may change."""
    yield spark
    spark.renew_pools()


@pytest.fixture(scope="session")
def dump(tmp_path_factory):
    """Seven real dumps as XML, which are twelve units."""
    if reason := missing():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("dump")
    for path in sorted(DUMPS.glob("enwiki-*.bz2")):
        name = path.name.removesuffix(".bz2").removesuffix(".xml")
        (folder / f"{name}.xml").write_bytes(bz2.decompress(path.read_bytes()))
    return folder


@pytest.fixture(scope="session")
def local(dump, tmp_path_factory):
    """A local run with two workers: its output, and what it said."""
    folder = tmp_path_factory.mktemp("local") / "out"
    process = start(*arguments(dump, folder, "--workers", "2"), cwd=folder.parent)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return folder, out, err


@pytest.fixture
def documents(local, tmp_path):
    """The local run's folder as it was after its first stage."""
    output = tmp_path / "out"
    shutil.copytree(local[0] / "documents", output / "documents")
    shutil.copy(local[0] / "manifest.json", output)
    return output
