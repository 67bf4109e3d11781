# ISTHMUS_STATIC: the third-party libraries as archives, so that the program runs where only the C library is
# installed (and NCCL, where it is built with CUDA). What their shared forms bring along has to be named.

# isthmus_archive(<variable> <name>): the archive of that name, from the system or from the compiler.
function(isthmus_archive variable name)
  find_library(${variable} NAMES lib${name}.a)
  if(NOT ${variable})
    execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=lib${name}.a OUTPUT_VARIABLE file
                    OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(NOT IS_ABSOLUTE "${file}")
      message(FATAL_ERROR "ISTHMUS_STATIC is ON, but lib${name}.a was not found")
    endif()
    set(${variable} "${file}" CACHE FILEPATH "lib${name}.a" FORCE)
  endif()
endfunction()

# isthmus_imported_archive(<target> <name> <header>)
function(isthmus_imported_archive target name header)
  isthmus_archive(ISTHMUS_${name}_ARCHIVE ${name})
  find_path(ISTHMUS_${name}_HEADERS ${header} REQUIRED)
  add_library(${target} STATIC IMPORTED GLOBAL)
  set_target_properties(${target} PROPERTIES IMPORTED_LOCATION "${ISTHMUS_${name}_ARCHIVE}"
                                             INTERFACE_INCLUDE_DIRECTORIES "${ISTHMUS_${name}_HEADERS}")
endfunction()

isthmus_imported_archive(yaml-cpp::yaml-cpp yaml-cpp yaml-cpp/yaml.h)
isthmus_imported_archive(pugixml::pugixml pugixml pugixml.hpp)
isthmus_imported_archive(SQLite::SQLite3 sqlite3 sqlite3.h)
set_target_properties(SQLite::SQLite3 PROPERTIES INTERFACE_LINK_LIBRARIES "m;dl;pthread")

# Not every distribution has an archive of fmt; its headers alone do as well.
find_path(ISTHMUS_fmt_HEADERS fmt/format.h REQUIRED)
add_library(fmt::fmt INTERFACE IMPORTED GLOBAL)
set_target_properties(fmt::fmt PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${ISTHMUS_fmt_HEADERS}"
                                          INTERFACE_COMPILE_DEFINITIONS FMT_HEADER_ONLY=1)

set(clp_archives Clp CoinUtils lapack blas gfortran quadmath bz2 z)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  list(REMOVE_ITEM clp_archives quadmath)  # gfortran has it only where long double is shorter than 128 bits
endif()
set(ISTHMUS_CLP_ARCHIVES)
foreach(name IN LISTS clp_archives)
  isthmus_archive(ISTHMUS_${name}_ARCHIVE ${name})
  list(APPEND ISTHMUS_CLP_ARCHIVES "${ISTHMUS_${name}_ARCHIVE}")
endforeach()
add_link_options(-static-libstdc++ -static-libgcc)
