#!/usr/bin/env bash
# test_wheel.sh: builds the wheel and runs the tests of the Python package
# against it, in a new virtual environment that has the frameworks for which
# the package has models and plans. $PYTHON is as in wheel.sh.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/wheel.sh
environment=build/wheel-test
rm -rf "$environment"
"${PYTHON:-python3}" -m venv "$environment"
wheel=$(ls build/mtplan-*.whl)
"$environment/bin/pip" install --quiet "$wheel[test]"
# The wheel's modules are tested, not those of the clone.
MTPLAN_REQUIRED=1 "$environment/bin/python" -m unittest discover -v \
  -s tests/python -p '*_test.py'
