"""A real nginx in front of a server: TLS outside, a path, and each way in which such a proxy is set up or forgotten."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.helpers.app_server import free_port, listens, stop
from tests.helpers.waiting import until

NAME = "kv.test"
"""Reserved for tests (RFC 2606): the browser is told that it is this machine."""
UPGRADE = (
    "proxy_http_version 1.1;",
    "proxy_set_header Upgrade $http_upgrade;",
    "proxy_set_header Connection $connection_upgrade;",
)
KEEP_HOST = ("proxy_set_header Host $http_host;",)
# A busy machine takes longer than nginx's 75 seconds from one page to the next: the browser then asks over connections
# that nginx closes in that moment, and gives up after some (ERR_TOO_MANY_RETRIES).
CONFIGURATION = """
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
{user}
events {{}}
http {{
  access_log off;
  keepalive_timeout 600s;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  map $http_upgrade $connection_upgrade {{ default upgrade; '' close; }}
  server {{
    listen 127.0.0.1:{port} ssl;
    server_name {name};
    ssl_certificate {folder}/certificate.pem;
    ssl_certificate_key {folder}/key.pem;
    {locations}
  }}
}}
"""


def location(path: str, upstream: str, directives: Sequence[str]) -> str:
    """A `location` block that passes requests below `path` on."""
    return f"location {path} {{ proxy_pass {upstream}; {' '.join(directives)} }}"


@contextlib.contextmanager
def running_nginx(folder: Path, locations: Sequence[str]) -> Iterator[str]:
    """The address of an nginx with these `location` blocks: `https://kv.test:PORT`, with a certificate of its own."""
    nginx = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if nginx is None:
        reason = "No nginx on this machine: apt-get install nginx-light."
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    _make_certificate(folder)
    port, user = free_port(), "user root;" if os.geteuid() == 0 else ""
    text = CONFIGURATION.format(folder=folder, port=port, name=NAME, locations="\n    ".join(locations), user=user)
    (folder / "nginx.conf").write_text(text, "utf-8")
    with (folder / "output.log").open("wb") as log:
        process = subprocess.Popen([nginx, "-c", str(folder / "nginx.conf")], stdout=log, stderr=subprocess.STDOUT)
    try:
        until(lambda: process.poll() is not None or listens(port), what="nginx listens")
        assert process.poll() is None, (folder / "output.log").read_text("utf-8")
        yield f"https://{NAME}:{port}"
    finally:
        stop(process)


def _make_certificate(folder: Path) -> None:
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={NAME}"]
    command += ["-keyout", str(folder / "key.pem"), "-out", str(folder / "certificate.pem")]
    subprocess.run(command, check=True, capture_output=True)
