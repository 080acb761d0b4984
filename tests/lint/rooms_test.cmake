# cmake -D WORK=<folder> -P rooms_test.cmake
#
# Runs rooms.cmake on a tree with one violation of each kind and expects exactly
# these complaints, then on a tree without violations and expects none.
cmake_minimum_required(VERSION 3.25)

# Runs the lint over ${WORK}/tree; sets `complaints` and `status`.
macro(run_lint)
  execute_process(
    COMMAND ${CMAKE_COMMAND} -D ROOT=${WORK}/tree
      -P ${CMAKE_CURRENT_LIST_DIR}/rooms.cmake
    RESULT_VARIABLE status ERROR_VARIABLE complaints)
endmacro()

set(expected [=[
base/index.h: is MLIR-free, but has #include "llvm/ADT/StringRef.h"
base/index.h: may not use #include "planner/units.h"
ir/einsum.cpp: is no place to parse json, but has #include <nlohmann/json.hpp>
ir/einsum.cpp: may not use #include "passes/passes.h"
passes/plan.h: may not use #include "tests/oracle.h"
planner/cost/price.h: may not use #include <boost/graph/graph_traits.hpp>
planner/units.h: is MLIR-free, but has #include "mlir/IR/Value.h"
planner/units.h: may not use #include "ir/mtp.h"
planner/units.h: is no place to parse json, but has #include <nlohmann/json.hpp>
planner/units.h: write the room in #include "bytes.h"
codegen/writer.cpp: may not use #include "planner/units.h"
codegen/writer.cpp: may not use #include "runtime/cpu/executor.h"
runtime/cpu/executor.cpp: may not use #include "planner/units.h"
runtime/plan/plan.h: may not use #include "runtime/cpu/executor.h"
tools/driver/plan.h: may not use #include "tools/report/screen.h"
tools/mtplan.cpp: may not use #include "tests/oracle.h"
planner/big.cpp: 501 lines, limit 500
tests/big.mlir: 501 lines, limit 500
]=])

file(REMOVE_RECURSE ${WORK}/tree)
string(REGEX MATCHALL "[^\n]+" lines "${expected}")
foreach(line IN LISTS lines)
  string(REGEX MATCH "^([^:]+):" unused "${line}")
  set(file ${WORK}/tree/${CMAKE_MATCH_1})
  if(line MATCHES "(#include .*)$")
    file(APPEND ${file} "${CMAKE_MATCH_1}\n")
  else()
    string(REPEAT "//\n" 501 text)
    file(APPEND ${file} "${text}")
  endif()
endforeach()
run_lint()
string(FIND "${complaints}" "CMake Error" at)
string(SUBSTRING "${complaints}" 0 ${at} listed)
if(status EQUAL 0 OR NOT listed STREQUAL expected OR
   NOT complaints MATCHES "lint.rooms: 18 violations")
  message(FATAL_ERROR "expected\n${expected}found (status ${status})\n"
    "${complaints}")
endif()

# Allowed includes and sizes that are close to forbidden ones.
file(REMOVE_RECURSE ${WORK}/tree)
string(REPEAT "//\n" 500 text)
file(WRITE ${WORK}/tree/planner/big.cpp "${text}")
file(WRITE ${WORK}/tree/planner/graph/op_graph_json.cpp
  "#include <vector>\n#include <boost/graph/graph_traits.hpp>\n"
  "#include <nlohmann/json.hpp>\n#include \"planner/units.h\"\n"
  "#include \"base/json_text.h\"\n")
file(WRITE ${WORK}/tree/base/json_text.h "#include <nlohmann/json_fwd.hpp>\n")
file(WRITE ${WORK}/tree/base/json_text.cpp "#include <nlohmann/json.hpp>\n")
file(WRITE ${WORK}/tree/passes/layout/bridge.cpp
  "#include \"mlir/IR/Value.h\"\n#include \"ir/mtp.h\"\n"
  "#include \"planner/units.h\"\n")
file(WRITE ${WORK}/tree/codegen/writer.cpp "#include \"runtime/plan/plan.h\"\n")
file(WRITE ${WORK}/tree/tests/planner/oracle.cpp "#include \"ir/mtp.h\"\n")
run_lint()
if(NOT status EQUAL 0 OR NOT complaints STREQUAL "")
  message(FATAL_ERROR "expected silence, found (status ${status})\n"
    "${complaints}")
endif()
