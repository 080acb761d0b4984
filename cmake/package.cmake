# CPack writes packages, whose programs run where nothing can be installed
# (docs/packages.md):
#
#   mtplan-<version>-linux-<processor>.tar.xz        mtrun, its modules, and
#                                                    the examples
#   mtplan-<version>-linux-<processor>-plan.tar.xz   mtplan, with MLIR
#   mtplan-<version>-linux-<processor>-tests.tar.xz  the GPU test suites, and
#                                                    scripts that run them
#
# All packages unpack into the same folder. A package contains the libraries
# that its programs link to, except for CUDA's, MPI's and the C library, which
# the target machine provides. The target machine's C library must not be older
# than the build machine's.
include(cmake/machine_libraries.cmake)

# mtplan_packaged(<component> <target>...)
#
# Packages the targets. Programs have a DT_RPATH, which, unlike a DT_RUNPATH, is
# also searched for indirect dependencies. Modules have a DT_RUNPATH, so that
# LD_LIBRARY_PATH precedes the folders of CUDA.
add_custom_target(package_contents)
function(mtplan_packaged component)
  add_dependencies(package_contents ${ARGN})
  foreach(target ${ARGN})
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "EXECUTABLE")
      target_link_options(${target} PRIVATE -Wl,--disable-new-dtags)
      set_target_properties(${target} PROPERTIES
        INSTALL_RPATH "$ORIGIN/../lib")
    else()
      set_target_properties(${target} PROPERTIES
        INSTALL_RPATH "$ORIGIN:/usr/local/cuda/lib64:/usr/local/cuda/lib")
    endif()
  endforeach()
  install(TARGETS ${ARGN} RUNTIME_DEPENDENCY_SET ${component}
    RUNTIME DESTINATION bin COMPONENT ${component}
    LIBRARY DESTINATION lib COMPONENT ${component})
  install(RUNTIME_DEPENDENCY_SET ${component}
    PRE_EXCLUDE_REGEXES ${MTPLAN_FROM_MACHINE}
    RUNTIME DESTINATION bin COMPONENT ${component}
    LIBRARY DESTINATION lib COMPONENT ${component})
endfunction()

get_property(modules GLOBAL PROPERTY MTPLAN_MODULES)
mtplan_packaged(run mtrun ${modules})
install(DIRECTORY examples DESTINATION . COMPONENT run)
install(FILES README.md scripts/env.sh DESTINATION . COMPONENT run)
if(MTPLAN_COMPILER)
  mtplan_packaged(plan mtplan mtplan-validate)
endif()
set(tests "")
foreach(target cuda_tests cudnn_tests)
  if(TARGET ${target})
    list(APPEND tests ${target})
  endif()
endforeach()
if(tests)
  mtplan_packaged(tests ${tests})
endif()
install(PROGRAMS bench/gpu_acceptance.py bench/torch_step.py DESTINATION bench
  COMPONENT tests)
install(DIRECTORY bench/acceptance DESTINATION bench COMPONENT tests
  FILES_MATCHING PATTERN *.py PATTERN __pycache__ EXCLUDE)

set(CPACK_GENERATOR TXZ)
set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
string(TOLOWER ${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR} platform)
set(CPACK_PACKAGE_FILE_NAME mtplan-${PROJECT_VERSION}-${platform})
set(CPACK_ARCHIVE_RUN_FILE_NAME ${CPACK_PACKAGE_FILE_NAME})
set(CPACK_STRIP_FILES ON)
set(CPACK_ARCHIVE_THREADS 0)
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_SOURCE_DIR}/build)
set(CPACK_COMPONENT_INCLUDE_TOPLEVEL_DIRECTORY ON)
include(CPack)
