#!/usr/bin/env bash
# Installs the Debian 12 packages that mtplan needs and that are missing. The
# script never asks questions, and prints nothing if no package is missing.
set -euo pipefail

packages=(
  # building
  cmake ninja-build ccache g++ make git
  libmlir-19-dev mlir-19-tools llvm-19-dev llvm-19-tools zlib1g-dev
  libboost-dev libboost-graph-dev libboost-context-dev libeigen3-dev nlohmann-json3-dev
  libcli11-dev libtomlplusplus-dev libfmt-dev libjemalloc-dev libdnnl-dev libopenmpi-dev
  libxxhash-dev
  # testing and measuring
  libgtest-dev libgmock-dev libbenchmark-dev libvalijson-dev python3 jq
  openmpi-bin
  # format, lint, fuzzing
  clang clang-14 clang-format-14 clang-tidy-14 libclang-rt-14-dev libomp-14-dev
)

# Prints the packages above that are not installed, one per line.
missingPackages() {
  local name installed
  if ! command -v dpkg-query >/dev/null; then
    printf '%s\n' "${packages[@]}"
    return
  fi
  # dpkg-query fails for names that it does not know.
  installed=$(dpkg-query --show --showformat='${db:Status-Status} ${Package}\n' \
    "${packages[@]}" 2>/dev/null | sed -n 's/^installed //p') || true
  for name in "${packages[@]}"; do
    grep -qxF -- "$name" <<<"$installed" || printf '%s\n' "$name"
  done
}

giveUp() {
  printf 'setup: %s\n' "$1" >&2
  printf 'setup: needed, in the names of Debian 12:\n  %s\n' "${missing[*]}" >&2
  exit 1
}

mapfile -t missing < <(missingPackages)
[ "${#missing[@]}" -eq 0 ] && exit 0

command -v apt-get >/dev/null ||
  giveUp 'no apt-get here; please install the packages yourself'
if [ "$(id -u)" -eq 0 ]; then
  asRoot=()
elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
  asRoot=(sudo -n)
else
  giveUp 'neither root nor sudo without a password; please run as root:
  apt-get install --no-install-recommends '"${missing[*]}"
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT

# Runs one apt-get step, whose output is shown only if it fails.
quietly() {
  "${asRoot[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y \
    -o DPkg::Lock::Timeout=300 "$@" >"$log" 2>&1 </dev/null || {
    cat "$log" >&2
    giveUp "apt-get $1 failed (see above)"
  }
}

printf 'setup: installing %d packages\n' "${#missing[@]}"
quietly update
quietly install --no-install-recommends "${missing[@]}"
mapfile -t missing < <(missingPackages)
[ "${#missing[@]}" -eq 0 ] || giveUp 'packages are missing after installing'
