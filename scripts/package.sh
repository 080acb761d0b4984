#!/usr/bin/env bash
# Builds the packages of cmake/package.cmake, with device code for all supported
# GPUs, and writes the archives to build/. A warning names each missing GPU test
# suite: both suites need CUDA, and cudnn_tests also needs cuDNN.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/build.sh package package_contents
log=build/package/package.log
cpack --config build/package/CPackConfig.cmake >"$log" 2>&1 || {
  cat "$log" >&2
  exit 1
}
archives=$(sed -n 's/^CPack: - package: \(.*\) generated\.$/\1/p' "$log")
printf '%s\n' "$archives" | xargs ls -sh
tests=$(grep -e '-tests\.tar\.xz$' <<<"$archives" || true)
for suite in cuda_tests cudnn_tests; do
  if [ -z "$tests" ] || ! tar tJf "$tests" | grep "/bin/$suite\$" >/dev/null; then
    printf 'package: WARNING: the package has no %s and cannot run %s\n' \
      "$suite" 'the GPU conformance tests (docs/gpu-acceptance.md)' >&2
  fi
done
