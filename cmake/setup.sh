# Set-up shared by ./isthmus and ./check: installs what is missing, configures, builds. Sourced with $root set to the
# project's folder. It talks on standard error only; each function says what failed and returns non-zero.

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }

# package=what proves that it is there: a command, a header, another file below /usr (share/..., lib/...), or an option that clang++ then links with. The names are those of Debian 12 and Ubuntu 24.04.
build_packages=(g++=c++ cmake=cmake ninja-build=ninja libboost-graph-dev=boost/graph/adjacency_list.hpp
  libyaml-cpp-dev=yaml-cpp/yaml.h nlohmann-json3-dev=nlohmann/json.hpp libfmt-dev=fmt/format.h
  libcli11-dev=CLI/CLI.hpp libpugixml-dev=pugixml.hpp
  libsqlite3-dev=sqlite3.h coinor-libclp-dev=coin/ClpSimplex.hpp)
# What the page of simulate --report is drawn with; the program can do without.
report_packages=(node-d3=share/nodejs/d3/dist/d3.min.js)
# ccache is for the next check: it need not compile again what this one did, not even in another clone.
test_packages=(ccache=ccache libgtest-dev=gtest/gtest.h libgmock-dev=gmock/gmock.h librapidcheck-dev=rapidcheck.h
  libbenchmark-dev=benchmark/benchmark.h libopenmpi-dev=mpicxx openmpi-bin=mpirun iproute2=tc)
# clang-format by its version, because another version may format the same text in another way.
lint_packages=(clang=clang++ libclang-rt-dev=-fsanitize=address,undefined clang-tidy=clang-tidy
  clang-format-14=clang-format-14)
# A browser that looks at the page (tests/browser/run).
browser_packages=(chromium=chromium chromium-driver=chromedriver
  python3-selenium=lib/python3/dist-packages/selenium/__init__.py)

# An oracle of the simulator's tests.
peer_packages=(libsimgrid-dev=simgrid/s4u.hpp)

# A prefix with what the distribution lacks comes before the system in every search.
if [ -n "${ISTHMUS_DEPS:-}" ]; then
  ISTHMUS_DEPS=$(realpath -m "$ISTHMUS_DEPS")
  multiarch=$(uname -m)-linux-gnu
  export PATH="$ISTHMUS_DEPS/bin:$PATH"
  export CMAKE_PREFIX_PATH="$ISTHMUS_DEPS${CMAKE_PREFIX_PATH:+:$CMAKE_PREFIX_PATH}"
  export LD_LIBRARY_PATH="$ISTHMUS_DEPS/lib:$ISTHMUS_DEPS/lib/$multiarch${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
  export PKG_CONFIG_PATH="$ISTHMUS_DEPS/lib/pkgconfig:$ISTHMUS_DEPS/lib/$multiarch/pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}"
fi

present() {
  local prefix below=include/
  if [[ $1 == -* ]]; then
    echo 'int main() {}' | clang++ "$1" -x c++ - -o "$root/build/present.out" 2>/dev/null
    return
  fi
  if [[ $1 == share/* || $1 == lib/* ]]; then below=
  elif [[ $1 != *.h* ]]; then command -v "$1" >/dev/null; return; fi
  for prefix in ${ISTHMUS_DEPS:+"$ISTHMUS_DEPS"} /usr/local /usr; do
    if [ -e "$prefix/$below$1" ]; then return 0; fi
  done
  return 1
}

# quietly LOG COMMAND...: output goes to LOG, and on a terminal to one line that shows how far it is. Standard input is
# left alone: it belongs to the program that runs afterwards.
quietly() {
  local log=$1 line; shift
  "$@" </dev/null 2>&1 | tee "$log" | if [ -t 2 ]; then
    while IFS= read -r line; do printf '\r\033[K%.100s' "$line" >&2; done
    printf '\r\033[K' >&2
  else cat >/dev/null; fi
  return "${PIPESTATUS[0]}"
}

# failed LOG LINES WHAT: shows the end of LOG without the lines that only tell of progress.
failed() {
  grep -vE '^(\[[0-9]+/[0-9]+\]|-- |Get:|Hit:|Ign:|Reading|Building)' "$1" | tail -n "$2" >&2
  say "$3 failed"
  return 1
}

# install PACKAGE...: needs apt, and root or sudo. Without a terminal nobody can type sudo a password.
install() {
  local log="$root/build/packages.log" as_root=()
  command -v apt-get >/dev/null || return
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || return
    as_root=(sudo)
    [ -t 2 ] || as_root+=(-n)
  fi
  say "installing packages of the distribution: $*"
  quietly "$log" "${as_root[@]}" apt-get update &&
    quietly "$log" "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
      -o DPkg::Lock::Timeout=300 "$@" || failed "$log" 3 "the installation"
}

# ensure PACKAGE=PROOF...: afterwards all of them are there.
ensure() {
  local entry missing=()
  for entry in "$@"; do present "${entry#*=}" || missing+=("${entry%%=*}"); done
  if [ ${#missing[@]} = 0 ] || install "${missing[@]}"; then return 0; fi
  say "packages are missing: ${missing[*]}
  Install them:   apt-get install ${missing[*]}
  or name a folder that holds what they provide (bin/, include/, lib/, share/) in the environment variable ISTHMUS_DEPS."
  return 1
}

# ensure_build: what building needs, and what --report needs if it can be had.
ensure_build() { ensure "${build_packages[@]}" "${report_packages[@]}" "$@" || ensure "${build_packages[@]}" "$@"; }

# configure PRESET [CMAKE ARGUMENT...]
configure() {
  local log=$root/build/$1-configure.log
  (cd "$root" && quietly "$log" cmake --preset "$@") || failed "$log" 100 "configuring preset $1"
}

# build PRESET [ARGUMENT...]
build() {
  local log=$root/build/$1-build.log
  say "building preset $1"
  (cd "$root" && quietly "$log" cmake --build --preset "$@") || failed "$log" 100 "building preset $1"
}

# The program is up to date when no source is newer than the start of its last successful build.
program=$root/build/release/isthmus
stamp=$root/build/release/.isthmus-built

up_to_date() {
  [ -x "$program" ] && [ -e "$stamp" ] && (
    cd "$root" && [ -z "$(find model planner sim report hw cli cmake CMakeLists.txt CMakePresets.json \
      -newer "$stamp" -print -quit)" ])
}

# build_release [ARGUMENT...]: builds preset release and keeps the stamp.
build_release() {
  touch "$stamp.next" && build release "$@" && mv -f "$stamp.next" "$stamp"
}
