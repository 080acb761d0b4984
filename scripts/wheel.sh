#!/usr/bin/env bash
# wheel.sh: builds the Python package (docs/python.md) and writes its wheel to
# build/. A log is shown only when a step fails. The wheel is for $PYTHON, by
# default python3. A wheel built with Python 3.12 or later fits all versions
# from 3.12 on; a wheel built with an earlier version fits only that version.
set -euo pipefail
cd "$(dirname "$0")/.."

log=build/wheel.log
mkdir -p build
quietly() {
  "$@" >"$log" 2>&1 || {
    cat "$log" >&2
    exit 1
  }
}

# Debian's own Python installs packages only into virtual environments.
python=${PYTHON:-python3}
environment=build/wheel-$("$python" -c 'import sys; print(sys.version_info[1])')
if [ ! -x "$environment/bin/pip" ]; then
  rm -rf "$environment"
  quietly "$python" -m venv "$environment"
fi
rm -f build/mtplan-*.whl
quietly "$environment/bin/pip" wheel --no-deps --wheel-dir build .
ls -sh build/mtplan-*.whl
