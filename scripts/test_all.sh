#!/usr/bin/env bash
# Runs all tests, including heavy ones, on a build for all supported GPUs, then
# all but heavy tests and lints under AddressSanitizer and UBSan, then the tests
# of the wheel, then every fuzzer for FUZZ_SECONDS. The script continues after
# failures, so that one run shows all of them.
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
part 'wheel, PyTorch, JAX and the trainers that read exports' \
  scripts/test_wheel.sh
part "fuzzing, ${FUZZ_SECONDS:-600} s a target" scripts/fuzz.sh

if [ ${#failed[@]} -gt 0 ]; then
  printf 'failed: %s\n' "${failed[@]}" >&2
  exit 1
fi
