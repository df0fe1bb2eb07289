"""Install the PagedAttention visualizer from this folder, with the network off: python install.py [TARGET]

It needs Python's standard library and nothing else: this file is copied into the kit as it is.
"""

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

KIT = Path(__file__).resolve().parent
DEFAULT_TARGET = Path.home() / "paged-attention"
START = '''"""Start the app that lies in this folder. Options go to Streamlit: python start.py --server.port 8502"""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
PYTHON = HERE / ".venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
environment = {**os.environ, "PAGED_KV_CACHE_DIR": str(HERE / "cache")}
command = [str(PYTHON), "-m", "streamlit", "run", "app.py", *sys.argv[1:]]
raise SystemExit(subprocess.run(command, cwd=HERE / "app", env=environment).returncode)
'''


def main(arguments: list[str]) -> int:
    """Install into the folder named in `arguments`, or DEFAULT_TARGET. Returns the exit status."""
    target = Path(arguments[0]).resolve() if arguments else DEFAULT_TARGET
    if target.exists() and any(target.iterdir()):
        print(f"{target} is not empty. Name another folder: python install.py FOLDER")
        return 1
    install(target)
    print(f"\nInstalled. Start it with:\n\n    python {target / 'start.py'}\n")
    return 0


def install(target: Path) -> None:
    """Fill `target`: the app, its virtual environment, the model's cache, and a script that starts it."""
    print(f"Copying the program and the model to {target}")
    shutil.copytree(KIT / "app", target / "app")
    shutil.copytree(KIT / "weights", target / "cache")
    (target / "start.py").write_text(START, encoding="utf-8")
    print("Making the virtual environment")
    venv.create(target / ".venv", with_pip=True)
    print("Installing packages from the kit", flush=True)
    subprocess.run(pip_command(target), check=True)


def pip_command(target: Path) -> list[str]:
    """pip of the target's virtual environment, installing from the kit's wheels alone."""
    python = target / ".venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    command = [str(python), "-m", "pip", "install", "--no-index", "--disable-pip-version-check"]
    return [*command, "--find-links", str(KIT / "wheels"), "--requirement", str(KIT / "requirements.txt")]


if __name__ == "__main__":
    try:
        raise SystemExit(main(sys.argv[1:]))
    except subprocess.CalledProcessError:
        sys.exit("pip could not install from the kit; its last lines say why. Was the kit made on such a system?")
