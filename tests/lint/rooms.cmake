# cmake [-D ROOT=<tree>] -P rooms.cmake
#
# Checks that every #include between rooms follows ARCHITECTURE.md's diagram,
# that third-party headers are used only in their rooms, and that no file has
# more than 500 lines. Prints one line per violation, and fails if there is one.
cmake_minimum_required(VERSION 3.25)

if(NOT DEFINED ROOT)
  cmake_path(SET ROOT NORMALIZE ${CMAKE_CURRENT_LIST_DIR}/../..)
endif()
set(LINE_LIMIT 500)
set(KINDS h cpp cu cuh td mlir test py sh cmake)
set(ROOMS base ir passes planner codegen runtime tools python)

# These lists name the headers that files of a folder may include:
# <folder>_QUOTED has prefixes of "quoted" names, and <folder>_ANGLED prefixes
# of <angled> names with a slash. Angled names without a slash belong to the
# standard library. The longest matching folder counts.
set(FOLDERS base planner planner/graph planner/fit planner/solve planner/simulate
    planner/search/space planner/search/segment planner/search/price
    planner/search/stage planner/search/bound ir passes codegen codegen/source
    runtime/plan runtime/communicator runtime/random runtime/reference runtime/cpu
    runtime/cuda runtime/cuda/loaded runtime/cuda/standalone runtime/safetensors
    runtime/weights runtime tools tools/text tools/exchange tools/driver
    tools/report tools/runs tools/command tools/validate tools/run python)
set(base_QUOTED base/)
set(base_ANGLED nlohmann/)
set(planner_QUOTED planner/ base/)
set(planner_ANGLED nlohmann/)
set(planner/graph_QUOTED planner/ base/)
set(planner/graph_ANGLED nlohmann/ boost/)
set(planner/fit_QUOTED planner/ base/)
set(planner/fit_ANGLED nlohmann/ Eigen/)
# Each room of the search may include the rooms before it.
set(search_leaves planner/units.h planner/integers.h
    planner/graph/ planner/machine/ planner/cost/ planner/simulate/ base/)
set(planner/solve_QUOTED planner/solve/ base/)
set(planner/solve_ANGLED)
set(planner/simulate_QUOTED planner/simulate/ planner/units.h base/)
set(planner/simulate_ANGLED)
set(planner/search/space_QUOTED planner/search/space/ ${search_leaves})
set(planner/search/segment_QUOTED planner/search/segment/ planner/solve/
    ${planner/search/space_QUOTED})
set(planner/search/price_QUOTED planner/search/price/
    ${planner/search/segment_QUOTED})
set(planner/search/stage_QUOTED planner/search/stage/
    ${planner/search/price_QUOTED})
set(planner/search/bound_QUOTED planner/search/bound/
    planner/search/on_threads.h ${planner/search/stage_QUOTED})
set(ir_QUOTED ir/ base/ runtime/random/ runtime/reference/ mlir/ llvm/)
set(ir_ANGLED nlohmann/)
set(passes_QUOTED passes/ base/ ir/ planner/ runtime/random/ mlir/ llvm/)
set(passes_ANGLED)
set(codegen_QUOTED codegen/ base/ runtime/plan/ ir/ mlir/ llvm/)
set(codegen_ANGLED)
set(codegen/source_QUOTED codegen/source/ base/ runtime/plan/ runtime/backend/)
set(codegen/source_ANGLED)
set(runtime/plan_QUOTED runtime/plan/ base/)
set(runtime/plan_ANGLED nlohmann/)
set(runtime/communicator_QUOTED runtime/ base/)
set(runtime/communicator_ANGLED sys/ netinet/)
set(runtime/random_QUOTED runtime/random/)
set(runtime/random_ANGLED)
set(runtime/reference_QUOTED runtime/reference/ runtime/random/)
set(runtime/reference_ANGLED)
set(runtime/cpu_QUOTED runtime/cpu/ runtime/backend/ runtime/plan/ runtime/random/)
set(runtime/cpu_ANGLED oneapi/)
set(runtime/cuda_QUOTED runtime/cuda/ runtime/backend/ runtime/communicator/
    runtime/plan/ runtime/random/)
set(runtime/cuda_ANGLED)
set(runtime/cuda/loaded_QUOTED runtime/cuda/ runtime/modules/)
set(runtime/cuda/loaded_ANGLED)
set(runtime/cuda/standalone_QUOTED ${runtime/cuda_QUOTED} runtime/training/)
set(runtime/cuda/standalone_ANGLED netinet/ sys/)
set(runtime/safetensors_QUOTED runtime/safetensors/ runtime/data/ base/)
set(runtime/safetensors_ANGLED)
set(runtime/weights_QUOTED runtime/weights/ runtime/plan/ base/)
set(runtime/weights_ANGLED)
set(runtime_QUOTED runtime/ base/)
set(runtime_ANGLED nlohmann/ sys/)
# The main programs may include tools/command, which may include report, then
# driver, exchange and text. validate and run are separate.
set(tools_QUOTED tools/ base/ passes/ ir/ mlir/ llvm/ runtime/cuda/loaded/)
set(tools_ANGLED CLI/ fmt/)
set(tools/text_QUOTED base/ tools/text/ planner/ runtime/plan/)
set(tools/text_ANGLED CLI/ fmt/)
set(tools/exchange_QUOTED base/ tools/exchange/ tools/text/ planner/)
set(tools/exchange_ANGLED nlohmann/ fmt/ toml++/)
set(tools/driver_QUOTED base/ tools/driver/ tools/exchange/ tools/text/ codegen/
    runtime/plan/ passes/ planner/ ir/ mlir/ llvm/)
