#!/bin/sh
# Looks for known advisories (OSV) about the exact versions in the lock files. Status 0: none; 1: some, which it lists;
# 2: they could not be looked up, so that nothing is known. Of packages that other platforms get it says nothing.
# $BIN names the folder of pip-audit where that is not .venv/bin.
set -eu
cd "$(dirname "$0")/.."
errors=$(mktemp)
trap 'rm -f "$errors"' EXIT
status=0
for lock in requirements-image.lock requirements-dev.lock; do # what runs; what else builds and tests it
    if found=$("${BIN:-.venv/bin}/pip-audit" --strict --require-hashes --disable-pip --progress-spinner off --desc off \
        --vulnerability-service osv ${OSV_URL:+--osv-url "$OSV_URL"} --requirement "$lock" 2>"$errors"); then
        echo "$lock: no known advisories"
    elif [ -n "$found" ]; then
        printf '%s:\n%s\n' "$lock" "$found"
        status=1
    else
        reason=$(tail -n 1 "$errors" | cut -c 1-100)
        echo "audit.sh: the advisories can't be looked up (offline?), so $lock was not checked: $reason" >&2
        exit 2
    fi
done
exit $status
