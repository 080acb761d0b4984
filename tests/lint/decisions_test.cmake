# cmake -D WORK=<folder> -P decisions_test.cmake
#
# Runs decisions.cmake on a tree with one violation of each kind, then on one
# without violations.
cmake_minimum_required(VERSION 3.25)

macro(run_lint known)
  execute_process(
    COMMAND ${CMAKE_COMMAND} -D ROOT=${WORK}/tree "-DDERIVED=${known}"
      -P ${CMAKE_CURRENT_LIST_DIR}/decisions.cmake
    RESULT_VARIABLE status ERROR_VARIABLE complaints)
endmacro()

file(REMOVE_RECURSE ${WORK}/tree)
set(compares "#include \"runtime/plan/program_runs.h\"\n")
file(WRITE ${WORK}/tree/codegen/new.cpp "${compares}")
file(WRITE ${WORK}/tree/codegen/known.cpp "${compares}")
file(WRITE ${WORK}/tree/codegen/other.cpp "#include \"runtime/plan/plan.h\"\n")
file(WRITE ${WORK}/tree/runtime/executor/mended.h "#include <vector>\n")
file(WRITE ${WORK}/tree/runtime/plan/check.cpp "${compares}")
run_lint("codegen/known.cpp;runtime/executor/mended.h;codegen/gone.cpp")
foreach(line
    "codegen/new.cpp: compares ranges of bytes; decide in passes/"
    "runtime/executor/mended.h: compares no ranges of bytes; take it off the list"
    "codegen/gone.cpp: is on the list, but not there"
    "lint.decisions: 3 violations")
  string(FIND "${complaints}" "${line}" at)
  if(at EQUAL -1 OR status EQUAL 0)
    message(FATAL_ERROR "expected \"${line}\", found\n${complaints}")
  endif()
endforeach()

file(REMOVE ${WORK}/tree/codegen/new.cpp)
run_lint("codegen/known.cpp")
if(NOT status EQUAL 0)
  message(FATAL_ERROR "expected silence, found\n${complaints}")
endif()
