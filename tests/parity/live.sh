#!/usr/bin/env bash
# live.sh: makes the goldens anew, with the first Python that has PyTorch of
# $MTPLAN_TORCH_PYTHON, the PATH's and Debian's, and holds those that are
# committed to them. Ends with 77, skipped, if none has it.
set -euo pipefail
cd "$(dirname "$0")"

for python in ${MTPLAN_TORCH_PYTHON:-} python3 /usr/bin/python3; do
  if "$python" -c 'import torch' 2>/dev/null; then
    exec "$python" -B make_goldens.py --check
  fi
done
echo 'skipped: no Python here has PyTorch (Debian: apt install python3-torch)'
exit 77
