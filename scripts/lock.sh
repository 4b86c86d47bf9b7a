#!/bin/sh
# Writes from pyproject.toml, for every platform and Python 3.11 or newer, with the hashes of all files of a version:
# requirements.lock (what `make serve` installs), requirements-image.lock (with the other extras of the image) and
# requirements-dev.lock. A mirror or a local folder that this machine is set up to use must not
# get into them, so the settings that name one are taken away.
set -eu

compile() {
    env -u UV_DEFAULT_INDEX -u UV_EXTRA_INDEX_URL -u UV_FIND_LINKS -u UV_INDEX -u UV_INDEX_URL \
        .venv/bin/uv --no-config pip compile pyproject.toml --quiet --upgrade --universal --python-version 3.11 \
        --generate-hashes --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" "$@"
}

serving="--extra server --extra postgres --extra s3 --extra oidc --extra slack"

# shellcheck disable=SC2086
compile --group build $serving --output-file requirements.lock
# shellcheck disable=SC2086
compile --group build $serving --extra apprise --extra kubernetes --extra mcp --extra otlp --constraints requirements.lock \
    --output-file requirements-image.lock
# shellcheck disable=SC2086
compile --group build --group dev $serving --constraints requirements-image.lock --output-file requirements-dev.lock
