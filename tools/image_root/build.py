"""Runs the instructions of a Dockerfile in root folders, one a stage, with chroot in a mount namespace of its own.

What differs from Docker: the base image is made by debootstrap and thinned out as Debian's slim images are, a step sees
the network of this machine and may be lent files of it (how it reaches its package indexes), and a stage is one
layer.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from tools.image_root.dockerfile import (
    DockerfileError,
    Instruction,
    Stage,
    context_files,
    filled,
    needed_stages,
    pairs,
    read_stages,
)

DEBIAN = re.compile(r"debian:([a-z]+)-slim")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
NOT_IN_SLIM = ("/usr/share/doc", "/usr/share/man", "/usr/share/info", "/usr/share/locale")
RESOLVER = Path("/etc/resolv.conf")
ENTER = """
root=$1 user=$2 folder=$3 command=$4
shift 4
for lent in "$@"; do
    mount --bind "$lent" "$root$lent"
    mount -o remount,bind,ro "$root$lent"
done
mount --rbind /dev "$root/dev"
mount -t proc proc "$root/proc"
exec chroot --userspec="$user" "$root" /bin/sh -c 'cd "$1" && shift && exec "$@"' sh "$folder" /bin/sh -c "$command"
"""


@dataclass(frozen=True)
class Image:
    """A root folder, and how a process is started in it."""

    root: Path
    env: Mapping[str, str] = field(default_factory=lambda: {"PATH": PATH})
    folder: str = "/"
    user: str = "root"
    command: tuple[str, ...] = ()
    health_check: tuple[str, ...] = ()

    def start(
        self, command: str, env: Mapping[str, str], lent: Sequence[Path] = (), network: Sequence[str] = ()
    ) -> subprocess.Popen[bytes]:
        """A shell command in this root, as its user.

        lent: files and folders of this machine that it sees, too. network: a command that runs another one in a network
        of its own; without it the command has this machine's.
        """
        user, home = self._user()
        environment = {"HOME": home, **self.env, **env}
        enter = [
            *network,
            "unshare",
            "--mount",
            "--propagation",
            "private",
            "sh",
            "-ec",
            ENTER,
            "sh",
            str(self.root),
            user,
        ]
        return subprocess.Popen([*enter, self.folder, command, *map(str, lent)], env=environment)

    def _user(self) -> tuple[str, str]:
        """`1000:1000` and the home folder, as the root's own list of users has them."""
        for line in (self.root / "etc/passwd").read_text("utf-8").splitlines():
            name, _, uid, gid, _, home, _ = line.split(":")
            if self.user in (name, uid):
                return f"{uid}:{gid}", home
        raise DockerfileError(f"there is no user {self.user}")


