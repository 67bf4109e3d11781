#include "hw/host_memory.hpp"

#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>

#include <fmt/format.h>

#include "model/error.hpp"

namespace isthmus::hw {
namespace {

/// Calls work(rank) for every rank, spread over threads.
template <class Work>
void for_each_rank_of(std::size_t ranks, std::size_t threads, const Work& work) {
  std::atomic<std::uint32_t> next{0};
  const auto worker = [&] {
    for (std::uint32_t rank = next++; rank < ranks; rank = next++) work(Rank{rank});
  };
  std::vector<std::thread> others;
  for (std::size_t i = 1; i < threads; ++i) others.emplace_back(worker);
  worker();
  for (std::thread& other : others) other.join();
}

void require_memory(Bytes bytes) {
  const Bytes there{std::int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE)};
  if (bytes < there) return;
  throw InputError({"replay", 0, ""}, fmt::format("{:.1f} GB of buffers of all ranks", gigabytes(bytes)),
                   fmt::format("less than this machine's {:.1f} GB of memory (--scale)", gigabytes(there)));
}

}  // namespace

HostMemory::HostMemory(const Program& program, std::size_t threads)
    : program_(program), codes_(program), threads_(threads) {
  require_memory(program.memory());
  for (std::uint32_t rank = 0; rank < program.ranks(); ++rank) {
    arenas_.push_back(std::make_unique_for_overwrite<std::byte[]>(to_size(program.arena({rank}).size.value)));
  }
}

void HostMemory::prepare(std::uint32_t pass) {
  for_each_rank_of(arenas_.size(), threads_, [&](Rank rank) {
    std::byte* const memory = arenas_[rank.index()].get();
    const Arena& arena = program_.arena(rank);
    std::memset(memory + arena.staging.value, staging_poison, to_size((arena.size - arena.staging).value));
    for (const Shard& shard : program_.sources(rank))
      fill(codes_.source(shard, pass), memory + shard.offset.value);
    for (const Shard& shard : program_.targets(rank))
      poison(codes_.target(shard, pass), memory + shard.offset.value);
  });
}

void HostMemory::judge(std::uint32_t pass, std::size_t most, Measurement& measurement) const {
  struct Verdict {
    std::size_t count = 0;
    Bytes bytes;
    std::vector<Mismatch> first;
  };
  std::vector<Verdict> verdicts(arenas_.size());
  for_each_rank_of(arenas_.size(), threads_, [&](Rank rank) {
    Verdict& verdict = verdicts[rank.index()];
    for (const Shard& shard : program_.targets(rank)) {
      std::vector<WrongWord> wrong;
      const std::byte* const memory = arenas_[rank.index()].get() + shard.offset.value;
      verdict.count += compare(codes_.target(shard, pass), memory, most - verdict.first.size(), wrong);
      verdict.bytes += shard.bytes;
      for (const WrongWord& word : wrong)
        verdict.first.push_back(codes_.mismatch(shard, rank, pass, word.position, word.found));
    }
  });
  measurement.verified = {};
  for (Verdict& verdict : verdicts) {
    measurement.mismatch_count += verdict.count;
    measurement.verified += verdict.bytes;
    for (Mismatch& mismatch : verdict.first) {
      if (measurement.mismatches.size() < most) measurement.mismatches.push_back(std::move(mismatch));
    }
  }
}

}  // namespace isthmus::hw
