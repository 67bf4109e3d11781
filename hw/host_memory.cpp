#include "hw/host_memory.hpp"

#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "model/error.hpp"

namespace isthmus::hw {
namespace {

/// Calls work(i) for every i below count, spread over threads.
template <class Work>
void for_each_of(std::size_t count, std::size_t threads, const Work& work) {
  std::atomic<std::size_t> next{0};
  const auto worker = [&] {
    for (std::size_t i = next++; i < count; i = next++) work(i);
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

std::vector<Rank> all_ranks(const Program& program) {
  std::vector<Rank> ranks;
  for (std::uint32_t rank = 0; rank < program.ranks(); ++rank) ranks.push_back({rank});
  return ranks;
}

}  // namespace

HostMemory::HostMemory(const Program& program, std::size_t threads)
    : HostMemory(program, threads, all_ranks(program)) {}

HostMemory::HostMemory(const Program& program, std::size_t threads, std::vector<Rank> ranks)
    : program_(program), codes_(program), threads_(threads), ranks_(std::move(ranks)) {
  Bytes bytes;
  for (const Rank rank : ranks_) bytes += program.arena(rank).size;
  require_memory(bytes);
  arenas_.resize(program.ranks());
  for (const Rank rank : ranks_) {
    arenas_[rank.index()] =
        std::make_unique_for_overwrite<std::byte[]>(to_size(program.arena(rank).size.value));
  }
}

void HostMemory::prepare(std::uint32_t pass) {
  for_each_of(ranks_.size(), threads_, [&](std::size_t i) {
    const Rank rank = ranks_[i];
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
  std::vector<Verdict> verdicts(ranks_.size());
  for_each_of(ranks_.size(), threads_, [&](std::size_t i) {
    const Rank rank = ranks_[i];
    Verdict& verdict = verdicts[i];
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
