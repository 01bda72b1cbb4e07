"""Runs from and to object stores: inputs, a stand-in of S3, and the comparison with a local run."""

import json
from contextlib import contextmanager

import pytest

from tests.helpers.runs import DEMO
from tests.helpers.tables import write_table

TYPE = (
    "<http://dbpedia.org/resource/Pisa> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> "
    "<http://dbpedia.org/ontology/City> .\n"
)
FLAGS = ("--min-entities", "2", "--workers", "2")


@contextmanager
def served_s3(host="127.0.0.1"):
    """A stand-in of S3 with an empty bucket: its client, and the variables that name it."""
    pytest.importorskip("s3fs", reason="the extra `s3` is not installed")
    server = pytest.importorskip("moto.server").ThreadedMotoServer(host, 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    environment = {
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1",
        "FSSPEC_S3_ENDPOINT_URL": f"http://{host}:{port}",
    }
    import boto3

    client = boto3.client(
        "s3",
        endpoint_url=environment["FSSPEC_S3_ENDPOINT_URL"],
        aws_access_key_id="key",
        aws_secret_access_key="secret",
        region_name="us-east-1",
    )
    client.create_bucket(Bucket="bucket")
    yield client, environment
    server.stop()


def put_inputs(client, folder):
    """Puts the files of `inputs` into the bucket."""
    for name in ("demo.xml", "types.nt", "page_props.sql.gz"):
        client.put_object(Bucket="bucket", Key=f"in/{name}", Body=(folder / name).read_bytes())


def stored(client):
    """The files under `out/` in the bucket."""
    found = client.list_objects_v2(Bucket="bucket", Prefix="out/")["Contents"]
    keys = [entry["Key"] for entry in found]
    return {
        key.removeprefix("out/"): client.get_object(Bucket="bucket", Key=key)["Body"].read()
        for key in keys
    }


def inputs(folder):
    """Types and a table beside the demo dump; the ids of its pages are 1, 2, ..."""
    (folder / "types.nt").write_text(TYPE)
    rows = [(page, "wikibase_item", f"Q{page}", None) for page in range(1, 200)]
    write_table(folder / "page_props.sql.gz", "page_props", rows, wiki="demowiki")
    (folder / "demo.xml").write_bytes(DEMO.read_bytes())


def arguments(start):
    return (
        *("--dump", f"{start}demo.xml", "--types", f"{start}types.nt"),
        *("--page-props", f"{start}page_props.sql.gz", *FLAGS),
    )


def assert_same(found, local):
    assert found.keys() == local.keys()
    for name, content in local.items():
        # The identity of a remote file is the checksum of its store.
        if name.endswith("stage.json"):
            one, other = json.loads(content), json.loads(found[name])
            assert one.get("sizes") == other.get("sizes")
            assert one.get("counts") == other.get("counts")
        elif name != "manifest.json":
            assert found[name] == content, name
