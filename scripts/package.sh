#!/usr/bin/env bash
# Builds what goes into packages (cmake/package.cmake) and writes the archives
# to build/.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/build.sh release package_contents
log=build/release/package.log
cpack --config build/release/CPackConfig.cmake >"$log" 2>&1 || {
  cat "$log" >&2
  exit 1
}
sed -n 's/^CPack: - package: \(.*\) generated\.$/\1/p' "$log" | xargs ls -sh
