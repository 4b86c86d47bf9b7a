"""Makes sure that the tests have a Postgres, a browser and a Slurm: says in a line each what was found, installs
Debian's packages of the latter two where that is possible, and says what will be skipped where it is not."""

from __future__ import annotations

import os
import shutil
import subprocess

from tests import browser, postgres
from tests.slurm import cluster

# Chinese pages need a font that has the characters; what needs libatomic1 says tests/browser.py.
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
    """Tries apt-get where it may be used; a failure is one line, as the tests can do without."""
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
