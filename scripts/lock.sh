#!/bin/sh
# Writes requirements.lock, requirements-image.lock (with the extras that the image has) and requirements-dev.lock from
# pyproject.toml: for every platform and Python 3.11 or newer,
# with the hashes of all files of a version. A mirror or a local folder that this machine is set up to use must not
# get into them, so the settings that name one are taken away.
set -eu

compile() {
    env -u UV_DEFAULT_INDEX -u UV_EXTRA_INDEX_URL -u UV_FIND_LINKS -u UV_INDEX -u UV_INDEX_URL \
        .venv/bin/uv --no-config pip compile pyproject.toml --quiet --upgrade --universal --python-version 3.11 \
        --generate-hashes --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" "$@"
}

compile --group build --output-file requirements.lock
compile --group build --extra apprise --extra kubernetes --extra mcp --constraints requirements.lock \
    --output-file requirements-image.lock
compile --group build --group dev --constraints requirements-image.lock --output-file requirements-dev.lock
