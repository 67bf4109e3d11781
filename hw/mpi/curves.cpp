#include "hw/mpi/curves.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hw/mpi/requests.hpp"
#include "hw/mpi/world.hpp"
#include "model/error.hpp"

namespace isthmus::hw {
namespace {

constexpr std::size_t runs = 7;
constexpr int tag = 1;
constexpr std::int64_t kib = 1024, mib = 1024 * kib;

struct MessageGroup {
  std::uint32_t count = 1;
  std::int64_t bytes = 0;
};
constexpr std::array<MessageGroup, 7> groups{
    {{1, 4 * kib}, {1, 256 * kib}, {1, mib}, {1, 4 * mib}, {1, 8 * mib}, {16, 4 * kib}, {16, 256 * kib}}};

class MpiCurves {
 public:
  explicit MpiCurves(MpiWorld& world) : world_(world) {}

  CurvePoint measure(const MessageGroup& group) {
    memory_.resize(group.count * static_cast<std::size_t>(group.bytes));
    (void)once(group);
    std::vector<double> times;
    for (std::size_t r = 0; r < runs; ++r) times.push_back(once(group));
    std::sort(times.begin(), times.end());
    CurvePoint point;
    point.path = "mpi";
    point.operations = group.count;
    point.bytes = {group.bytes};
    point.seconds = times[runs / 2];
    point.fastest = times.front();
    point.slowest = times.back();
    return point;
  }

 private:
  double once(const MessageGroup& group) {
    const auto who = [](std::uint32_t process) {
      return SystemFault{"wait", fmt::format("process {} is missing", process)};
    };
    const auto describe = [](std::uint32_t token) {
      return SystemFault{"wait", fmt::format("message {} of a curve", token)};
    };
    MpiRequests requests(world_, describe);
    world_.exchange({}, who);
    const MpiWorld::Clock::time_point start = MpiWorld::Clock::now();
    const std::uint32_t last = world_.size() - 1;
    for (std::uint32_t i = 0; i < group.count; ++i) {
      std::byte* const memory = memory_.data() + i * static_cast<std::size_t>(group.bytes);
      if (world_.process() == 0) requests.send(memory, group.bytes, last, tag, i);
      if (world_.process() == last) requests.receive(memory, group.bytes, 0, tag, i);
    }
    while (!requests.empty()) (void)requests.poll();
    double longest = std::chrono::duration<double>(MpiWorld::Clock::now() - start).count();
    std::vector<std::byte> word(sizeof(longest));
    std::memcpy(word.data(), &longest, sizeof(longest));
    for (const std::vector<std::byte>& bytes : world_.exchange(word, who)) {
      double time = 0;
      std::memcpy(&time, bytes.data(), sizeof(time));
      longest = std::max(longest, time);
    }
    return longest;
  }

  MpiWorld& world_;
  std::vector<std::byte> memory_;
};

}  // namespace

CurveDevice measure_mpi_curves(const CurveVisitor& visit) {
  MpiWorld world(std::chrono::seconds(30));
  if (world.size() < 2)
    throw InputError({"--backend", 0, ""}, "'mpi' in a job of one process", "two processes, under mpirun");
  MpiCurves curves(world);
  for (const MessageGroup& group : groups) {
    const CurvePoint point = curves.measure(group);
    if (world.process() == 0) visit(point);
  }
  return {fmt::format("MPI, process 0 to the last of {} on {}", world.size(), fmt::join(world.hosts(), ", ")),
          0, world.process() == 0};
}

}  // namespace isthmus::hw