set(tools/driver_ANGLED nlohmann/ fmt/)
set(tools/report_QUOTED base/ tools/report/ tools/driver/ tools/exchange/ tools/text/
    passes/ planner/ mlir/ llvm/)
set(tools/report_ANGLED nlohmann/ fmt/)
set(tools/runs_QUOTED base/ tools/runs/ tools/driver/ tools/text/ passes/
    planner/ ir/ mlir/ llvm/)
set(tools/runs_ANGLED nlohmann/ fmt/)
set(tools/command_QUOTED base/ tools/command/ tools/report/ tools/runs/ tools/driver/
    tools/exchange/ tools/text/ passes/ planner/ runtime/data/ mlir/ llvm/)
set(tools/command_ANGLED CLI/ fmt/)
set(tools/validate_QUOTED base/ tools/validate/ tools/runs/ tools/driver/ tools/text/
    planner/ runtime/data/)
set(tools/validate_ANGLED nlohmann/ CLI/ fmt/)
set(tools/run_QUOTED base/ tools/run/ tools/exchange/ tools/text/ planner/ runtime/)
set(tools/run_ANGLED nlohmann/ CLI/ fmt/ sys/)
# The Python package calls what mtplan's main program calls.
set(python_QUOTED python/ tools/ planner/)
set(python_ANGLED nanobind/)

# Only these files include <nlohmann/json.hpp>, which takes seconds to compile.
set(JSON_FILES
  "(_json\\.cpp|^base/json_[a-z]+\\.cpp|^(ir/model|tools/driver)/[^/]+\\.cpp)$")

# Prints one violation and counts it.
function(complain message)
  message(NOTICE "${message}")
  set_property(GLOBAL APPEND PROPERTY VIOLATIONS x)
endfunction()

# Sets <out> to whether <name> starts with one of the prefixes that follow.
function(starts_with_any out name)
  set(${out} FALSE PARENT_SCOPE)
  foreach(prefix IN LISTS ARGN)
    string(FIND "${name}" "${prefix}" at)
    if(at EQUAL 0)
      set(${out} TRUE PARENT_SCOPE)
    endif()
  endforeach()
endfunction()

# Sets <out> to the longest of FOLDERS that holds <file>.
function(folder_of out file)
  set(longest "")
  foreach(folder IN LISTS FOLDERS)
    string(LENGTH "${longest}" length)
    string(LENGTH "${folder}" candidate)
    starts_with_any(below "${file}" ${folder}/)
    if(below AND candidate GREATER length)
      set(longest ${folder})
    endif()
  endforeach()
  set(${out} ${longest} PARENT_SCOPE)
endfunction()

# Checks one #include of <file>. <kind> is QUOTED or ANGLED.
function(check_include file name kind)
  if(kind STREQUAL "QUOTED")
    set(written "#include \"${name}\"")
  else()
    set(written "#include <${name}>")
  endif()
  folder_of(folder ${file})
  starts_with_any(allowed "${name}" ${${folder}_${kind}})
  starts_with_any(is_mlir "${name}" mlir/ mlir-c/ llvm/ llvm-c/)
  if(is_mlir AND NOT "mlir/" IN_LIST ${folder}_QUOTED)
    complain("${file}: is MLIR-free, but has ${written}")
  elseif(name STREQUAL "nlohmann/json.hpp" AND NOT file MATCHES "${JSON_FILES}")
    complain("${file}: is no place to parse json, but has ${written}")
  elseif(name MATCHES "^(cuda|cublas|cudnn|nccl)" AND
         NOT folder MATCHES "^runtime/cuda")
    complain("${file}: is no place for GPUs, but has ${written}")
  elseif(NOT name MATCHES "/")
    if(kind STREQUAL "QUOTED")
      complain("${file}: write the room in ${written}")
    endif()
  elseif(NOT allowed)
    complain("${file}: may not use ${written}")
  endif()
endfunction()

function(check_includes file)
  file(STRINGS ${ROOT}/${file} includes REGEX "^[ \t]*#[ \t]*include")
  foreach(line IN LISTS includes)
    if(line MATCHES "include[ \t]*\"([^\"]+)\"")
      check_include(${file} "${CMAKE_MATCH_1}" QUOTED)
    elseif(line MATCHES "include[ \t]*<([^>]+)>")
      check_include(${file} "${CMAKE_MATCH_1}" ANGLED)
    endif()
  endforeach()
endfunction()

function(check_size file)
  file(READ ${ROOT}/${file} text)
  string(REGEX MATCHALL "\n" newlines "${text}")
  list(LENGTH newlines lines)
  if(lines GREATER LINE_LIMIT)
    complain("${file}: ${lines} lines, limit ${LINE_LIMIT}")
  endif()
endfunction()

foreach(room IN LISTS ROOMS)
  file(GLOB_RECURSE files RELATIVE ${ROOT}
    ${ROOT}/${room}/*.h ${ROOT}/${room}/*.cpp ${ROOT}/${room}/*.cu
    ${ROOT}/${room}/*.cuh)
  foreach(file IN LISTS files)
    check_includes(${file})
  endforeach()
endforeach()

foreach(folder IN LISTS ROOMS ITEMS tests bench scripts cmake)
  list(TRANSFORM KINDS PREPEND ${ROOT}/${folder}/*. OUTPUT_VARIABLE patterns)
  file(GLOB_RECURSE files RELATIVE ${ROOT} ${patterns})
  foreach(file IN LISTS files)
    check_size(${file})
  endforeach()
endforeach()

get_property(violations GLOBAL PROPERTY VIOLATIONS)
if(violations)
  list(LENGTH violations count)
  message(FATAL_ERROR "lint.rooms: ${count} violations")
endif()
