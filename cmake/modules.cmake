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
  foreach(used mtplan_random mtplan_plan mtplan_backend mtplan_communicator
          ${ARG_USES})
    set_target_properties(${used} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  endforeach()
  set_property(GLOBAL APPEND PROPERTY MTPLAN_MODULES mtplan_${name}_module)
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
# Their names for what it has itself are its own, and it looks for them in the
# lib/ beside its bin/.
function(mtplan_loads_modules program)
  get_property(modules GLOBAL PROPERTY MTPLAN_MODULES)
  if(modules)
    add_dependencies(${program} ${modules})
  endif()
  set_target_properties(${program} PROPERTIES ENABLE_EXPORTS ON
    BUILD_RPATH "$ORIGIN/../lib")
endfunction()
