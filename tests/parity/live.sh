#!/usr/bin/env bash
# live.sh MODULES SCRIPT [ARGUMENT...]: runs a script of this folder with the
# first Python that has these modules ("torch, transformers"), of
# $MTPLAN_TORCH_PYTHON, python3 in PATH and /usr/bin/python3. If none has them,
# the exit status is 77, which ctest reports as skipped.
set -euo pipefail
modules=$1
shift
cd "$(dirname "$0")"

for python in ${MTPLAN_TORCH_PYTHON:-} python3 /usr/bin/python3; do
  if "$python" -c "import $modules" 2>/dev/null; then
    exec "$python" -B "$@"
  fi
done
echo "skipped: no Python here has all of $modules (tests/parity/README.md)"
exit 77
