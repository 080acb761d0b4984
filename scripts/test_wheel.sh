#!/usr/bin/env bash
# test_wheel.sh: builds the wheel, installs it with PyTorch, JAX and the
# trainers that read exported plans into a new virtual environment, and runs the
# tests of the Python package there. A test that is skipped counts as failed.
# $PYTHON has the same meaning as in wheel.sh.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/wheel.sh
environment=build/wheel-test
rm -rf "$environment"
"${PYTHON:-python3}" -m venv "$environment"
"$environment/bin/pip" install --quiet "$(ls build/mtplan-*.whl)[test]"
"$environment/bin/python" -m unittest discover -v -s tests/python \
  -p '*_test.py' 2>&1 | tee build/wheel-test.log
if grep -q '\.\.\. skipped' build/wheel-test.log; then
  echo 'test_wheel.sh: some tests were skipped' >&2
  exit 1
fi
