"""Makes sure that the tests have a Postgres and a browser: says in a line each what was found, installs a Chromium
where that is possible, and says what will be skipped where it is not."""

from __future__ import annotations

import os
import shutil
import subprocess

from tests import browser, postgres

# Chinese pages need a font that has the characters; what needs libatomic1 says tests/browser.py.
PACKAGES = ("chromium", "fonts-noto-cjk", "libatomic1")


def main() -> None:
    programs = postgres.find_programs()
    print(f"Postgres: {programs}" if programs else f"Tests marked postgres will be skipped: {postgres.MISSING}")
    if browser.problem():
        _install_browser()
    problem = browser.problem()
    print(
        f"Tests marked browser will be skipped: {problem}" if problem else f"Chromium: {browser.find_chromium()}",
        flush=True,
    )


def _install_browser() -> None:
    """Tries apt-get where it may be used; a failure is one line, as the tests can do without."""
    if os.name != "posix" or os.geteuid() != 0 or shutil.which("apt-get") is None:
        return
    print(f"Installing {', '.join(PACKAGES)} …", flush=True)
    quiet = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update"], ["install", "-y", "--no-install-recommends", *PACKAGES]):
        done = subprocess.run(["apt-get", "-qq", *command], env=quiet, capture_output=True, text=True)
        if done.returncode != 0:
            reason = done.stderr.strip().splitlines() or ["no reason given"]
            print(f"apt-get {command[0]} failed: {reason[-1]}")
            return


if __name__ == "__main__":
    main()
