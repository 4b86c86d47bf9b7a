#!/bin/sh
# Brings .venv to what a lock file says, and installs torchtriage into it: scripts/install.sh requirements.lock
# A .venv that is not there, or is broken, is made from the first Python that will do ($PYTHON names another).
set -eu
lock=$1

fail() {
    echo "torchtriage: $*" >&2
    exit 1
}

new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

can_make_venvs() {
    "$1" -c 'import ensurepip, venv' 2>/dev/null
}

# Debian keeps the part of Python that makes virtual environments in a package of its own.
add_venv_package() {
    package=$("$1" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        fail "$1 cannot make virtual environments; install it with: sudo apt-get install $package"
    fi
    echo "Installing $package …"
    { apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y "$package"; } >/dev/null 2>&1 ||
        fail "apt-get could not install $package, which $1 needs to make virtual environments"
}

choose_python() {
    chosen=
    for candidate in ${PYTHON:-python3.13 python3.12 python3.11 python3}; do
        new_enough "$candidate" || continue
        chosen=${chosen:-$candidate}
        if can_make_venvs "$candidate"; then
            chosen=$candidate
            return
        fi
    done
    [ -n "$chosen" ] || fail "needs Python 3.11 or newer (looked for ${PYTHON:-python3.13, python3.12, python3.11, python3})"
    add_venv_package "$chosen"
}

if ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
    choose_python
    echo "Making .venv with $("$chosen" -V) …"
    "$chosen" -m venv --clear .venv || fail "$chosen could not make the virtual environment .venv"
fi

echo "Installing what $lock lists into .venv (the first time takes a minute) …"
# Wheels only: nothing is compiled here, and a platform without a wheel is named at once. -qq keeps errors and drops
# warnings, of which pip has one per package for a mirror that lacks it.
.venv/bin/python -m pip install -qq --disable-pip-version-check --require-hashes --only-binary :all: -r "$lock"
.venv/bin/python -m pip install -qq --disable-pip-version-check --no-deps --no-build-isolation --editable .
