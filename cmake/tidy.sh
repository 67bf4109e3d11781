#!/usr/bin/env bash
# clang-tidy over sources, with the flags that preset tidy has for them. A source whose text after preprocessing was
# found clean before, by the same clang-tidy with the same checks, is not looked at again: that takes a tenth of the time.
#
#   cmake/tidy.sh            all sources of the modules, on all cores
#   cmake/tidy.sh FILE...    these
set -uo pipefail
root=$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")
build=$root/build/tidy
commands=$build/compile_commands.json
cache=${XDG_CACHE_HOME:-$HOME/.cache}/isthmus/tidy

# command_of FILE: its line of the compilation database, ready for the shell.
command_of() {
  awk -v wanted="\"$1\"" '/^ *"command": /{ command = $0 } /^ *"file": / && index($0, wanted) { print command }' \
    "$commands" | sed 's/^ *"command": "\(.*\)",$/\1/; s/\\"/"/g; s/\\\\/\\/g'
}

# key_of FILE: of all text that clang-tidy may see (the source and every header that it includes, comments too, for they
# can silence a check), the flags, the checks and clang-tidy itself.
key_of() {
  local command; command=$(command_of "$1")
  command="${command% -o *} -w -M -MT x $1"
  local headers; headers=$(cd "$build" && eval "$command" | tr -d '\\') || return 1
  { cd "$build" && cat ${headers#x:} && echo "${command//$root/}" && cat "$root/.clang-tidy" && clang-tidy --version; } |
    sha256sum | cut -d ' ' -f 1
}

look_at() {
  local key; key=$(key_of "$1")
  [ -n "$key" ] && [ -e "$cache/$key" ] && return 0
  clang-tidy -p "$build" --quiet "$1" 2> >(grep -v ' warnings\{0,1\} generated' >&2) || return 1
  [ -z "$key" ] || touch "$cache/$key"
}

[ -e "$commands" ] || { echo "first: cmake --preset tidy" >&2; exit 3; }
mkdir -p "$cache" || exit 3
if [ $# -gt 0 ]; then
  status=0
  for file in "$@"; do look_at "$(readlink -f "$file")" || status=1; done
  exit $status
fi
find "$cache" -mtime +30 -delete
sed -n 's/^ *"file": "\(.*\)",\{0,1\}$/\1/p' "$commands" | grep -E "^$root/(model|planner|sim|report|hw|cli)/" |
  xargs -P "$(nproc)" -n 4 "$root/cmake/tidy.sh"
