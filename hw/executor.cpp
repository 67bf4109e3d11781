#include "hw/executor.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "hw/host.hpp"
#include "model/error.hpp"
#include "model/text.hpp"

namespace isthmus::hw {

Duration Measurement::fastest() const {
  return times.empty() ? Duration{} : *std::min_element(times.begin(), times.end());
}

Duration Measurement::median() const {
  if (times.empty()) return {};
  std::vector<Duration> sorted = times;
  std::sort(sorted.begin(), sorted.end());
  return sorted[(sorted.size() - 1) / 2];
}

std::vector<Backend> backends() {
  return {
      {"host", "threads and memory of this process",
       []() -> std::unique_ptr<Executor> { return std::make_unique<HostExecutor>(); }},
      {"mpi", "ranks as processes", nullptr},
      {"nccl", "GPUs", nullptr},
  };
}

std::unique_ptr<Executor> make_executor(std::string_view name) {
  std::string built;
  bool known = false;
  for (const Backend& backend : backends()) {
    known |= backend.name == name;
    if (backend.make == nullptr) continue;
    if (backend.name == name) return backend.make();
    built += fmt::format("{}{}", built.empty() ? "" : ", ", backend.name);
  }
  const std::string found = fmt::format("'{}'", printable(name));
  if (!known) throw InputError({"--backend", 0, ""}, found, built);
  throw InputError({"--backend", 0, ""}, found + ", which this program was built without", built);
}

}  // namespace isthmus::hw
