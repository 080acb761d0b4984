# Only the target mtplan_mlir has MLIR's include folders, so that a library that
# does not name mtplan_mlir under USES cannot include MLIR. SYSTEM exempts
# MLIR's headers and generated files from -Werror.
list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
include(TableGen)
include(AddLLVM)
include(AddMLIR)

add_library(mtplan_mlir INTERFACE)
target_include_directories(mtplan_mlir SYSTEM INTERFACE
  ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS} ${PROJECT_BINARY_DIR})
target_compile_options(mtplan_mlir INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-fno-rtti>)
# Shared libraries are quick to link. The Python package links static libraries:
# its programs then need no LLVM on the user's machine, and the linker takes
# only the functions that these programs call.
if(MTPLAN_PYTHON)
  # Debian's static libraries of MLIR depend on LLVM's shared library. The loop
  # replaces this dependency by the static library LLVMSupport.
  foreach(archive ${MLIR_EXPORTED_TARGETS})
    get_target_property(needed ${archive} INTERFACE_LINK_LIBRARIES)
    if("LLVM" IN_LIST needed)
      list(TRANSFORM needed REPLACE "^LLVM$" LLVMSupport)
      set_target_properties(${archive} PROPERTIES
        INTERFACE_LINK_LIBRARIES "${needed}")
    endif()
  endforeach()
  set(MTPLAN_MLIR_LIBRARIES MLIRIR MLIRParser MLIRPass MLIRTransforms
    MLIRInferTypeOpInterface MLIRSideEffectInterfaces MLIRSupport LLVMSupport)
else()
  set(MTPLAN_MLIR_LIBRARIES MLIR LLVM)
endif()
target_link_libraries(mtplan_mlir INTERFACE ${MTPLAN_MLIR_LIBRARIES})

# Sources that use MLIR spend most of their compile time on these headers.
set(MTPLAN_MLIR_HEADERS <mlir/IR/Builders.h> <mlir/IR/BuiltinOps.h>
  <mlir/Pass/PassManager.h> "${PROJECT_SOURCE_DIR}/ir/mtp.h")

# mtplan_precompile(<target>)
#
# Precompiles MTPLAN_MLIR_HEADERS for the target. All targets reuse the
# precompiled file of mtplan_ir, because building that file takes as long as
# building ten small sources.
function(mtplan_precompile target)
  if(target STREQUAL mtplan_ir)
    mtplan_precompiled(mtplan_ir HEADERS ${MTPLAN_MLIR_HEADERS})
  else()
    mtplan_precompiled(${target} REUSE_FROM mtplan_ir)
  endif()
  add_dependencies(${target} mtplan_ir_tablegen)
endfunction()
