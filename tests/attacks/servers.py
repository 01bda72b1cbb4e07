"""Attacks by servers: stores, mirrors and hubs on this machine."""

from __future__ import annotations

import datetime
import json
import logging
import os
import random
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from tests.helpers.hub import served_hub
from tests.helpers.mirror import served, serving
from tests.helpers.stores import served_s3

# The stand-in of S3 logs each request.
logging.getLogger("werkzeug").setLevel(logging.ERROR)
LONGEST_S = 240.0
_FORBIDDEN = (
    b"HTTP/1.1 403 Forbidden\r\nContent-Type: application/xml\r\nContent-Length: %d\r\n"
    b"Connection: close\r\n\r\n%s"
)
_DENIED = b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"


def ended(arguments: list[str], variables: dict[str, str], **options: Any) -> tuple[Any, str]:
    """Exit code and errors of a command; None for one that hangs."""
    try:
        done = subprocess.run(
            [sys.executable, *arguments],
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            timeout=LONGEST_S,
            **options,
        )
    except subprocess.TimeoutExpired:
        return None, ""
    return done.returncode, done.stderr


def fault(code: Any, err: str, wanted: tuple[int, ...]) -> str:
    """Why a command did not end as it should; "" if it did."""
    if code is None:
        return "hung"
    if "Traceback" in err:
        return f"a traceback: {err.strip().splitlines()[-1][:300]}"
    return "" if code in wanted else f"exit code {code}: {err[-300:]}"


class Proxy:
    """Passes connections on; loses some of them, or answers that they are forbidden."""

    def __init__(self, url: str, draw: random.Random) -> None:
        host, port = url.removeprefix("http://").split(":")
        self._target, self._draw = (host, int(port)), draw
        self.lost = self.forbidden_after = 0.0
        self._requests = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        self._requests += 1
        is_lost = self._draw.random() < self.lost
        after = self._draw.randrange(1, 4000) if is_lost else None
        with client, suppress(OSError), socket.create_connection(self._target) as server:
            if self.forbidden_after and self._requests > self.forbidden_after:
                client.recv(65536)
                client.sendall(_FORBIDDEN % (len(_DENIED), _DENIED))
                return
            back = threading.Thread(target=self._pass, args=(server, client, None), daemon=True)
            back.start()
            self._pass(client, server, after)
            for side in (client, server):
                side.shutdown(socket.SHUT_RDWR)
            back.join(5)

    @staticmethod
    def _pass(source: socket.socket, target: socket.socket, most: int | None) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if most is not None and len(data) >= most:
                    target.sendall(data[:most])
                    return
                target.sendall(data)
                most = most and most - len(data)

    def close(self) -> None:
        self._listener.close()


def _objects(client: Any, folder: str) -> dict[str, bytes]:
    pages = client.get_paginator("list_objects_v2").paginate(Bucket="bucket", Prefix=f"{folder}/")
    keys = [entry["Key"] for page in pages for entry in page.get("Contents", ())]
    return {
        key.removeprefix(f"{folder}/"): client.get_object(Bucket="bucket", Key=key)["Body"].read()
        for key in keys
    }


def _corpus(output: str) -> list[str]:
    return ["-m", "nerbert", "corpus", "--workers", "2", "--output", f"s3://bucket/{output}"]


def store(folder: Path, draw: random.Random) -> str:
    """A store that loses connections, or forbids everything from some request on."""
    with served_s3() as (client, variables):
        proxy = Proxy(variables["FSSPEC_S3_ENDPOINT_URL"], draw)
        attacked = {**variables, "FSSPEC_S3_ENDPOINT_URL": proxy.url}
        name = folder.name
        if draw.random() < 0.5:
            proxy.lost = draw.choice([0.05, 0.2, 0.5])
        else:
            proxy.forbidden_after = draw.randrange(1, 120)
        told = fault(*ended(_corpus(f"{name}-out"), attacked), (0, 1, 2))
        proxy.close()
        if told:
            return told
        for output in (f"{name}-out", f"{name}-whole"):
            if told := fault(*ended(_corpus(output), variables), (0,)):
                return f"again: {told}"
        same = _objects(client, f"{name}-out") == _objects(client, f"{name}-whole")
        return "" if same else "other bytes"


def two_runs(folder: Path, draw: random.Random) -> str:
    """Two runs on one remote output, one some moments after the other."""
    with served_s3() as (client, variables):
        name = folder.name
        ends: list[tuple[Any, str]] = []
        threads = [
            threading.Thread(target=lambda: ends.append(ended(_corpus(f"{name}-two"), variables)))
            for _ in range(2)
        ]
        for thread in threads:
            thread.start()
            time.sleep(draw.uniform(0, 6))
        for thread in threads:
            thread.join()
        if told := next(filter(None, (fault(*end, (0, 1, 2)) for end in ends)), ""):
            return told
        codes = sorted(code for code, _ in ends)
        if codes[0] != 0 or codes[1] not in (0, 2):
            return f"exit codes {codes}: {ends}"
        if told := fault(*ended(_corpus(f"{name}-whole"), variables), (0,)):
            return told
        same = _objects(client, f"{name}-two") == _objects(client, f"{name}-whole")
        return "" if same else "other bytes"


