#!/usr/bin/env bash
# If CUDA and cuDNN are installed without the headers of cuDNN's C++ frontend,
# fetches these headers to .deps/. Without them everything builds, but attention
# on GPUs uses mtplan's own kernels.
set -euo pipefail
cd "$(dirname "$0")/.."

version=1.32.0
to=.deps/cudnn_frontend
[ -e "$to/$version" ] && exit 0
command -v nvcc >/dev/null || exit 0
cuda=$(dirname "$(dirname "$(readlink -f "$(command -v nvcc)")")")
has() { [ -e "$cuda/include/$1" ] || [ -e "/usr/include/$1" ]; }
has cudnn.h || exit 0
has cudnn_frontend.h && exit 0

giveUp() {
  printf 'setup: no headers of cuDNN'\''s frontend (%s): attention on GPUs uses mtplan'\''s own kernels\n' "$1" >&2
  exit 0
}

fetched=$(mktemp -d)
trap 'rm -rf "$fetched"' EXIT
printf 'setup: fetching the headers of cuDNN'\''s frontend\n'
python3 -m pip --version >/dev/null 2>&1 || giveUp 'python3 has no pip'
python3 -m pip download -q --disable-pip-version-check --no-deps --retries 1 \
  --timeout 20 --only-binary :all: -d "$fetched" \
  "nvidia-cudnn-frontend==$version" >"$fetched/log" 2>&1 ||
  giveUp "$(tail -n 1 "$fetched/log")"
python3 -m zipfile -e "$fetched"/*.whl "$fetched/all"
rm -rf "$to"
mkdir -p "$to"
cp -r "$fetched/all/include" "$to/"
touch "$to/$version"
