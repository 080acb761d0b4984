#!/usr/bin/env bash
# run_tests.sh <build folder> [ctest option...]: runs ctest there, then prints
# how many cases passed and failed over GoogleTest, lit and the rest.
set -euo pipefail
cd "$(dirname "$0")/.."

build=$(realpath "$1")
shift
reports=$build/test-reports
rm -rf "$reports"
mkdir -p "$reports/cases"
status=0
ctest --test-dir "$build" --parallel "${JOBS:-$(nproc)}" --output-on-failure \
  --progress --no-tests=error --output-junit "$reports/ctest.xml" "$@" ||
  status=$?
scripts/count_tests.py "$reports" || status=1
exit "$status"
