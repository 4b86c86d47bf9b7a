"""Virtual environments with the wheel and its dependencies, made from the packages that run the tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]


def build_wheel(folder: Path) -> Path:
    """Builds the wheel of this checkout without downloads, and returns its path."""
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*pip, "--wheel-dir", str(folder), str(ROOT)], check=True)
    (wheel,) = folder.glob("torchtriage-*.whl")
    return wheel


class Environment:
    """An empty virtual environment at `path`."""

    def __init__(self, path: Path) -> None:
        venv.create(path)
        self.bin = path / "bin"
        (self.packages,) = path.glob("lib/python*/site-packages")

    def install_wheel(self, wheel: Path) -> set[str]:
        """Installs only the wheel. Returns the names added to site-packages."""
        before = {each.name for each in self.packages.iterdir()}
        pip = [sys.executable, "-m", "pip", "--python", str(self.bin / "python"), "install", "--quiet"]
        subprocess.run([*pip, "--no-deps", "--no-index", "--no-compile", str(wheel)], check=True)
        return {each.name for each in self.packages.iterdir()} - before

    def install_dependencies(self, *extras: str) -> set[str]:
        """Copies the wheel's dependencies, direct and indirect. Returns the names of these distributions."""
        (info,) = self.packages.glob("torchtriage-*.dist-info")
        named = closure(Distribution.at(info), extras)
        for name in named:
            self._copy(distribution(name))
        return named

    def _copy(self, source: Distribution) -> None:
        for file in source.files or ():
            target = self.packages / file
            if ".." in file.parts or target.exists():
                continue  # a script, or a file that another distribution also has
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                os.link(str(source.locate_file(file)), target)
            except OSError:  # on another file system
                shutil.copyfile(str(source.locate_file(file)), target)

    def run(self, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Runs a program of the environment, without our environment variables."""
        surroundings = {"PATH": os.defpath, "HOME": str(self.bin.parent), **variables}
        program = [str(self.bin / command[0]), *command[1:]]
        return subprocess.run(program, env=surroundings, capture_output=True, text=True, cwd=self.bin.parent)


def closure(of: Distribution, extras: tuple[str, ...] = ()) -> set[str]:
    """Returns the names of all distributions that this one needs with these extras, directly or indirectly."""
    found: set[str] = set()
    open_: list[tuple[Distribution, frozenset[str]]] = [(of, frozenset(extras))]
    known: set[tuple[str, frozenset[str]]] = set()
    while open_:
        current, wanted = open_.pop()
        for text in current.requires or ():
            need = Requirement(text)
            if need.marker and not any(need.marker.evaluate({"extra": extra}) for extra in wanted or {""}):
                continue
            if need.name == "torchtriage":
                open_.append((of, frozenset(need.extras)))
            elif (key := (need.name.lower().replace("_", "-"), frozenset(need.extras))) not in known:
                known.add(key)
                found.add(key[0])
                open_.append((distribution(need.name), key[1]))
    return found
