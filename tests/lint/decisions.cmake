# cmake [-D ROOT=<tree>] -P decisions.cmake
#
# Decisions are taken by passes, before memory: no file of codegen/ or
# runtime/executor/ may compare ranges of bytes to find out what runs. A file
# does so through the headers of MATCHES; KNOWN lists those that still do, and a
# file that no longer does has to leave it, so that the list only shrinks.
cmake_minimum_required(VERSION 3.25)

if(NOT DEFINED ROOT)
  cmake_path(SET ROOT NORMALIZE ${CMAKE_CURRENT_LIST_DIR}/../..)
endif()
set(MATCHES "^(codegen/memory_overlaps|runtime/plan/(arena_bytes|runs_apart|joint_[a-z]+))\\.h$")

# memory_overlaps and waits derive who waits for whom from what passes decided;
# the others decide: which gradients are reduced beside the backward, and which
# calls are one launch.
if(NOT DEFINED KNOWN)
  set(KNOWN
    codegen/memory_overlaps.cpp
    codegen/overlapped_reduces.cpp
    codegen/source/collective_causes.h
    codegen/source/stage_source.cpp
    codegen/source/update_lines.h
    codegen/waits.cpp
    runtime/executor/join_collectives.cpp
    runtime/executor/rank_executor.h)
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
    if(name MATCHES "${MATCHES}")
      set(compares TRUE)
    endif()
  endforeach()
  if(compares AND NOT file IN_LIST KNOWN)
    message(NOTICE "${file}: compares ranges of bytes; decide in passes/")
    math(EXPR violations "${violations} + 1")
  elseif(file IN_LIST KNOWN AND NOT compares)
    message(NOTICE "${file}: compares no ranges of bytes; take it off the list")
    math(EXPR violations "${violations} + 1")
  endif()
  list(REMOVE_ITEM KNOWN ${file})
endforeach()
foreach(file IN LISTS KNOWN)
  message(NOTICE "${file}: is on the list, but not there")
  math(EXPR violations "${violations} + 1")
endforeach()
if(violations)
  message(FATAL_ERROR "lint.decisions: ${violations} violations")
endif()
