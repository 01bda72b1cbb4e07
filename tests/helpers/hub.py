"""A local stand-in for Hugging Face's hub: who am I, create, upload, commit."""

import base64
import json
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler

from tests.helpers.mirror import serving


class Hub:
    """Repositories, and the files that were committed to them; large ones by their digest."""

    def __init__(self):
        self.token, self.repositories, self.files = "right", {}, {}
        self.url = ""
        self.failures = 0  # commits that fail


def _handler(hub):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def answer(self, status, value):
            content = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            if status >= 400:
                self.send_header("X-Error-Message", value["error"])
            self.end_headers()
            self.wfile.write(content)

        def body(self):
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))

        def do_GET(self):
            self.handle_request(b"")

        def do_POST(self):
            self.handle_request(self.body())

        def handle_request(self, body):
            if self.headers.get("Authorization") != f"Bearer {hub.token}":
                return self.answer(401, {"error": "Invalid user token."})
            path = self.path.partition("?")[0]
            if path == "/api/whoami-v2":
                return self.answer(200, {"name": "me", "type": "user", "auth": {}})
            if path == "/api/repos/create":
                made = json.loads(body)
                name = f"{made.get('organization') or 'me'}/{made['name']}"
                hub.repositories[name] = made
                return self.answer(200, {"url": f"{hub.url}/{name}", "id": name})
            if path == "/api/validate-yaml":
                return self.answer(200, {"errors": [], "warnings": []})
            if path.endswith("/preupload/main"):
                files = json.loads(body)["files"]
                modes = [
                    {
                        "path": f["path"],
                        "uploadMode": "lfs" if f["size"] > 20_000 else "regular",
                        "shouldIgnore": False,
                    }
                    for f in files
                ]
                return self.answer(200, {"files": modes})
            if path.endswith("/info/lfs/objects/batch"):  # no actions: the hub has the files
                return self.answer(
                    200, {"objects": json.loads(body)["objects"], "transfer": "basic"}
                )
            if path.endswith("/commit/main") and hub.failures:
                hub.failures -= 1
                return self.answer(507, {"error": "Insufficient storage."})
            if path.endswith("/commit/main"):
                for line in body.splitlines():
                    entry = json.loads(line)
                    value = entry["value"]
                    if entry["key"] == "file":
                        hub.files[value["path"]] = base64.b64decode(value["content"])
                    elif entry["key"] == "lfsFile":
                        hub.files[value["path"]] = value["oid"]
                return self.answer(
                    200,
                    {
                        "commitUrl": f"{hub.url}/me/tagger/commit/{1:040}",
                        "commitOid": "1" * 40,
                        "success": True,
                    },
                )
            if path.startswith("/api/models/"):
                name = path.removeprefix("/api/models/").partition("/revision")[0]
                return self.answer(
                    200,
                    {
                        "id": name,
                        "modelId": name,
                        "sha": "0" * 40,
                        "siblings": [],
                        "private": False,
                    },
                )
            return self.answer(404, {"error": f"{path} is not there"})

    return Handler


@contextmanager
def served_hub():
    """Serves a hub without repositories until the block ends."""
    hub = Hub()
    with serving(_handler(hub)) as hub.url:
        yield hub
