"""Takes what a runner pushes: in the service's place, for tests of the runner alone."""

from __future__ import annotations

import io
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Received:
    """Requests as they came: method, path, token, body."""

    url: str = ""
    requests: list[tuple[str, str, str, bytes]] = field(default_factory=list)

    @property
    def results(self) -> list[dict[str, bytes]]:
        """Files of each pushed result, by name."""
        found = []
        for method, _, _, body in self.requests:
            if method == "PUT":
                with tarfile.open(fileobj=io.BytesIO(body)) as archive:
                    found.append({each.name: archive.extractfile(each).read() for each in archive})  # type: ignore[union-attr]
        return found


@contextmanager
def receiving() -> Iterator[Received]:
    """A server on loopback that takes everything."""
    received = Received()

    class Handler(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            self._take()

        def do_POST(self) -> None:
            self._take()

        def _take(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            received.requests.append((self.command, self.path, self.headers.get("authorization", ""), body))
            answer = b'{"detail": "The result counts: pass."}' if self.command == "PUT" else b""
            self.send_response(201 if self.command == "PUT" else 204)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    received.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield received
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
