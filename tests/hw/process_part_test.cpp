// Parts of random plans, for random distributions of ranks onto processes, executed side by side on one
// memory through a mailbox: all end, and every byte is right. What is sent is what the other end expects.

#include "hw/process_part.hpp"

#include <algorithm>
#include <cstdio>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <tuple>

#include <gtest/gtest.h>

#include "hw/host_memory.hpp"
#include "planner/check.hpp"
#include "planner/queues.hpp"
#include "tests/support/plan_builder.hpp"
#include "tests/support/refit_generator.hpp"
#include "tests/support/test_scale.hpp"

namespace isthmus::hw {
namespace {

using Bytestring = std::vector<std::byte>;
/// (from process, to process, operation, notice) -> messages in order
using Mailbox =
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, bool>, std::deque<Bytestring>>;

Bytestring packed_message(const RankMessage& message, const std::byte* arena) {
  Bytestring bytes(to_size(message.bytes));
  std::byte* next = bytes.data();
  for (const Move& move : message.moves) {
    pack_bytes(move, arena, next);
    next += move.bytes();
  }
  return bytes;
}

/// One process: takes a step whenever it can.
class PartRunner {
 public:
  PartRunner(const Program& program, const std::vector<std::uint32_t>& process_of, std::uint32_t process,
             const std::vector<std::uint32_t>& hosts, HostMemory& memory, Mailbox& mailbox)
      : process_(process),
        memory_(memory),
        mailbox_(mailbox),
        part_(part_of(program.operations(), process_of, process)),
        plan_(part_.operations),
        queues_(plan_) {
    for (const std::uint32_t operation : part_.number)
      work_.push_back(work_of(program, operation, process_of, process, hosts));
    queues_.begin(started_);
    for (const std::uint32_t operation : started_) begin(operation);
  }

  bool over() const { return queues_.waiting() == 0; }

  /// Ends one operation for which everything has come; false where there is none.
  bool step(std::mt19937_64& random) {
    std::shuffle(started_.begin(), started_.end(), random);
    for (std::size_t i = 0; i < started_.size(); ++i) {
      const std::uint32_t operation = started_[i];
      if (!take(operation)) continue;
      started_.erase(started_.begin() + static_cast<std::ptrdiff_t>(i));
      std::vector<std::uint32_t> found;
      queues_.complete(operation, found);
      for (const std::uint32_t next : found) begin(next);
      started_.insert(started_.end(), found.begin(), found.end());
      return true;
    }
    return false;
  }

 private:
  std::deque<Bytestring>& box(std::uint32_t from, std::uint32_t to, std::uint32_t operation, bool notice) {
    return mailbox_[{from, to, operation, notice}];
  }

  void begin(std::uint32_t operation) {
    if (operation >= work_.size()) return;
    const ProcessWork& work = work_[operation];
    for (const RankMessage& message : work.sends) {
      box(process_, message.peer, part_.number[operation], false)
          .push_back(packed_message(message, memory_.arena(message.from)));
    }
    if (work.stream && !work.stream->previous) {
      const RankMessage& message = work.stream->members.front();
      box(process_, *work.stream->next, part_.number[operation], false)
          .push_back(packed_message(message, memory_.arena(work.stream->root)));
    }
  }

  bool all_here(std::uint32_t operation) {
    const ProcessWork& work = work_[operation];
    std::map<std::uint32_t, std::size_t> wanted;
    for (const RankMessage& message : work.receives) ++wanted[message.peer];
    if (work.stream && work.stream->previous) ++wanted[*work.stream->previous];
    return std::all_of(wanted.begin(), wanted.end(), [&](const auto& one) {
      return box(one.first, process_, part_.number[operation], false).size() >= one.second;
    });
  }

  void unpack(const RankMessage& message, const Bytestring& bytes) {
    ASSERT_EQ(bytes.size(), to_size(message.bytes));
    const std::byte* next = bytes.data();
    for (const Move& move : message.moves) {
      unpack_bytes(move, next, memory_.arena(message.to));
      next += move.bytes();
    }
  }

  Bytestring pop(std::uint32_t from, std::uint32_t operation, bool notice) {
    std::deque<Bytestring>& queue = box(from, process_, operation, notice);
    Bytestring bytes = std::move(queue.front());
    queue.pop_front();
    return bytes;
  }

  bool take(std::uint32_t operation) {
    if (operation >= work_.size()) {
      const Notice& notice = part_.notices[operation - work_.size()];
      if (box(notice.process, process_, notice.operation, true).empty()) return false;
      (void)pop(notice.process, notice.operation, true);
      return true;
    }
    if (!all_here(operation)) return false;
    const ProcessWork& work = work_[operation];
    const std::uint32_t number = part_.number[operation];
    for (const RankMessage& message : work.receives) unpack(message, pop(message.peer, number, false));
    if (work.stream && work.stream->previous) {
      const Bytestring bytes = pop(*work.stream->previous, number, false);
      for (const RankMessage& member : work.stream->members) unpack(member, bytes);
      if (work.stream->next) box(process_, *work.stream->next, number, false).push_back(bytes);
    }
    for (const Transfer& transfer : work.local)
      copy_bytes(transfer.move, memory_.arena(transfer.from), memory_.arena(transfer.to));
    for (const std::uint32_t other : part_.tell[operation]) box(process_, other, number, true).emplace_back();
    return true;
  }

