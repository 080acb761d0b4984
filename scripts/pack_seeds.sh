#!/usr/bin/env bash
# pack_seeds.sh <fuzz target> [file...]: adds inputs to the target's archive of
# seeds, tests/fuzz/corpus/<target>.tar.xz, each under the SHA-1 of its content.
# The same inputs always give the same archive.
set -euo pipefail
archive=$(realpath "$(dirname "$0")/../tests/fuzz/corpus")/$1.tar.xz
shift

seeds=$(mktemp -d)
trap 'rm -rf "$seeds"' EXIT
[ ! -f "$archive" ] || tar -xJf "$archive" -C "$seeds"
for file in "$@"; do
  sum=$(sha1sum "$file")
  cp "$file" "$seeds/${sum%% *}"
done
(cd "$seeds" && find . -type f -printf '%P\n' | LC_ALL=C sort) |
  tar -c -C "$seeds" --format=ustar --owner=0 --group=0 --numeric-owner \
    --mtime=@0 --mode=0644 --verbatim-files-from -T - |
  xz -9e --threads=1 >"$archive.new"
mv "$archive.new" "$archive"
