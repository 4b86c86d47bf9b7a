"""Prepares Postgres, a browser and Slurm for the tests. Prints what was found, one per line, installs Debian's packages
of browser and Slurm if possible, and says which tests will be skipped otherwise."""

from __future__ import annotations

import os
import shutil
import subprocess

from tests import browser, postgres
from tests.slurm import cluster

# Chinese pages need a font with these characters; tests/browser.py says what needs libatomic1.
BROWSER = ("chromium", "fonts-noto-cjk", "libatomic1")


def main() -> None:
    programs = postgres.find_programs()
    print(f"Postgres: {programs}" if programs else f"Tests marked postgres will be skipped: {postgres.MISSING}")
    missing = [*(BROWSER if browser.problem() else ()), *(cluster.PACKAGES if cluster.missing() else ())]
    if missing:
        _install(missing)
    problem = browser.problem()
    print(f"Tests marked browser will be skipped: {problem}" if problem else f"Chromium: {browser.find_chromium()}")
    problem = cluster.missing()
    print(f"Tests on Slurm will be skipped: {problem}" if problem else "Slurm: found", flush=True)


def _install(packages: list[str]) -> None:
    """Installs packages with apt-get if allowed. A failure prints one line, because the tests can run without them."""
    if os.name != "posix" or os.geteuid() != 0 or shutil.which("apt-get") is None:
        return
    print(f"Installing {', '.join(packages)} …", flush=True)
    quiet = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update"], ["install", "-y", "--no-install-recommends", *packages]):
        done = subprocess.run(["apt-get", "-qq", *command], env=quiet, capture_output=True, text=True)
        if done.returncode != 0:
            reason = done.stderr.strip().splitlines() or ["no reason given"]
            print(f"apt-get {command[0]} failed: {reason[-1]}")
            return


if __name__ == "__main__":
    main()
