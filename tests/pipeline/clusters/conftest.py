import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


class FakeRest:
    """A REST interface: JSON by path, and what was asked of it."""

    def __init__(self):
        self.answers, self.asked = {}, []
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def _answer(self):
                fake.asked.append(f"{self.command} {self.path}")
                found = fake.answers.get(self.path.partition("?")[0])
                if callable(found):
                    found = found()
                self.send_response(404 if found is None else 200)
                self.end_headers()
                self.wfile.write(json.dumps(found).encode())

            do_GET = do_PATCH = _answer

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("localhost", 0), Handler)
        self.address = f"localhost:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def rest():
    fake = FakeRest()
    yield fake
    fake.close()


@pytest.fixture
def free_port():
    import socket

    with socket.socket() as listening:
        listening.bind(("localhost", 0))
        return listening.getsockname()[1]
