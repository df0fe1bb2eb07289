"""Run the Dockerfile's steps, as they are written, in a fresh root folder: for machines where no Docker daemon runs.

python -m tools.image_root FOLDER --mirror DEBIAN_MIRROR
python -m tools.image_root FOLDER --mirror DEBIAN_MIRROR --build-arg TORCH_INDEX=... --target cuda --lend /etc/pip.conf

Needs root, `debootstrap` and about 6 GB in FOLDER. Prints the size of the root by `du`, starts its server in a network
namespace of its own, where nobody else reaches it, and runs the image's own health check there. Stages that are whole
are taken as they are the next time, the target is made anew.
"""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tools.image_root.build import Builder, Image
from tools.image_root.dockerfile import DockerfileError

ROOT = Path(__file__).resolve().parents[2]
SECONDS_TO_START = 180
NEW_NETWORK = ("unshare", "--net", "sh", "-ec", 'ip link set lo up; exec "$@"', "sh")


def main(arguments: Sequence[str] | None = None) -> int:
    """Build, measure and try one target. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.image_root", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="a new or empty folder for the roots")
    parser.add_argument("--target", default="cpu", help="the stage to build (default: cpu)")
    parser.add_argument("--mirror", required=True, help="of Debian's packages")
    parser.add_argument("--build-arg", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument(
        "--lend", action="append", default=[], type=Path, help="a file or folder that RUN may read, too"
    )
    parser.add_argument("--lend-env", action="append", default=[], metavar="NAME", help="a variable that RUN gets, too")
    options = parser.parse_args(arguments)
    builder = Builder(
        context=ROOT,
        work=options.folder.resolve(),
        mirror=options.mirror,
        build_args=dict(each.split("=", 1) for each in options.build_arg),
        lent=tuple(options.lend),
        lent_env={name: os.environ[name] for name in options.lend_env},
    )
    builder.work.mkdir(parents=True, exist_ok=True)
    try:
        image = builder.build(options.target)
    except (DockerfileError, subprocess.CalledProcessError) as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{megabytes(image.root):6d} MB  {image.root}, by du")
    seconds = seconds_to_healthy(image)
    print(f"healthy after {seconds:.0f} s as user {image.user}" if seconds is not None else "never healthy")
    return 0 if seconds is not None else 1


def megabytes(folder: Path) -> int:
    """What `du` says a folder takes on the disk, in units of 1,000,000 bytes."""
    command = ["du", "--summarize", "--one-file-system", "--block-size=1000000", str(folder)]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[0])


def seconds_to_healthy(image: Image) -> float | None:
    """Start the image's command, ask its health check until it agrees, and stop it; None when it never does."""
    started = time.monotonic()
    server = image.start(f"exec {shlex.join(image.command)}", {}, network=NEW_NETWORK)
    beside_it = ("nsenter", f"--net=/proc/{server.pid}/ns/net")
    try:
        while time.monotonic() - started < SECONDS_TO_START and server.poll() is None:
            if image.start(f"{shlex.join(image.health_check)} 2> /dev/null", {}, network=beside_it).wait() == 0:
                return time.monotonic() - started
            time.sleep(1)
        return None
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait()


if __name__ == "__main__":
    raise SystemExit(main())
