#include "hw/executor.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "hw/host.hpp"
#include "model/error.hpp"
#include "model/text.hpp"

#ifdef ISTHMUS_HAVE_CUDA
#include "hw/cuda/nccl.hpp"
#endif

#ifdef ISTHMUS_HAVE_MPI
#include "hw/mpi/mpi.hpp"
#endif

namespace isthmus::hw {
namespace {

using MakeExecutor = std::unique_ptr<Executor> (*)();

#ifdef ISTHMUS_HAVE_CUDA
constexpr MakeExecutor nccl_backend = []() -> std::unique_ptr<Executor> {
  return std::make_unique<NcclExecutor>();
};
#else
constexpr MakeExecutor nccl_backend = nullptr;
#endif

#ifdef ISTHMUS_HAVE_MPI
constexpr MakeExecutor mpi_backend = []() -> std::unique_ptr<Executor> {
  return std::make_unique<MpiExecutor>();
};
#else
constexpr MakeExecutor mpi_backend = nullptr;
#endif

}  // namespace

Duration Measurement::fastest() const {
  return times.empty() ? Duration{} : *std::min_element(times.begin(), times.end());
}

Duration Measurement::median() const {
  if (times.empty()) return {};
  std::vector<Duration> sorted = times;
  std::sort(sorted.begin(), sorted.end());
  return sorted[(sorted.size() - 1) / 2];
}

std::uint32_t run_count(const RunOptions& options, std::uint32_t passes_needed) {
  const std::uint32_t asked = options.warm_up + std::max(options.repetitions, 1U);
  return options.verify ? std::max(asked, passes_needed) : asked;
}

bool is_timed(const RunOptions& options, std::uint32_t r) {
  return r >= options.warm_up && r < options.warm_up + std::max(options.repetitions, 1U);
}

void add_repetition(Measurement& measurement, Timeline timeline) {
  const Duration time = timeline.end - Instant{};
  if (measurement.times.empty() || time < measurement.fastest()) measurement.timeline = std::move(timeline);
  measurement.times.push_back(time);
}

std::string to_string(const SystemFault& fault) {
  std::string text = fmt::format("{}: {}", fault.call, fault.code);
  if (!fault.rank && fault.step.empty()) return text;
  text += " (";
  if (fault.rank) text += fmt::format("rank {}{}", *fault.rank, fault.step.empty() ? "" : "; ");
  return text + fault.step + ")";
}

std::vector<Backend> backends() {
  return {
      {"host", "threads and memory of this process",
       []() -> std::unique_ptr<Executor> { return std::make_unique<HostExecutor>(); }},
      {"mpi", "processes of an MPI job, under mpirun", mpi_backend},
      {"nccl", "GPUs of this host, driven by one process", nccl_backend},
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
