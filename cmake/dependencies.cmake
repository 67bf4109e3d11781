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
