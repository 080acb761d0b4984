add_custom_target(modules)

# mtplan_module(<name> SOURCES <file>... USES <target>...)
#
# Builds lib/libmtplan_<name>.so, which programs load at run time
# (runtime/modules). If a function is defined in both the program and the
# module, the dynamic linker uses the program's.
function(mtplan_module name)
  cmake_parse_arguments(ARG "" "" "SOURCES;USES" ${ARGN})
  add_library(mtplan_${name}_module MODULE ${ARG_SOURCES})
  set_target_properties(mtplan_${name}_module PROPERTIES
    OUTPUT_NAME mtplan_${name}
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
  target_compile_options(mtplan_${name}_module PRIVATE
    -Wall -Wextra -Wshadow -Werror)
  target_link_libraries(mtplan_${name}_module PRIVATE ${ARG_USES})
  foreach(used mtplan_base mtplan_random mtplan_plan mtplan_backend
          mtplan_communicator ${ARG_USES})
    set_target_properties(${used} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  endforeach()
  set_property(GLOBAL APPEND PROPERTY MTPLAN_MODULES mtplan_${name}_module)
  add_dependencies(modules mtplan_${name}_module)
endfunction()

# mtplan_hide_symbols(<target>)
#
# Hides the symbols of a library that defines the same functions as a module and
# forwards their calls to the module. Otherwise the dynamic linker would use the
# library's functions within the module, too.
function(mtplan_hide_symbols target)
  target_compile_options(${target} PRIVATE -fvisibility=hidden)
endfunction()

# mtplan_loads_modules(<program>)
#
# Lets a program load modules from the lib/ beside its bin/, and exports its
# symbols to them. The program builds and runs without modules; the target
# `modules` builds all of them.
function(mtplan_loads_modules program)
  set_target_properties(${program} PROPERTIES ENABLE_EXPORTS ON
    BUILD_RPATH "$ORIGIN/../lib")
endfunction()
