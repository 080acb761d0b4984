# cmake [-D ROOT=<tree>] -P decisions.cmake
#
# Passes decide what runs, before memory is assigned: no file of codegen/ or
# runtime/executor/ may compare byte ranges for that. CHECKS are the headers of
# runtime/plan that compare byte ranges. Only the files in DERIVED may include
# them, to find waits and the strides of batched tensors.
cmake_minimum_required(VERSION 3.25)

if(NOT DEFINED ROOT)
  cmake_path(SET ROOT NORMALIZE ${CMAKE_CURRENT_LIST_DIR}/../..)
endif()
set(CHECKS "^runtime/plan/(program_runs|plan_checks|placement)\\.h$")
if(NOT DEFINED DERIVED)
  set(DERIVED
    codegen/source/program_lines.cpp
    codegen/waits.cpp
    runtime/executor/batched_tasks.h)
endif()

set(violations 0)
file(GLOB_RECURSE files RELATIVE ${ROOT} ${ROOT}/codegen/*.h
  ${ROOT}/codegen/*.cpp ${ROOT}/runtime/executor/*.h
  ${ROOT}/runtime/executor/*.cpp)
foreach(file IN LISTS files)
  file(STRINGS ${ROOT}/${file} includes REGEX "^#include \"[^\"]+\"")
  set(compares FALSE)
  foreach(line IN LISTS includes)
    string(REGEX REPLACE "^#include \"([^\"]+)\".*" "\\1" name "${line}")
    if(name MATCHES "${CHECKS}")
      set(compares TRUE)
    endif()
  endforeach()
  if(compares AND NOT file IN_LIST DERIVED)
    message(NOTICE "${file}: compares ranges of bytes; decide in passes/")
    math(EXPR violations "${violations} + 1")
  elseif(file IN_LIST DERIVED AND NOT compares)
    message(NOTICE "${file}: compares no ranges of bytes; take it off the list")
    math(EXPR violations "${violations} + 1")
  endif()
  list(REMOVE_ITEM DERIVED ${file})
endforeach()
foreach(file IN LISTS DERIVED)
  message(NOTICE "${file}: is on the list, but not there")
  math(EXPR violations "${violations} + 1")
endforeach()
if(violations)
  message(FATAL_ERROR "lint.decisions: ${violations} violations")
endif()