def _certificates(folder: Path, kind: str) -> None:
    """A certificate of 127.0.0.1 that something is wrong with, and the authority that signed it."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    now = datetime.datetime.now(datetime.UTC)
    day = datetime.timedelta(days=1)

    def named(name: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])

    def signed(
        name: str, issuer: str, public: Any, key: Any, start: Any, end: Any, san: str
    ) -> Any:
        builder = (
            x509.CertificateBuilder(named(issuer), named(name), public, 7)
            .not_valid_before(start)
            .not_valid_after(end)
        )
        basic = x509.BasicConstraints(ca=not san, path_length=None)
        builder = builder.add_extension(basic, True)
        if san:
            names = x509.SubjectAlternativeName([x509.DNSName(san)])
            builder = builder.add_extension(names, False)
        return builder.sign(key, hashes.SHA256())

    root, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    authority = signed("root", "root", root.public_key(), root, now - 9 * day, now + 9 * day, "")
    end = now - day if kind == "expired" else now + day
    host = "elsewhere.example" if kind == "other host" else "localhost"
    own = signed(host, "root", key.public_key(), root, now - 5 * day, end, host)
    pem = serialization.Encoding.PEM
    (folder / "root.pem").write_bytes(authority.public_bytes(pem))
    private = key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "own.pem").write_bytes(own.public_bytes(pem) + private)


def tls(folder: Path, draw: random.Random) -> str:
    """Mirrors whose certificate is wrong, or who speak no TLS."""
    kind = draw.choice(["self-signed", "expired", "other host", "no TLS", "closed", "right"])
    _certificates(folder, kind)
    with served() as mirror, ExitStack() as stack:
        mirror.add_dump("xwiki", "20250101", {"articlesmultistreamdump": {_NAME: b"x" * 9999}})
        proxy = stack.enter_context(_tls_proxy(mirror.url, folder / "own.pem", kind))
        trusted = {} if kind == "self-signed" else {"REQUESTS_CA_BUNDLE": str(folder / "root.pem")}
        command = ["-m", "nerbert", "fetch", "dump", "--wiki", "xwiki", "--mirror", proxy]
        code, err = ended([*command, "--output", str(folder / "out")], trusted)
        told = fault(code, err, (0,) if kind == "right" else (1, 2))
        lines = err.strip().splitlines()
        return (
            f"{kind}: {told}" if told else ("" if lines[-1].isprintable() else f"{kind}: {lines}")
        )


_NAME = "xwiki-20250101-pages-articles-multistream.xml.bz2"


@contextmanager
def _tls_proxy(url: str, certificate: Path, kind: str) -> Iterator[str]:
    """The address of a server that passes connections on to a mirror, by TLS."""
    host, port = url.removeprefix("http://").split(":")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    listener = socket.create_server(("127.0.0.1", 0))

    def serve(client: socket.socket) -> None:
        with suppress(OSError), socket.create_connection((host, int(port))) as server:
            if kind == "closed":
                client.recv(10)
                client.close()
                return
            if kind != "no TLS":
                client = context.wrap_socket(client, server_side=True)
            with client:
                back = threading.Thread(target=Proxy._pass, args=(server, client, None))
                back.start()
                Proxy._pass(client, server, None)
                server.shutdown(socket.SHUT_RDWR)
                back.join(5)

    def accept() -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                threading.Thread(target=serve, args=(client,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"https://localhost:{listener.getsockname()[1]}"
    finally:
        listener.close()


def slow(folder: Path, draw: random.Random) -> str:
    """A mirror that sends a byte now and then: of the list of files, or of a file."""
    begins = draw.choice(["list", "file"])

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

        def do_GET(self) -> None:
            url = f"/xwiki/20250101/{_NAME}"
            status = {"jobs": {"articlesmultistreamdump": {"status": "done", "files": {}}}}
            status["jobs"]["articlesmultistreamdump"]["files"] = {
                _NAME: {"url": url, "size": 9999, "sha1": "0" * 40}
            }
            body = json.dumps(status).encode() if self.path.endswith(".json") else b"x" * 9999
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            drips = (begins == "list") == self.path.endswith(".json")
            with suppress(OSError):
                for place in range(0, len(body), 1 if drips else len(body)):
                    self.wfile.write(body[place : place + (1 if drips else len(body))])
                    time.sleep(0.3 if drips else 0)

    code = (
        "import sys; from nerbert.fetch import client; client.SLOW_S = 2.0; client.TRIES = 3; "
        "from nerbert.commands.table import main; sys.exit(main())"
    )
    with serving(Handler) as url:
        command = ["-c", code, "fetch", "dump", "--wiki", "xwiki", "--date", "20250101"]
        command += ["--mirror", url, "--output", str(folder / "out")]
        return fault(*ended(command, {}), (1,))


_PUSH = """
import sys
from finetune.use.train import push
from nerbert.errors import UserError
try:
    push(sys.argv[1], "me/tagger", False)
except UserError as error:
    sys.exit(str(error))
"""


def hub(folder: Path, draw: random.Random) -> str:
    """A hub that loses connections in the middle of an upload; then it works."""
    (folder / "tagger").mkdir()
    for name in ("config.json", "README.md", "tokenizer.json"):
        (folder / "tagger" / name).write_text("{}" if name.endswith("json") else "card")
    with served_hub() as stand_in:
        proxy = Proxy(stand_in.url, draw)
        proxy.lost = draw.choice([0.3, 0.7, 1.0])
        variables = {"HF_TOKEN": "right", "HF_HUB_DISABLE_XET": "1", "HF_HUB_OFFLINE": "0"}
        command = ["-c", _PUSH, str(folder / "tagger")]
        if told := fault(*ended(command, {**variables, "HF_ENDPOINT": proxy.url}), (0, 1)):
            return told
        proxy.close()
        if told := fault(*ended(command, {**variables, "HF_ENDPOINT": stand_in.url}), (0,)):
            return f"again: {told}"
        names = {path.name for path in (folder / "tagger").iterdir()}
        return "" if names <= set(stand_in.files) else f"again: only {sorted(stand_in.files)}"
