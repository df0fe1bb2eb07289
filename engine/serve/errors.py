"""Errors in the shape that OpenAI's clients read."""

from __future__ import annotations

import json
from typing import Any

from starlette.responses import Response


class ApiError(Exception):
    """An answer other than 200. `param`: the field that is wrong, when it is one."""

    def __init__(self, message: str, *, status: int = 400, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.message, self.status, self.param, self.code = message, status, param, code

    def body(self) -> dict[str, Any]:
        """The JSON body: `{"error": {"message": ..., "type": ..., ...}}`."""
        kind = "server_error" if self.status >= 500 else "invalid_request_error"
        return {"error": {"message": self.message, "type": kind, "param": self.param, "code": self.code}}

    def response(self) -> Response:
        """In ASCII: what it repeats of a request may hold half a surrogate pair, which UTF-8 cannot carry."""
        return Response(json.dumps(self.body()), self.status, media_type="application/json")
