# cmake [-D ROOT=<tree>] -P rooms.cmake
#
# Holds every #include between rooms to DESIGN.md's diagram, third-party headers
# to their doors, and every file to 500 lines. One line per violation; fails if
# there is one.
cmake_minimum_required(VERSION 3.25)

if(NOT DEFINED ROOT)
  cmake_path(SET ROOT NORMALIZE ${CMAKE_CURRENT_LIST_DIR}/../..)
endif()
set(LINE_LIMIT 500)
set(KINDS h cpp cu cuh td mlir test py sh cmake)
set(ROOMS ir passes planner codegen runtime tools)

# What a file below a folder may include: first the prefixes of "quoted" names,
# then those of <angled> names with a slash (no slash: the standard library).
# The longest folder that fits decides.
set(FOLDERS planner planner/graph planner/fit ir passes codegen codegen/source
    runtime/plan runtime/communicator runtime/random runtime/cpu runtime/cuda
    runtime/cuda/loaded runtime/cuda/standalone runtime/safetensors runtime/weights runtime tools)
set(planner_QUOTED planner/)
set(planner_ANGLED nlohmann/)
set(planner/graph_QUOTED planner/)
set(planner/graph_ANGLED nlohmann/ boost/)
set(planner/fit_QUOTED planner/)
set(planner/fit_ANGLED nlohmann/ Eigen/)
set(ir_QUOTED ir/ runtime/random/ mlir/ llvm/)
set(ir_ANGLED nlohmann/)
set(passes_QUOTED passes/ ir/ planner/ runtime/random/ mlir/ llvm/)
set(passes_ANGLED)
set(codegen_QUOTED codegen/ runtime/plan/ ir/ mlir/ llvm/)
set(codegen_ANGLED)
set(codegen/source_QUOTED codegen/source/ runtime/plan/ runtime/backend/)
set(codegen/source_ANGLED)
set(runtime/plan_QUOTED runtime/plan/)
set(runtime/plan_ANGLED nlohmann/)
set(runtime/communicator_QUOTED runtime/)
set(runtime/communicator_ANGLED sys/ netinet/)
set(runtime/random_QUOTED runtime/random/)
set(runtime/random_ANGLED)
set(runtime/cpu_QUOTED runtime/cpu/ runtime/backend/ runtime/plan/ runtime/random/)
set(runtime/cpu_ANGLED oneapi/)
set(runtime/cuda_QUOTED runtime/cuda/ runtime/backend/ runtime/communicator/
    runtime/plan/ runtime/random/)
set(runtime/cuda_ANGLED)
set(runtime/cuda/loaded_QUOTED runtime/cuda/ runtime/modules/)
set(runtime/cuda/loaded_ANGLED)
set(runtime/cuda/standalone_QUOTED ${runtime/cuda_QUOTED} runtime/training/)
set(runtime/cuda/standalone_ANGLED netinet/ sys/)
set(runtime/safetensors_QUOTED runtime/safetensors/ runtime/data/)
set(runtime/safetensors_ANGLED nlohmann/)
set(runtime/weights_QUOTED runtime/weights/ runtime/plan/)
set(runtime/weights_ANGLED)
set(runtime_QUOTED runtime/)
set(runtime_ANGLED nlohmann/ sys/)
set(tools_QUOTED tools/ passes/ ir/ planner/ codegen/ runtime/ mlir/ llvm/)
set(tools_ANGLED nlohmann/ fmt/ CLI/ sys/)

# <nlohmann/json.hpp> costs every includer seconds: these files alone.
set(JSON_FILES
  "(_json\\.cpp|^planner/json_[a-z]+\\.cpp|^(ir/model|tools)/[^/]+\\.cpp)$")

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

# One #include of <file>: <kind> is QUOTED or ANGLED.
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
