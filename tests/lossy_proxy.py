"""A proxy before a server that loses a connection at the worst moment: around a commit."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from types import TracebackType


class LossyProxy:
    """Passes bytes on, until it is told to lose the next commit or the answer to it.

    Args:
        port: Where the server listens on the loopback address.
        commit: What is in a request that commits; by default PostgreSQL's.
    """

    def __init__(self, port: int, commit: bytes = b"COMMIT\0") -> None:
        self._server = port
        self._commit = commit
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._losing = ""
        self._open: list[socket.socket] = []

    def __enter__(self) -> LossyProxy:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # Wakes `accept`, which closing alone does not.
        self._listener.shutdown(socket.SHUT_RDWR)
        for each in (self._listener, *self._open):
            _end(each)

    def lose_next_commit(self, *, arrives: bool) -> None:
        """Cut the connection after the next commit was passed on, or instead of passing it on."""
        self._losing = "answer" if arrives else "commit"

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._server))
            self._open += [client, server]
            lost = threading.Event()
            for run in (self._requests, self._answers):
                threading.Thread(target=run, args=(client, server, lost), daemon=True).start()

    def _requests(
        self, client: socket.socket, server: socket.socket, lost: threading.Event
    ) -> None:
        with suppress(OSError):
            while data := client.recv(1 << 16):
                if self._losing and self._commit in data:
                    losing, self._losing = self._losing, ""
                    lost.set()
                    if losing == "commit":
                        break
                server.sendall(data)
        _end(server)
        _end(client)

    def _answers(self, client: socket.socket, server: socket.socket, lost: threading.Event) -> None:
        with suppress(OSError):
            while data := server.recv(1 << 16):
                if lost.is_set():
                    break  # It is the answer, and nobody gets it.
                client.sendall(data)
        _end(client)


def _end(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()
