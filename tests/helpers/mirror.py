"""A local HTTP server with files, ranges and faults, laid out as the real sites are."""

import hashlib
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CUT, EMPTY = "cut", "empty"


class Mirror:
    """Files by path, and faults: path -> what happens to its next requests, one after the other.

    A fault is a status such as 429, CUT (half of what is asked for, then the connection ends), or
    EMPTY (the connection ends at once).
    """

    def __init__(self):
        self.files, self.faults, self.redirects = {}, {}, {}
        self.requests, self.agents = [], set()
        self.ranges = True
        self.etags = True
        self.at_once = self.most_at_once = 0
        self.slow_s = 0.0
        self.url = ""

    def starts_of(self, path):
        """First bytes of the requests of a file."""
        return [start for name, start in self.requests if name == path]

    def add_dump(self, wiki, date, jobs, digests=("sha1", "md5"), done=True):
        """A dump with `dumpstatus.json`: job -> file -> content."""
        status = {}
        for job, contents in jobs.items():
            entries = {}
            for name, content in contents.items():
                url = f"/{wiki}/{date}/{name}"
                self.files[url] = content
                entries[name] = {"size": len(content), "url": url} | {
                    algorithm: hashlib.new(algorithm, content).hexdigest() for algorithm in digests
                }
            status[job] = {"status": "done" if done else "waiting", "files": entries}
        self.files[f"/{wiki}/{date}/dumpstatus.json"] = json.dumps(
            {"version": "0.8", "jobs": status}
        ).encode()
        listed = self.files.get(f"/{wiki}/", b"<a href='../'>../</a>")
        self.files[f"/{wiki}/"] = listed + f'<a href="{date}/">{date}/</a>\n'.encode()

    def add_release(self, artifact, release, contents, described=True):
        """A release of one of DBpedia's artifacts, with `dataid.ttl`."""
        blocks = ["@prefix dataid: <http://dataid.dbpedia.org/ns/core#> ."]
        for name, content in contents.items():
            self.files[f"/{artifact}/{release}/{name}"] = content
            digest = hashlib.sha256(content).hexdigest()
            blocks.append(
                f'<dataid.ttl#{name}>\n  a dataid:SingleFile ;\n  dataid:sha256sum "{digest}"^^x:string .'
            )
        if described:
            self.files[f"/{artifact}/{release}/dataid.ttl"] = "\n\n".join(blocks).encode()
        listed = self.files.get(f"/{artifact}/", b"")
        self.files[f"/{artifact}/"] = listed + f'<a href="{release}/">{release}/</a>\n'.encode()


def _handler(mirror):
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def do_HEAD(self):
            self.do_GET()

        def do_GET(self):
            with lock:
                mirror.at_once += 1
                mirror.most_at_once = max(mirror.most_at_once, mirror.at_once)
            try:
                self.answer()
            finally:
                with lock:
                    mirror.at_once -= 1

        def answer(self):
            mirror.agents.add(self.headers["User-Agent"])
            path = self.path
            fault = (mirror.faults.get(path) or [None]).pop(0)
            if fault == EMPTY:
                mirror.requests.append((path, None))
                self.close_connection = True
                return
            if path in mirror.redirects:
                return self.head(302, {"Location": mirror.redirects[path], "Content-Length": "0"})
            if isinstance(fault, int) or path not in mirror.files:
                status = fault or 404
                more = {"Retry-After": "7"} if status == 429 else {}
                return self.head(status, {"Content-Length": "0"} | more)
            content = mirror.files[path]
            etag = f'"{hashlib.md5(content).hexdigest()}"'
            start, end, status = 0, len(content), 200
            asked = self.headers.get("Range")
            fits = self.headers.get("If-Range") in (None, etag)
            if asked and mirror.ranges and fits:
                first, _, last = asked.removeprefix("bytes=").partition("-")
                start, status = int(first), 206
                end = min(end, int(last) + 1) if last else end
                if start >= len(content):
                    return self.head(416, {"Content-Length": "0"})
            mirror.requests.append((path, start))
            sent = content[start:end]
            headers = {"Content-Length": str(len(sent))}
            if mirror.etags:
                headers["ETag"] = etag
            if status == 206:
                headers["Content-Range"] = f"bytes {start}-{end - 1}/{len(content)}"
            headers["Accept-Ranges"] = "bytes" if mirror.ranges else "none"
            self.head(status, headers)
            if self.command == "HEAD":
                return
            if mirror.slow_s:
                threading.Event().wait(mirror.slow_s)
            if fault == CUT:
                self.wfile.write(sent[: max(1, len(sent) // 2)])
                self.wfile.flush()
                self.close_connection = True
                return
            self.wfile.write(sent)

        def head(self, status, headers):
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()

    return Handler


@contextmanager
def serving(handler):
    """Runs a local HTTP server until the block ends; gives its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def served():
    """Serves an empty mirror until the block ends."""
    mirror = Mirror()
    with serving(_handler(mirror)) as mirror.url:
        yield mirror
