# MLIR's headers are reachable through this target alone, so in a room that
# does not USE it an MLIR include is a compile error. SYSTEM also covers what
# TableGen writes: -Werror judges only our own lines.
list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
include(TableGen)
include(AddLLVM)
include(AddMLIR)

add_library(mtplan_mlir INTERFACE)
target_include_directories(mtplan_mlir SYSTEM INTERFACE
  ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS} ${PROJECT_BINARY_DIR})
target_compile_options(mtplan_mlir INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-fno-rtti>)
target_link_libraries(mtplan_mlir INTERFACE MLIR LLVM)

# The headers that a source on MLIR takes most of its compilation for.
set(MTPLAN_MLIR_HEADERS <mlir/IR/Builders.h> <mlir/IR/BuiltinOps.h>
  <mlir/Pass/PassManager.h> "${PROJECT_SOURCE_DIR}/ir/mtp.h")

# mtplan_precompile(<target>)
#
# Lets the target's sources read those headers precompiled. All targets share the
# file of mtplan_ir, which takes as long to make as ten small sources.
function(mtplan_precompile target)
  if(target STREQUAL mtplan_ir)
    mtplan_precompiled(mtplan_ir HEADERS ${MTPLAN_MLIR_HEADERS})
  else()
    mtplan_precompiled(${target} REUSE_FROM mtplan_ir)
  endif()
  add_dependencies(${target} mtplan_ir_tablegen)
endfunction()
