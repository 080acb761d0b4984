#!/usr/bin/env bash
# seeds.sh <fuzz target> <build folder>: prints the folders of a fuzzer's
# initial inputs, one per line: named inputs, inputs that the build unpacked
# from the fuzzer's archive, and examples of the same format.
set -euo pipefail
root=$(realpath "$(dirname "$0")/..")

folders=("tests/fuzz/corpus/$1")
unpacked=$2/tests/fuzz/corpus/$1
case $1 in
machine) folders+=(examples/machines) ;;
software) folders+=(examples/software) ;;
measurements) folders+=(examples/measurements) ;;
hf_config) folders+=(examples) ;;
weights) folders+=(tests/parity/files/{bert-published,gpt2,gpt2-llmc,llama,qwen2}) ;;
native_json)
  folders+=(examples/native)
  folders+=(tests/ir/inputs/native/{good,bad_schema,bad_meaning})
  ;;
esac
for folder in "${folders[@]/#/$root/}" "$unpacked"; do
  [ ! -d "$folder" ] || printf '%s\n' "$folder"
done
