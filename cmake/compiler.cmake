set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_SCAN_FOR_MODULES OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

# Without contraction every compiler and machine computes the same bits: a simulation is a pure function of its input.
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>)
foreach(warning IN ITEMS all extra pedantic conversion sign-conversion shadow)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-W${warning}>)
endforeach()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Optimised std::string concatenation sets this one off inside libstdc++ (GCC bug 105651).
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()

# Less time to compile everything: 23 s instead of 50 for eight tests of the planner. File-local names of one source
# are then seen by others, which -Wshadow takes for mistakes; clang-tidy sees every source of a module on its own and
# warns where one is.
if(ISTHMUS_UNITY)
  set(CMAKE_UNITY_BUILD ON)
  set(CMAKE_UNITY_BUILD_BATCH_SIZE 10)
  add_compile_options(-Wno-shadow)
endif()

# A newer compiler may warn where these do not; that must not keep anybody from building.
if(ISTHMUS_WERROR AND ((CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 14)
                       OR (CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 19)))
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()

if(ISTHMUS_SANITIZE)
  # Left out of `undefined`: what the address sanitizer reports anyway. These four double the time to compile.
  add_compile_options(-fsanitize=address,undefined -fno-sanitize=null,alignment,vptr,object-size
                      -fno-sanitize-recover=all -fno-omit-frame-pointer -D_GLIBCXX_ASSERTIONS)
  add_link_options(-fsanitize=address,undefined)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-Wno-maybe-uninitialized)  # false alarms on instrumented code
  endif()
endif()

if(ISTHMUS_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "ISTHMUS_FUZZ needs clang++, for libFuzzer")
  endif()
  # A double that does not fit its integer type is undefined too, but `undefined` leaves it out.
  add_compile_options(-fsanitize=fuzzer-no-link,float-cast-overflow)
  add_link_options(-fsanitize=float-cast-overflow)
endif()

find_program(ISTHMUS_CCACHE ccache)
mark_as_advanced(ISTHMUS_CCACHE)
if(ISTHMUS_CCACHE)
  # One clone's objects serve another: paths count from the project's folder, and the folder itself not at all.
  set(launcher "${CMAKE_COMMAND}" -E env "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=true
               "${ISTHMUS_CCACHE}")
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${launcher})
endif()
