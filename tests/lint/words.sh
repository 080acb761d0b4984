#!/usr/bin/env bash
# words.sh [file...]: no file (default: all of the project) may name a machine
# it was written on or a package registry's host. Prints each line that does.
# The words are split here so that this file may stay.
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
