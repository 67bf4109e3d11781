#include "tests/support/gpu_interpreter.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <utility>

#include "hw/judge.hpp"

namespace isthmus::test {
namespace {

class GpuInterpreter {
 public:
  GpuInterpreter(const hw::Program& program, const hw::GpuSchedule& schedule, std::uint64_t seed)
      : program_(program), schedule_(schedule), codes_(program), random_(seed), gpus_(schedule.folding.gpus) {
    for (std::uint32_t g = 0; g < gpus_; ++g) {
      const auto bytes = static_cast<std::size_t>(schedule.arena_bytes[g]);
      arenas_.emplace_back(bytes, std::byte{hw::staging_poison});
      for (std::uint32_t s = 0; s < schedule.streams(); ++s) queues_[{g, s}] = {};
      for (std::size_t l = 0; l < schedule.launches.size(); ++l)
        queues_[{g, schedule.launches[l].stream}].push_back(l);
    }
    for (const auto& queue : queues_) priority_[queue.first] = random_() % 1000;
    done_.assign(schedule.launches.size(), std::vector<bool>(gpus_, false));
  }

  InterpretedRun run(std::uint32_t pass) {
    visit_shards([&](const hw::Shard& shard, Rank, std::byte* memory, bool target) {
      if (target) hw::poison(codes_.target(shard, pass), memory);
      if (!target) hw::fill(codes_.source(shard, pass), memory);
    });
    while (result_.fault.empty() && step()) {
    }
    result_.stalled = result_.finished.size() < schedule_.launches.size();
    visit_shards([&](const hw::Shard& shard, Rank, std::byte* memory, bool target) {
      std::vector<hw::WrongWord> wrong;
      if (target) result_.wrong += hw::compare(codes_.target(shard, pass), memory, 1, wrong);
    });
    return result_;
  }

 private:
  using Queue = std::pair<std::uint32_t, std::uint32_t>;  // GPU, stream

  template <class Visit>
  void visit_shards(Visit visit) {
    for (std::uint32_t r = 0; r < program_.ranks(); ++r) {
      std::byte* const arena = arenas_[schedule_.folding.gpu[r]].data() + schedule_.folding.base[r];
      for (const hw::Shard& shard : program_.sources({r}))
        visit(shard, Rank{r}, arena + shard.offset.value, false);
      for (const hw::Shard& shard : program_.targets({r}))
        visit(shard, Rank{r}, arena + shard.offset.value, true);
    }
  }

  bool free(std::uint32_t gpu, std::size_t launch) const {
    const auto& queue = queues_.at({gpu, schedule_.launches[launch].stream});
    if (queue.empty() || queue.front() != launch) return false;
    const auto waits = schedule_.waits_of(schedule_.launches[launch]);
    const auto complete = [this](std::uint32_t earlier) {
      return std::all_of(done_[earlier].begin(), done_[earlier].end(), [](bool done) { return done; });
    };
    return std::all_of(waits.begin(), waits.end(), complete);
  }

  bool can_run(std::uint32_t gpu, std::size_t launch) const {
    if (schedule_.launches[launch].kind == hw::LaunchKind::moves) return free(gpu, launch);
    for (std::uint32_t g = 0; g < gpus_; ++g) {
      if (!free(g, launch)) return false;
    }
    return true;
  }

  /// One launch on one GPU, an exchange on all of them. Now and then the preferences change.
  bool step() {
    if (random_() % 8 == 0) {
      for (auto& entry : priority_) entry.second = random_() % 1000;
    }
    const Queue* best = nullptr;
    for (const auto& [key, queue] : queues_) {
      if (queue.empty() || !can_run(key.first, queue.front())) continue;
      if (best == nullptr || priority_.at(key) > priority_.at(*best)) best = &key;
    }
    if (best == nullptr) return false;
    const std::size_t launch = queues_.at(*best).front();
    if (schedule_.launches[launch].kind == hw::LaunchKind::moves) {
      move(best->first, launch);
      finish(best->first, launch);
    } else {
      exchange(schedule_.launches[launch]);
      for (std::uint32_t g = 0; g < gpus_; ++g) finish(g, launch);
    }
    return true;
  }

  void finish(std::uint32_t gpu, std::size_t launch) {
    queues_.at({gpu, schedule_.launches[launch].stream}).pop_front();
    done_[launch][gpu] = true;
    const auto& done = done_[launch];
    if (std::all_of(done.begin(), done.end(), [](bool each) { return each; }))
      result_.finished.push_back(launch);
  }

  /// Pieces of one kernel run in any order.
  void move(std::uint32_t gpu, std::size_t launch) {
    const auto list = schedule_.moves_of(gpu, launch);
    std::vector<hw::GpuMove> moves(list.begin(), list.end());
    std::shuffle(moves.begin(), moves.end(), random_);
    for (const hw::GpuMove& each : moves) {
      check_bounds(each.move.source, each.move.run, gpu);
      check_bounds(each.move.target, each.move.run, each.target_gpu);
      if (!result_.fault.empty()) return;
      hw::copy_bytes(each.move, arenas_[gpu].data(), arenas_[each.target_gpu].data());
    }
  }

  void exchange(const hw::Launch& launch) {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::deque<std::vector<std::byte>>> wires;
    for (const hw::Message& message : schedule_.messages_of(launch)) {
      check_bounds(message.source, message.bytes, message.from);
      check_bounds(message.target, message.bytes, message.to);
      if (!result_.fault.empty()) return;
      const std::byte* const first = arenas_[message.from].data() + message.source;
      wires[{message.from, message.to}].emplace_back(first, first + message.bytes);
    }
    for (const hw::Message& message : schedule_.messages_of(launch)) {
      auto& wire = wires[{message.from, message.to}];
      if (wire.front().size() != static_cast<std::size_t>(message.bytes)) result_.fault = "sizes differ";
      std::copy(wire.front().begin(), wire.front().end(), arenas_[message.to].data() + message.target);
      wire.pop_front();
    }
  }

  void check_bounds(std::int64_t first, std::int64_t bytes, std::uint32_t gpu) {
    if (first < 0 || bytes <= 0 || first + bytes > schedule_.arena_bytes[gpu])
      result_.fault = "bytes outside of an arena";
  }

  const hw::Program& program_;
  const hw::GpuSchedule& schedule_;
  const hw::Codes codes_;
  std::mt19937_64 random_;
  const std::uint32_t gpus_;
  std::vector<std::vector<std::byte>> arenas_;
  std::map<Queue, std::deque<std::size_t>> queues_;
  std::map<Queue, std::uint64_t> priority_;
  std::vector<std::vector<bool>> done_;  // by launch, by GPU
  InterpretedRun result_;
};

}  // namespace

InterpretedRun interpret(const hw::Program& program, const hw::GpuSchedule& schedule, std::uint64_t seed,
                         std::uint32_t pass) {
  return GpuInterpreter(program, schedule, seed).run(pass);
}

}  // namespace isthmus::test
