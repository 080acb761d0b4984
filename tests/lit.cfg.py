# Defines the lit suite: the .mlir and .test files under tests/. The build's
# lit.site.cfg.py sets the paths of the tools and loads this file.
#
# RUN lines use this build's mtplan, mtplan-opt and mtrun, and LLVM's FileCheck,
# not and split-file. %examples is the folder examples/.
import json
import os

import lit.formats

config.name = "mtplan"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["inputs", "fuzz", "lint"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.mtplan_build, "tests", "lit")

config.environment["PATH"] = os.pathsep.join(
    [config.mtplan_bin, config.llvm_bin, os.environ["PATH"]])
config.environment["FILECHECK_OPTS"] = "--dump-input-filter=error"
# Tests inherit the sanitizers' options and the `make test-all` switch.
for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "MTPLAN_TEST_ALL"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
if os.environ.get("MTPLAN_TEST_ALL"):
    config.available_features.add("heavy")  # REQUIRES: heavy

config.substitutions.append(
    ("%examples", os.path.join(config.mtplan_source, "examples")))

# Names the compilers of emitted programs (tests/codegen/source).
programs = os.path.join(config.mtplan_build, "tests", "programs.json")
if os.path.exists(programs):
    config.environment["MTPLAN_PROGRAMS"] = programs
    config.available_features.add("cuda")
    with open(programs, encoding="utf-8") as file:
        if json.load(file)["libraries"]:
            config.available_features.add("emulated")
config.substitutions.append(
    ("%check-program",
     os.path.join(config.test_source_root, "codegen", "source", "check_program.py")))
