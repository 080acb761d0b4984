#!/usr/bin/env bash
# project_files.sh [pattern...]: prints the project's files that match, one per
# line. The project's files are those that git tracks or does not ignore; in an
# unpacked archive, they are all files outside build folders.
set -euo pipefail
cd "$(dirname "$0")/.."

[ $# -gt 0 ] || set -- '*'
if ! files=$(git ls-files --cached --others --exclude-standard 2>/dev/null) ||
  [ -z "$files" ]; then
  files=$(find . -name .git -prune -o -path './build*' -prune -o \
    -type f -printf '%P
')
fi
sort -u <<<"$files" | while IFS= read -r file; do
  for pattern in "$@"; do
    # shellcheck disable=SC2053 # the right side is a pattern
    if [[ $file == $pattern && -f $file ]]; then
      printf '%s\n' "$file"
      break
    fi
  done
done
