#!/usr/bin/env bash
# Fails if clang-format-14 would change a C++ file (`make format`).
set -euo pipefail
cd "$(dirname "$0")/../.."

scripts/project_files.sh '*.cpp' '*.h' '*.cu' '*.cuh' |
  xargs -r -n 40 clang-format-14 --dry-run -Werror
