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

# MLIR's headers and the dialect's generated ones take most of a compilation;
# each room that reads them reads them once.
function(mtplan_precompile target)
  target_compile_options(${target} PRIVATE -fpch-preprocess) # for ccache
  target_precompile_headers(${target} PRIVATE
    <mlir/IR/Builders.h> <mlir/IR/BuiltinOps.h> <mlir/Pass/PassManager.h>
    "${PROJECT_SOURCE_DIR}/ir/mtp.h")
  add_dependencies(${target} mtplan_ir_tablegen)
endfunction()