  std::uint32_t process_;
  HostMemory& memory_;
  Mailbox& mailbox_;
  ProcessPart part_;
  QueuePlan plan_;
  Queues queues_;
  std::vector<ProcessWork> work_;
  std::vector<std::uint32_t> started_;
};

/// Runs all parts to the end, in a random order; says how many wrong elements there are.
void run_parts(const Program& program, const std::vector<std::uint32_t>& process_of, std::uint32_t processes,
               std::uint64_t seed) {
  HostMemory memory(program, 1);
  memory.prepare(0);
  Mailbox mailbox;
  std::mt19937_64 random(seed);
  std::vector<std::uint32_t> hosts;
  if (seed % 3 > 0)
    for (std::uint32_t p = 0; p < processes; ++p) hosts.push_back(static_cast<std::uint32_t>(random() % 2));
  std::vector<std::unique_ptr<PartRunner>> runners;
  for (std::uint32_t p = 0; p < processes; ++p)
    runners.push_back(std::make_unique<PartRunner>(program, process_of, p, hosts, memory, mailbox));
  bool more = true;
  while (more) {
    std::shuffle(runners.begin(), runners.end(), random);
    more = std::any_of(runners.begin(), runners.end(), [&](const auto& one) { return one->step(random); });
  }
  EXPECT_TRUE(std::all_of(runners.begin(), runners.end(), [](const auto& one) { return one->over(); }));
  for (const auto& [key, messages] : mailbox) EXPECT_TRUE(messages.empty()) << "a message that nobody took";
  Measurement measurement;
  memory.judge(0, 3, measurement);
  for (const Mismatch& mismatch : measurement.mismatches) ADD_FAILURE() << mismatch.message;
}

TEST(ProcessPart, of_any_proven_plan_all_processes_end_and_every_byte_is_right) {
  const test::SeedRange seeds = test::seeds_of_shard(0, 4800);
  std::size_t notices = 0, streams = 0;
  for (std::uint64_t seed = seeds.begin; seed < seeds.end; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Refit refit = test::make_refit(test::sample_case(seed));
    const Plan plan = test::build_plan(refit, test::options_of(seed));
    ASSERT_TRUE(check(refit, plan).proven());
    const Program program(refit, plan);
    std::mt19937_64 random(seed);
    const std::uint32_t processes = 1 + static_cast<std::uint32_t>(random() % 5);
    std::vector<std::uint32_t> process_of(program.ranks());
    for (std::uint32_t& process : process_of) process = static_cast<std::uint32_t>(random() % processes);
    if (seed % 2 == 0) process_of = processes_of_ranks(program, processes);
    run_parts(program, process_of, processes, seed);
    for (std::uint32_t p = 0; p < processes; ++p) {
      const ProcessPart part = part_of(program.operations(), process_of, p);
      notices += part.notices.size();
      for (const std::uint32_t operation : part.number)
        streams += work_of(program, operation, process_of, p).stream ? 1U : 0U;
    }
  }
  EXPECT_GT(streams, 0U);
  std::printf("%zu notices, %zu streams\n", notices, streams);
}

TEST(ProcessPart, ranks_are_processes_where_there_are_as_many_and_are_folded_where_there_are_fewer) {
  const Refit refit = test::make_refit(test::sample_case(1));
  const Plan plan = test::build_plan(refit, test::options_of(1));
  const Program program(refit, plan);
  const auto ranks = static_cast<std::uint32_t>(program.ranks());
  for (std::uint32_t rank = 0; rank < ranks; ++rank)
    EXPECT_EQ(processes_of_ranks(program, ranks)[rank], rank);
  for (const std::uint32_t process : processes_of_ranks(program, 2)) EXPECT_LT(process, 2U);
}

/// Operations of disjoint pairs of processes, the second after the first: no bytes tell of it.
TEST(ProcessPart, what_no_common_process_can_see_is_told_by_a_notice) {
  Operations operations;
  operations.lanes = {{"x", 1, false}};
  Operation first, second;
  first.source = {0};
  first.target = {1};
  second.source = {2};
  second.target = {3};
  second.after_end = 1;
  operations.list = {first, second};
  operations.after = {0};
  const std::vector<std::uint32_t> apart{0, 1, 2, 3}, meeting{0, 1, 1, 2};
  EXPECT_EQ(part_of(operations, apart, 0).tell, (std::vector<std::vector<std::uint32_t>>{{2}}));
  EXPECT_EQ(part_of(operations, apart, 1).tell, (std::vector<std::vector<std::uint32_t>>{{2}}));
  const ProcessPart waiting = part_of(operations, apart, 2);
  ASSERT_EQ(waiting.notices.size(), 2U);  // of both ends
  EXPECT_EQ(waiting.operations.list.size(), 3U);
  EXPECT_EQ(waiting.operations.dependencies(waiting.operations.list.front()).size(), 2U);
  EXPECT_TRUE(part_of(operations, apart, 3).notices.empty());
  for (std::uint32_t p = 0; p < 3; ++p) EXPECT_TRUE(part_of(operations, meeting, p).notices.empty());
  EXPECT_EQ(part_of(operations, meeting, 1).operations.after, std::vector<std::uint32_t>{0});
}

}  // namespace
}  // namespace isthmus::hw