@dataclass(frozen=True)
class Builder:
    """context: what `COPY` reads. work: gets a folder for each stage. mirror: of Debian's packages."""

    context: Path
    work: Path
    mirror: str
    build_args: Mapping[str, str] = field(default_factory=dict)
    lent: tuple[Path, ...] = ()
    lent_env: Mapping[str, str] = field(default_factory=dict)

    def build(self, target: str) -> Image:
        """The image of a stage. Raises DockerfileError with the line of the step that failed."""
        images: dict[str, Image] = {}
        stages = read_stages((self.context / "Dockerfile").read_text("utf-8"))
        for stage in needed_stages(stages, target):
            images[stage.name] = self._build_stage(stage, images, anew=stage.name == target)
        return images[target]

    def _build_stage(self, stage: Stage, images: Mapping[str, Image], anew: bool) -> Image:
        """A stage that stood there whole before, with these instructions, is taken as it is unless it is made anew."""
        root, whole = self.work / stage.name, self.work / f"{stage.name}.whole"
        base = images.get(stage.base) or Image(self._debian(stage.base))
        there = not anew and whole.exists() and whole.read_text("utf-8") == str(stage)
        if not there:
            shutil.rmtree(root, ignore_errors=True)
            subprocess.run(["cp", "--archive", "--reflink=auto", str(base.root), str(root)], check=True)
        image = replace(base, root=root)
        variables: dict[str, str] = {}
        for each in stage.instructions:
            if each.keyword == "ARG":
                name = each.value.partition("=")[0]
                variables |= pairs(filled(each.value, {**image.env, **variables}))
                variables |= {name: self.build_args[name]} if name in self.build_args else {}
            elif not there or each.keyword not in ("RUN", "COPY"):
                print(f"{stage.name}: {each.keyword} {each.value[:100]}", flush=True)
                image = self._step(image, each, variables, images)
        whole.write_text(str(stage), "utf-8")
        return image

    def _step(
        self, image: Image, step: Instruction, variables: Mapping[str, str], images: Mapping[str, Image]
    ) -> Image:
        if step.keyword == "RUN":
            self._run(image, step, variables)
            return image
        value = filled(step.value, {**image.env, **variables})
        match step.keyword:
            case "COPY":
                self._copy(image, value, images)
            case "ENV":
                return replace(image, env={**image.env, **pairs(value)})
            case "WORKDIR":
                inside(image.root, value).mkdir(parents=True, exist_ok=True)
                return replace(image, folder=value)
            case "USER":
                return replace(image, user=value)
            case "CMD":
                return replace(image, command=tuple(json.loads(value)))
            case "HEALTHCHECK":
                return replace(image, health_check=tuple(json.loads(value.partition("CMD")[2])))
        return image

    def _run(self, image: Image, step: Instruction, variables: Mapping[str, str]) -> None:
        lent = [path for path in (RESOLVER, *self.lent) if path.exists()]
        made = [place for path in lent for place in _made_place(image.root, path)]
        process = image.start(step.value, {**variables, **self.lent_env}, lent)
        failed = process.wait()
        for place in reversed(made):
            if place.is_file():
                place.unlink()
            elif not any(place.iterdir()):  # a step may have put something beside what it was lent
                place.rmdir()
        if failed:
            raise DockerfileError(f"line {step.line} failed ({failed}): RUN {step.value}")

    def _copy(self, image: Image, value: str, images: Mapping[str, Image]) -> None:
        options = dict(re.findall(r"--(\w+)=(\S+)", value))
        *sources, last = [word for word in value.split() if not word.startswith("--")]
        target = inside(image.root, str(PurePosixPath(image.folder, last)))
        if "from" in options:
            for source in sources:
                target.parent.mkdir(parents=True, exist_ok=True)
                subprocess.run(
                    ["cp", "-aT", str(inside(images[options["from"]].root, source)), str(target)], check=True
                )
            return
        ignore = (self.context / ".dockerignore").read_text("utf-8")
        copied = [path for path in context_files(self.context, ignore) if _is_below(path, sources)]
        for path in copied:
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(self.context / path, target / path)
        if "chown" in options:
            subprocess.run(["chroot", str(image.root), "chown", "-R", options["chown"], image.folder], check=True)

    def _debian(self, base: str) -> Path:
        """A root of this Debian release, made once. As in a slim image, nothing to read for a person is in it."""
        release = DEBIAN.fullmatch(base)
        if release is None:
            raise DockerfileError(f"FROM {base}: only debian:RELEASE-slim can be made here")
        root = self.work / base.replace(":", "-")
        if not (root / "etc/dpkg/dpkg.cfg.d/slim").exists():  # the last thing that is made
            shutil.rmtree(root, ignore_errors=True)
            command = ["debootstrap", "--variant=minbase", release[1], str(root), self.mirror]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            for folder in (*NOT_IN_SLIM, "/var/cache/apt", "/var/lib/apt/lists"):
                shutil.rmtree(inside(root, folder), ignore_errors=True)
                inside(root, folder).mkdir()
            excluded = "".join(f"path-exclude {folder}/*\n" for folder in NOT_IN_SLIM)
            (root / "etc/dpkg/dpkg.cfg.d/slim").write_text(excluded, "utf-8")
        return root


def inside(root: Path, path: str) -> Path:
    """An absolute path of the image, as a path of this machine."""
    return root / path.lstrip("/")


def _is_below(path: PurePosixPath, sources: Sequence[str]) -> bool:
    return any(source in (".", str(path)) or PurePosixPath(source) in path.parents for source in sources)


def _made_place(root: Path, path: Path) -> list[Path]:
    """What had to be made for `path` of this machine to be shown at the same place, outermost first."""
    place = inside(root, str(path))
    made = [each for each in reversed([place, *place.parents]) if not each.exists()]
    for each in made[:-1]:
        each.mkdir()
    for each in made[-1:]:
        each.mkdir() if path.is_dir() else each.touch()
    return made
