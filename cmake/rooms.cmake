# mtplan_room(<room> SOURCES <file>... USES <target>...)
#
# Declares a room, which is a folder of sources, as a static library that links
# the libraries in USES. tests/lint/rooms.cmake restricts the room's #include
# lines.
function(mtplan_room room)
  cmake_parse_arguments(ARG "" "" "SOURCES;USES" ${ARGN})
  add_library(mtplan_${room} STATIC ${ARG_SOURCES})
  target_include_directories(mtplan_${room} PUBLIC ${PROJECT_SOURCE_DIR})
  target_compile_options(mtplan_${room} PRIVATE -Wall -Wextra -Wshadow -Werror)
  target_link_libraries(mtplan_${room} PUBLIC ${ARG_USES})
endfunction()

# mtplan_precompiled(<target> HEADERS <header>...)
# mtplan_precompiled(<target> REUSE_FROM <other target>)
#
# Precompiles headers, or reuses those of another target. The options of both
# targets must agree in -fno-rtti; definitions and optimisation may differ.
function(mtplan_precompiled target)
  cmake_parse_arguments(ARG "" "REUSE_FROM" "HEADERS" ${ARGN})
  target_compile_options(${target} PRIVATE -fpch-preprocess) # ccache needs it
  if(ARG_REUSE_FROM)
    target_precompile_headers(${target} REUSE_FROM ${ARG_REUSE_FROM})
  else()
    target_precompile_headers(${target} PRIVATE ${ARG_HEADERS})
  endif()
endfunction()

# mtplan_gtest(<name> SOURCES <file>... USES <target>...)
#
# Builds a GoogleTest binary. tests/CMakeLists.txt adds it to ctest.
function(mtplan_gtest name)
  cmake_parse_arguments(ARG "" "" "SOURCES;USES" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_compile_options(${name} PRIVATE -Wall -Wextra -Wshadow -Werror
    ${MTPLAN_FALSE_TEST_WARNINGS})
  target_compile_definitions(${name} PRIVATE
    MTPLAN_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE ${ARG_USES} GTest::gtest_main)
endfunction()
