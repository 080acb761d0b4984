# mtplan_room(<room> SOURCES <file>... USES <target>...)
#
# Declares one room as a static library. USES is the whole list of what it may
# link; tests/lint/rooms.cmake holds the #include lines to the same list.
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
# Precompiles headers, or takes those of another target with the same options:
# definitions and the level of optimisation may differ, -fno-rtti may not.
function(mtplan_precompiled target)
  cmake_parse_arguments(ARG "" "REUSE_FROM" "HEADERS" ${ARGN})
  target_compile_options(${target} PRIVATE -fpch-preprocess) # for ccache
  if(ARG_REUSE_FROM)
    target_precompile_headers(${target} REUSE_FROM ${ARG_REUSE_FROM})
  else()
    target_precompile_headers(${target} PRIVATE ${ARG_HEADERS})
  endif()
endfunction()

# mtplan_gtest(<name> SOURCES <file>... USES <target>...)
#
# One GoogleTest binary; tests/CMakeLists.txt says how ctest runs it.
function(mtplan_gtest name)
  cmake_parse_arguments(ARG "" "" "SOURCES;USES" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_compile_options(${name} PRIVATE -Wall -Wextra -Wshadow -Werror
    ${MTPLAN_FALSE_TEST_WARNINGS})
  target_compile_definitions(${name} PRIVATE
    MTPLAN_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE ${ARG_USES} GTest::gtest_main)
endfunction()
