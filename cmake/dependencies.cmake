# Third-party libraries, all from the distribution's packages (or from a prefix in CMAKE_PREFIX_PATH).
# Imported targets bring their headers in as system headers, so our warnings do not reach into them.
find_package(Boost 1.74 REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(pugixml REQUIRED)
find_package(CLI11 REQUIRED)
if(NOT TARGET yaml-cpp::yaml-cpp)  # its name since 0.8
  add_library(yaml-cpp::yaml-cpp ALIAS yaml-cpp)
endif()

# Clp (EPL 2.0) comes without a CMake configuration.
find_path(CLP_INCLUDE_DIR coin/ClpSimplex.hpp REQUIRED)
find_library(CLP_LIBRARY Clp REQUIRED)
find_library(COINUTILS_LIBRARY CoinUtils REQUIRED)
add_library(isthmus_clp INTERFACE)
target_include_directories(isthmus_clp SYSTEM INTERFACE "${CLP_INCLUDE_DIR}" "${CLP_INCLUDE_DIR}/coin")
target_link_libraries(isthmus_clp INTERFACE "${CLP_LIBRARY}" "${COINUTILS_LIBRARY}")

# find_for(PART PACKAGE...): looks for packages that only this part needs, and sets ISTHMUS_BUILD_<PART>.
macro(find_for part)
  set(missing)
  if(ISTHMUS_${part})
    foreach(package IN ITEMS ${ARGN})
      find_package(${package} QUIET)
      if(NOT ${package}_FOUND)
        list(APPEND missing ${package})
      endif()
    endforeach()
  endif()
  isthmus_part(${part} ${missing})
endmacro()

find_for(TESTS GTest rapidcheck)
find_for(BENCH benchmark)
include(cuda)
