add_custom_target(modules)

# mtplan_module(<name> SOURCES <file>... USES <target>...)
#
# lib/libmtplan_<name>.so, which programs load where they need it
# (runtime/modules). What it has in common with a program is the program's.
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

# mtplan_stands_in(<target>)
#
# Has functions of a module under their names, and calls the module's: a module
# must not take them for its own.
function(mtplan_stands_in target)
  target_compile_options(${target} PRIVATE -fvisibility=hidden)
endfunction()

# mtplan_loads_modules(<program>)
#
# A program that loads modules resolves the symbols that they share with it, and
# looks for them in the lib/ beside its bin/. The program builds and runs without
# them: the target `modules` builds them all.
function(mtplan_loads_modules program)
  set_target_properties(${program} PROPERTIES ENABLE_EXPORTS ON
    BUILD_RPATH "$ORIGIN/../lib")
endfunction()
