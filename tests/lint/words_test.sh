#!/usr/bin/env bash
# words_test.sh <folder>: checks that words.sh prints only lines with a word.
set -euo pipefail

lint=$(dirname "$(realpath "$0")")/words.sh
mkdir -p "$1"
cd "$1"
printf 'at work\n/home/wo%s/x\n' rk >bad.txt
printf 'a network of working parts\n' >good.txt
expected=$(printf 'bad.txt:2:/home/wo%s/x' rk)
if found=$("$lint" good.txt bad.txt); then
  echo 'words.sh did not fail' >&2
  exit 1
fi
[ "$found" = "$expected" ] || {
  printf 'expected: %s\nfound: %s\n' "$expected" "$found" >&2
  exit 1
}
"$lint" good.txt
