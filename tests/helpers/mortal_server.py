"""The app's server, which a test may kill and start again at the same port."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlparse

from tests.helpers.app_server import ROOT, AppServer, running_app


class MortalServer:
    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self.folder, self.environment = folder, environment
        self.port: int | None = None
        self.num_starts = 0
        self.start()

    def start(self) -> None:
        """Returns once it answers."""
        self.num_starts += 1
        log_file = self.folder / f"server-{self.num_starts}.log"
        self._running = running_app(ROOT / "app.py", log_file, self.environment, self.port)
        self.app: AppServer = self._running.__enter__()
        self.port = urlparse(self.app.url).port

    def kill(self) -> None:
        self.app.process.kill()
        self.app.process.wait()

    def stop(self) -> None:
        self._running.__exit__(None, None, None)
