#!/usr/bin/env bash
# words.sh [file...]: fails if a file (default: all of the project) names a path
# of the development machine or a package registry's host, and prints the lines.
# The words are split here so that this file does not match.
set -euo pipefail

words=('/wo''rk/' 'deb.deb''ian' 'py''pi')
arguments=()
for word in "${words[@]}"; do
  arguments+=(-e "$word")
done
if [ $# -eq 0 ]; then
  cd "$(dirname "$0")/../.."
  mapfile -t files < <(scripts/project_files.sh)
  set -- "${files[@]}"
fi
if grep -IHnFi "${arguments[@]}" -- "$@"; then
  exit 1
fi
