#!/usr/bin/env bash
# Runs all tests with the heavy ones over device code for all architectures, the
# same under AddressSanitizer and UBSan, then every fuzzer for FUZZ_SECONDS. A
# failure does not end the run, so that one run shows all failures.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

export MTPLAN_TEST_ALL=1
failed=()

part() {
  local name=$1
  shift
  printf '== %s\n' "$name"
  "$@" || failed+=("$name")
}

inBuild() {
  scripts/build.sh "$1" && scripts/run_tests.py "build/$1" "${@:2}"
}

part 'release, heavy tests included' inBuild package
part 'AddressSanitizer and UBSan' inBuild asan --label-exclude 'heavy|lint'
part "fuzzing, ${FUZZ_SECONDS:-600} s a target" scripts/fuzz.sh

if [ ${#failed[@]} -gt 0 ]; then
  printf 'failed: %s\n' "${failed[@]}" >&2
  exit 1
fi
