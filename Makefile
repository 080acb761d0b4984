# Shortcuts for developers. The work itself is in scripts/, CMakePresets.json
# and ctest. A target that is run again does only the missing work.

.PHONY: demo test test-all packages setup build package wheel format docs bench clean help
.DEFAULT_GOAL := help

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:[^#]*## /\t/' | expand -t 12

demo: packages ## plan GPT-2 8.3B for eight GPUs, train a tiny GPT-2
	@scripts/build.sh release mtplan
	@build/release/bin/mtplan examples/gpt2-8.3b.json --gpus 8 \
	  --hardware dgx-2h --dp 1 --tp 8 --splits column,row,head,vocab
	@scripts/build.sh release mtrun
	@build/release/bin/mtplan examples/tiny-gpt2.json --gpus 4 \
	  --hardware cpu --dp 2 --tp 2 --global-batch 32 --micro-batch 8 \
	  -o build/demo >/dev/null
	@build/release/bin/mtrun build/demo --data examples/data/opticks.txt \
	  --steps 200 --every 20

test: setup ## build and run every test but the heavy ones
	@scripts/build.sh release
	@scripts/run_tests.py build/release --label-exclude heavy

test-all: setup ## also the heavy tests, sanitizers, the wheel and fuzzing
	@scripts/test_all.sh

packages: ## install the Debian packages that are missing
	@scripts/setup.sh

setup: packages ## also fetch the headers of cuDNN's frontend
	@scripts/setup_cudnn.sh

build: setup ## build everything
	@scripts/build.sh release

package: setup ## archives that run where nothing can be installed
	@scripts/package.sh

wheel: packages ## the Python package, as a wheel in build/
	@scripts/wheel.sh

format: setup ## clang-format every C++ file in place
	@scripts/project_files.sh '*.cpp' '*.h' '*.cu' | \
	  xargs -r clang-format-14 -i

docs: setup ## regenerate docs/reference from the TableGen files
	@scripts/build.sh release docs

bench: setup ## build and run the benchmarks
	@scripts/build.sh release mtplan_bench
	@build/release/bin/mtplan_bench

clean: ## remove all builds
	@rm -rf build
