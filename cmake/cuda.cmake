# Finds CUDA. runtime/cuda is built only with nvcc; all other code does not need
# it. The variables tell which parts were found:
#
#   MTPLAN_CUDA   nvcc. Device code is built for the GPUs of this machine. If
#                 there are none, it is built for H100 and, as PTX, for later
#                 GPUs. The preset `package` adds A100.
#   MTPLAN_NCCL   NCCL (target mtplan_nccl), for ranks on different GPUs.
#   MTPLAN_CUDNN  cuDNN and its C++ frontend (target mtplan_cudnn), for faster
#                 attention. scripts/setup_cudnn.sh fetches the frontend.
#
# Builds with sanitizers have no CUDA, because sanitizers support neither
# devices nor the fibers of tests/emulator. The Python package has no CUDA,
# because device code would make the package several times as large.
set(MTPLAN_CUDA OFF)
set(MTPLAN_NCCL OFF)
set(MTPLAN_CUDNN OFF)
if(MTPLAN_SANITIZE OR MTPLAN_FUZZ OR MTPLAN_PYTHON)
  return()
endif()
include(CheckLanguage)
check_language(CUDA)
if(CMAKE_CUDA_COMPILER)
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    execute_process(
      COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader
      RESULT_VARIABLE status OUTPUT_VARIABLE capabilities ERROR_QUIET)
    set(CMAKE_CUDA_ARCHITECTURES 90)
    if(status EQUAL 0 AND capabilities MATCHES "^[0-9]+\\.[0-9]+")
      set(CMAKE_CUDA_ARCHITECTURES native)
    endif()
  endif()
  enable_language(CUDA)
  set(CMAKE_CUDA_STANDARD 20)
  # CMake 3.25 does not know that nvcc supports C++20.
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
  find_package(CUDAToolkit 13 REQUIRED)
  if(CCACHE)
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${CCACHE})
  endif()
  set(MTPLAN_CUDA ON)
  find_path(MTPLAN_NCCL_INCLUDE nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
  find_library(MTPLAN_NCCL_LIBRARY nccl HINTS ${CUDAToolkit_LIBRARY_DIR})
  mark_as_advanced(MTPLAN_NCCL_INCLUDE MTPLAN_NCCL_LIBRARY)
  if(MTPLAN_NCCL_INCLUDE AND MTPLAN_NCCL_LIBRARY)
    set(MTPLAN_NCCL ON)
    add_library(mtplan_nccl INTERFACE)
    target_include_directories(mtplan_nccl SYSTEM INTERFACE
      ${MTPLAN_NCCL_INCLUDE})
    target_link_libraries(mtplan_nccl INTERFACE ${MTPLAN_NCCL_LIBRARY})
  else()
    message(STATUS "no NCCL: ranks on several GPUs are left out")
  endif()
  find_path(MTPLAN_CUDNN_INCLUDE cudnn.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
  # NVIDIA's Python wheels have only the second of these file names.
  find_library(MTPLAN_CUDNN_LIBRARY NAMES cudnn libcudnn.so.9
    HINTS ${CUDAToolkit_LIBRARY_DIR})
  find_path(MTPLAN_CUDNN_FRONTEND_INCLUDE cudnn_frontend.h HINTS
    ${PROJECT_SOURCE_DIR}/.deps/cudnn_frontend/include
    ${CUDAToolkit_INCLUDE_DIRS})
  mark_as_advanced(MTPLAN_CUDNN_INCLUDE MTPLAN_CUDNN_LIBRARY
    MTPLAN_CUDNN_FRONTEND_INCLUDE)
  if(MTPLAN_CUDNN_INCLUDE AND MTPLAN_CUDNN_LIBRARY AND
     MTPLAN_CUDNN_FRONTEND_INCLUDE AND TARGET CUDA::nvrtc)
    set(MTPLAN_CUDNN ON)
    add_library(mtplan_cudnn INTERFACE)
    target_include_directories(mtplan_cudnn SYSTEM INTERFACE
      ${MTPLAN_CUDNN_FRONTEND_INCLUDE} ${MTPLAN_CUDNN_INCLUDE})
    target_compile_definitions(mtplan_cudnn INTERFACE
      CUDNN_FRONTEND_SKIP_JSON_LIB)
    target_link_libraries(mtplan_cudnn INTERFACE ${MTPLAN_CUDNN_LIBRARY}
      CUDA::nvrtc)
  else()
    message(STATUS
      "no cuDNN with its frontend and NVRTC: "
      "attention uses mtplan's own kernels")
  endif()
else()
  message(STATUS "no nvcc: GPUs are left out")
endif()
