#include "model/topology/nccl_batches.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace isthmus {
namespace {

using ::testing::ElementsAre;
using Counts = std::vector<std::uint32_t>;

const NcclChannelRule several_domains{16, 8, 4};
const NcclChannelRule one_domain{32, 8, 1};

std::vector<NcclPlacedOp> placed(const Counts& ops_per_round, std::uint32_t parts, std::uint32_t per_peer,
                                 const NcclChannelRule& rule) {
  const auto queue = queue_of(ops_per_round);
  return place_group(queue, Counts(queue.size(), parts), per_peer, rule);
}

std::uint32_t ops_of_first_kernel(const std::vector<NcclPlacedOp>& ops) {
  return static_cast<std::uint32_t>(
      std::count_if(ops.begin(), ops.end(), [](const NcclPlacedOp& op) { return op.kernel == 0; }));
}

TEST(NcclBatches, ops_are_queued_epoch_by_epoch_and_round_by_round) {
  EXPECT_THAT(queue_of(Counts{1, 0, 3, 2}),
              ElementsAre(NcclQueuedOp{0, 0}, NcclQueuedOp{2, 0}, NcclQueuedOp{3, 0}, NcclQueuedOp{2, 1},
                          NcclQueuedOp{3, 1}, NcclQueuedOp{2, 2}));
}

TEST(NcclBatches, eight_peers_of_a_host_share_one_batch_and_the_next_host_has_other_channels) {
  const auto ops = placed(Counts(16, 1), 4, 4, several_domains);
  for (std::size_t op = 0; op < 16; ++op) {
    EXPECT_THAT(ops[op].batches, ElementsAre(0, 0, 0, 0));
    EXPECT_EQ(ops[op].channels.front(), op < 8 ? 0u : 8u);
  }
}

TEST(NcclBatches, several_ops_to_one_peer_are_separate_batches) {
  Counts ops_per_round(16, 0);
  ops_per_round[9] = 100;
  const auto ops = placed(ops_per_round, 4, 4, several_domains);
  for (std::uint32_t op = 0; op < 100; ++op) EXPECT_EQ(ops[op].batches.front(), op);
}

TEST(NcclBatches, rounds_beyond_the_channels_open_another_batch_where_they_wrap_around) {
  const auto ops = placed(Counts(17 * 8, 1), 1, 1, several_domains);
  EXPECT_THAT(ops[0].batches, ElementsAre(0));
  EXPECT_THAT(ops[16 * 8].channels, ElementsAre(0));
  EXPECT_THAT(ops[16 * 8].batches, ElementsAre(1));
}

// The description of a kernel holds 4064 / 16 = 254 batches, of which pp are kept free.
TEST(NcclBatches, a_kernel_holds_as_many_ops_to_one_peer_as_its_description_has_room_for) {
  EXPECT_EQ(ops_of_first_kernel(placed(Counts{0, 300}, 16, 32, one_domain)), 13u);
  EXPECT_EQ(ops_of_first_kernel(placed(Counts{0, 300}, 1, 1, several_domains)), 253u);
  EXPECT_EQ(ops_of_first_kernel(placed(Counts{0, 253}, 1, 1, several_domains)), 253u);
}

TEST(NcclBatches, a_kernel_holds_eight_times_as_many_ops_to_many_peers) {
  EXPECT_EQ(ops_of_first_kernel(placed(Counts(4096, 1), 1, 1, several_domains)), 8u * 253);
}

std::vector<NcclPlacedOp> with_work_fifo(std::int64_t bytes) {
  NcclSettings settings;
  settings.work_fifo = Bytes{bytes};
  return place_group(queue_of(Counts(800, 1)), Counts(800, 1), 1, several_domains, settings);
}

TEST(NcclBatches, items_beyond_the_arguments_are_limited_by_half_of_the_work_fifo) {
  EXPECT_EQ(ops_of_first_kernel(with_work_fifo(2 * 48 * 100)), 100u);
  // Without it, 80 items of 48 bytes with 10 batches and one kept free fill 4016 of 4064 bytes.
  EXPECT_EQ(ops_of_first_kernel(with_work_fifo(48)), 80u);
}

TEST(NcclBatches, a_batch_ends_with_its_kernel) {
  const auto ops = with_work_fifo(2 * 48 * 100);
  ASSERT_EQ(ops[99].channels, ops[100].channels);  // rounds 96 to 103 would share a batch
  EXPECT_EQ(ops[99].batches.front(), ops[96].batches.front());
  EXPECT_EQ(ops[100].batches.front(), ops[99].batches.front() + 1);
}

TEST(NcclBatches, warps_follow_the_table) {
  const std::vector<NcclWarps> table{{10, 9}, {5, 4}, {3, 2}, {3, 2}, {2, 2}, {1, 1}, {1, 1}, {1, 1}};
  const Counts alone{20, 10, 6, 5, 4, 3, 2, 2};
  for (std::uint32_t ops = 1; ops <= 8; ++ops) {
    EXPECT_EQ(warps_of_pair(ops), table[ops - 1]) << ops;
    EXPECT_EQ(warps_of_one(ops), alone[ops - 1]) << ops;
  }
}

struct Batch {
  std::set<std::uint32_t> rounds;
  std::set<std::uint32_t> epochs, spans, kernels;
  std::size_t ops = 0;
};

RC_GTEST_PROP(NcclBatches, hold_at_most_eight_ops_of_different_rounds_of_one_epoch_and_kernel, ()) {
  const auto rounds = *rc::gen::inRange<std::size_t>(1, 40);
  const auto counts = *rc::gen::container<Counts>(rounds, rc::gen::inRange(0u, 5u));
  const NcclChannelRule rule = *rc::gen::element(several_domains, one_domain);
  const auto queue = queue_of(counts);
  const auto parts = *rc::gen::container<Counts>(queue.size(), rc::gen::inRange(1u, 9u));
  const auto ops = place_group(queue, parts, 8, rule);
  std::map<std::pair<std::uint32_t, std::uint32_t>, Batch> batches;
  Counts last(rule.total_channels, 0);
  std::uint32_t kernel = 0;
  for (std::size_t op = 0; op < ops.size(); ++op) {
    RC_ASSERT(ops[op].kernel >= kernel);
    kernel = ops[op].kernel;
    RC_ASSERT(ops[op].batches.size() == parts[op]);
    for (std::size_t part = 0; part < parts[op]; ++part) {
      const std::uint32_t channel = ops[op].channels[part], number = ops[op].batches[part];
      RC_ASSERT(number >= last[channel]);
      last[channel] = number;
      Batch& batch = batches[{channel, number}];
      batch.rounds.insert(queue[op].round);
      batch.epochs.insert(queue[op].epoch);
      batch.spans.insert(queue[op].round / 8);
      batch.kernels.insert(kernel);
      ++batch.ops;
    }
  }
  for (const auto& [key, batch] : batches) {
    RC_ASSERT(batch.ops <= 8u);
    RC_ASSERT(batch.rounds.size() == batch.ops);
    RC_ASSERT(batch.epochs.size() == 1u && batch.spans.size() == 1u && batch.kernels.size() == 1u);
  }
}

}  // namespace
}  // namespace isthmus
