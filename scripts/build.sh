#!/usr/bin/env bash
# build.sh <preset> [target...]: configures and builds; shows a log only when a
# step fails.
set -euo pipefail
cd "$(dirname "$0")/.."

preset=$1
shift
mkdir -p "build/$preset"
log=build/$preset/configure.log
cmake --preset "$preset" >"$log" 2>&1 || {
  cat "$log" >&2
  exit 1
}
targets=()
[ $# -eq 0 ] || targets=(--target "$@")
log=build/$preset/build.log
printf 'build: %s in build/%s\n' "${*:-everything}" "$preset"
cmake --build --preset "$preset" "${targets[@]}" >"$log" 2>&1 || {
  grep -vE '^\[[0-9]+/[0-9]+\] (Building|Linking|Generating)' "$log" >&2
  exit 1
}
