"""A network between a browser and a server that a test can take away: a relay of TCP connections on this machine.

And a smaller loss: one message of a page that never arrives.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

from playwright.sync_api import Page

LOSE_NEXT = """words => {
    const send = WebSocket.prototype.send;
    WebSocket.prototype.send = function (message) {
        const text = typeof message === "string" ? message : new TextDecoder().decode(message);
        if (!text.includes(words)) return send.call(this, message);
        WebSocket.prototype.send = send;
        window.numLost = (window.numLost ?? 0) + 1;
        if (typeof message === "string") this.close();
    };
}"""


@dataclass
class Relay:
    """Passes bytes on to `port`. While it is cut, open connections are dead and new ones are turned away."""

    port: int
    listener: socket.socket = field(init=False)
    is_cut: bool = False
    _sockets: set[socket.socket] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.listener.getsockname()[1]}"

    def cut(self) -> None:
        self.is_cut = True
        self._close_all()

    def mend(self) -> None:
        self.is_cut = False

    def stop(self) -> None:
        self.listener.close()
        self._close_all()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # the listener was closed
            while True:
                near, _ = self.listener.accept()
                if self.is_cut:
                    near.close()
                else:
                    self._join(near)

    def _join(self, near: socket.socket) -> None:
        try:
            far = socket.create_connection(("127.0.0.1", self.port))
        except OSError:
            near.close()
            return
        self._sockets |= {near, far}
        for source, sink in ((near, far), (far, near)):
            threading.Thread(target=self._pass_on, args=(source, sink), daemon=True).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        for end in (source, sink):
            _close(end)
            self._sockets.discard(end)

    def _close_all(self) -> None:
        for end in list(self._sockets):
            _close(end)


def _close(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()


def lose_next(page: Page, words: str) -> None:
    """The page's next message with these words is lost on its way; a line of ours breaks with it, Streamlit's stays."""
    page.evaluate(LOSE_NEXT, words)


def num_lost(page: Page) -> int:
    return int(page.evaluate("window.numLost ?? 0"))


@contextlib.contextmanager
def relay_to(port: int) -> Iterator[Relay]:
    relay = Relay(port)
    yield relay
    relay.stop()
