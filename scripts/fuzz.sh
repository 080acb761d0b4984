#!/usr/bin/env bash
# fuzz.sh [target...]: builds the fuzzers with clang and runs each (default:
# all) for FUZZ_SECONDS (default 600), starting from the inputs that
# scripts/seeds.sh lists. New inputs are written to build/fuzz/corpus, inputs
# that crash to build/fuzz/crashes.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${FUZZ_SECONDS:-600}
if [ $# -eq 0 ]; then
  for source in tests/fuzz/fuzz_*.cpp; do
    name=$(basename "$source" .cpp)
    set -- "$@" "${name#fuzz_}"
  done
fi
scripts/build.sh fuzz "${@/#/fuzz_}"

status=0
for target in "$@"; do
  mapfile -t seeds < <(scripts/seeds.sh "$target" build/fuzz)
  found=build/fuzz/corpus/$target
  mkdir -p "$found" build/fuzz/crashes
  log=build/fuzz/$target.log
  words=()
  [ -f "tests/fuzz/dictionaries/$target.dict" ] &&
    words=(-dict="tests/fuzz/dictionaries/$target.dict")
  if "build/fuzz/bin/fuzz_$target" -max_total_time="$seconds" -timeout=10 \
    -rss_limit_mb=4096 -malloc_limit_mb=512 -max_len=16384 \
    -print_final_stats=1 "${words[@]}" \
    -artifact_prefix="build/fuzz/crashes/$target-" \
    "$found" "${seeds[@]}" >"$log" 2>&1; then
    printf 'fuzz_%s: %s runs in %s s, no crash\n' "$target" \
      "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")" "$seconds"
  else
    tail -n 40 "$log" >&2
    printf 'fuzz_%s: failed, see %s\n' "$target" "$log" >&2
    status=1
  fi
done
exit "$status"
