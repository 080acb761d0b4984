#!/usr/bin/env bash
# Every C++ file is as clang-format-14 would leave it (`make format`).
set -euo pipefail
cd "$(dirname "$0")/../.."

scripts/project_files.sh '*.cpp' '*.h' '*.cu' '*.cuh' |
  xargs -r -n 40 clang-format-14 --dry-run -Werror
