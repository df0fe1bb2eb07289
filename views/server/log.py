"""Log lines with time, level and logger, on the server's standard error.

19:14:29  info    views.server.model_registry: model smollm2-135m-instruct is ready after 2.1 s
"""

from __future__ import annotations

import logging
from typing import TextIO

LOGGERS = ("views", "engine", "kernels", "pages")
FORMAT = "%(asctime)s  %(levelname)-7s %(name)s: %(message)s"


def configure_logging(stream: TextIO | None = None) -> None:
    """Set up this project's loggers; Streamlit's stay as they are. Safe to call again. None: standard error."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_LowerCase(FORMAT, datefmt="%H:%M:%S"))
    for name in LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.setLevel(logging.INFO)
        logger.propagate = False


class _LowerCase(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        record.levelname = record.levelname.lower()
        return super().format(record)
