#!/bin/sh
# Renews the digests of the images that Dockerfile and docker-compose.yml begin with: each `NAME:TAG@sha256:…` gets the
# digest that its tag has now, of all platforms. Asks the registry through `docker buildx`; writes all or nothing.
set -eu
cd "$(dirname "$0")/.."
files="Dockerfile docker-compose.yml"

fail() {
    echo "images.sh: $*; nothing was changed" >&2
    exit 1
}

docker buildx version >/dev/null 2>&1 || fail "this needs docker with its plugin buildx"

changes=
for pinned in $(grep -hoE '[a-z0-9./_-]+:[A-Za-z0-9._-]+@sha256:[0-9a-f]{64}' $files | sort -u); do
    image=${pinned%@*}
    digest=$(docker buildx imagetools inspect "$image" --format '{{.Manifest.Digest}}' 2>&1) ||
        fail "$image can't be looked up: $(echo "$digest" | tail -n 1)"
    echo "$digest" | grep -qxE 'sha256:[0-9a-f]{64}' || fail "$image has no digest: $digest"
    changes="$changes -e s|$pinned|$image@$digest|g"
    [ "$pinned" = "$image@$digest" ] && echo "$image is the newest" || echo "$image is now $digest"
done
# shellcheck disable=SC2086
sed -i.old $changes $files
rm -f Dockerfile.old docker-compose.yml.old
