#include "model/topology/nccl_operation.hpp"

#include <array>
#include <bit>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "model/error.hpp"

namespace isthmus {
namespace {

using ::testing::HasSubstr;

constexpr Bytes kib(std::int64_t n) { return {n << 10}; }
constexpr Bytes mib(std::int64_t n) { return {n << 20}; }

NcclCutRule any_rule() {
  const auto domains = *rc::gen::inRange(1u, 5u);
  const std::uint32_t total = 1u << *rc::gen::inRange(0, 7), each = 1u << *rc::gen::inRange(0, 7);
  return {domains * *rc::gen::inRange(1u, 73u), domains, total, std::min(each, total),
          kib(domains > 1 ? 128 : 512)};
}

RC_GTEST_PROP(NcclOperation, parts_cover_the_op_once_in_order_and_begin_on_4_kib, ()) {
  const Bytes bytes{*rc::gen::inRange<std::int64_t>(0, std::int64_t{1} << *rc::gen::inRange(1, 40))};
  const auto parts = parts_of(bytes, any_rule());
  Bytes reached{};
  for (const NcclPart& part : parts) {
    RC_ASSERT(part.offset == reached);
    RC_ASSERT(part.length.value == 0 || part.offset.value % 4096 == 0);
    RC_ASSERT(part.length <= parts.front().length);
    reached += part.length;
  }
  RC_ASSERT(reached == bytes);
}

RC_GTEST_PROP(NcclOperation, parts_are_at_most_the_channels_of_a_peer_and_grow_with_the_op, ()) {
  const NcclCutRule rule = any_rule();
  const auto bytes = *rc::gen::inRange<std::int64_t>(0, std::int64_t{1} << 34);
  const auto more = *rc::gen::inRange<std::int64_t>(0, std::int64_t{1} << 34);
  const std::uint32_t parts = part_count({bytes}, rule);
  RC_ASSERT(parts >= 1u);
  RC_ASSERT(parts <= rule.channels_per_peer);
  RC_ASSERT(parts <= part_count({bytes + more}, rule));
}

TEST(NcclOperation, channels_of_one_op_follow_the_table) {
  struct Row {
    NcclCutRule rule;
    std::array<std::uint32_t, 7> channels;
  };
  const std::array sizes{kib(16), kib(256), mib(1), mib(64), mib(128), mib(256), mib(512)};
  const Bytes near = kib(512), far = kib(128);
  const std::vector<Row> table{
      {{2, 1, 32, 32, near}, {1, 4, 16, 16, 16, 16, 32}}, {{8, 1, 32, 32, near}, {1, 4, 4, 4, 8, 16, 32}},
      {{72, 1, 32, 32, near}, {1, 1, 1, 4, 8, 16, 32}},   {{16, 2, 16, 4, far}, {1, 2, 4, 4, 4, 4, 4}},
      {{32, 4, 16, 4, far}, {1, 2, 4, 4, 4, 4, 4}},       {{64, 8, 16, 2, far}, {1, 2, 2, 2, 2, 2, 2}},
      {{128, 16, 16, 1, far}, {1, 1, 1, 1, 1, 1, 1}},
  };
  for (const Row& row : table) {
    for (std::size_t size = 0; size < sizes.size(); ++size) {
      EXPECT_EQ(part_count(sizes[size], row.rule), row.channels[size])
          << row.rule.ranks << " ranks, " << sizes[size].value << " bytes";
    }
  }
}

TEST(NcclOperation, an_op_of_nothing_has_one_empty_part_and_trailing_parts_may_be_empty) {
  EXPECT_THAT(parts_of({0}, {16, 2, 16, 4, kib(128)}), ::testing::ElementsAre(NcclPart{}));
  const auto parts = parts_of({6145}, {2, 1, 64, 64, kib(16)});  // four of 1537 bytes, rounded up to 4096
  EXPECT_THAT(parts, ::testing::ElementsAre(NcclPart{{0}, {4096}}, NcclPart{{4096}, {2049}},
                                            NcclPart{{6145}, {0}}, NcclPart{{6145}, {0}}));
}

TEST(NcclOperation, the_chunk_depends_on_network_nvlink_and_grace) {
  EXPECT_EQ(p2p_chunk({2, true, false, 90}), kib(128));
  EXPECT_EQ(p2p_chunk({2, true, true, 90}), kib(128));
  EXPECT_EQ(p2p_chunk({2, true, true, 100}), kib(256));
  EXPECT_EQ(p2p_chunk({2, true, false, 100}), kib(128));
  EXPECT_EQ(p2p_chunk({1, true, true, 100}), kib(512));
  EXPECT_EQ(p2p_chunk({1, false, false, 90}), kib(128));
}

TEST(NcclOperation, chunks_are_cut_to_the_slot_and_to_the_parent_communicator) {
  NcclSettings settings;
  settings.buffer = mib(2);
  EXPECT_EQ(p2p_chunk({1, true, false, 90}, settings), kib(256));
  settings.network_chunk = mib(1);
  EXPECT_EQ(p2p_chunk({2, true, false, 90}, settings), kib(256));
  EXPECT_EQ(p2p_chunk({1, true, false, 90, kib(128)}), kib(128));
}

TEST(NcclOperation, a_chunk_above_the_slot_is_refused_with_the_reason_and_one_in_it_is_taken) {
  NcclSettings settings;
  settings.chunk = kib(512);
  EXPECT_EQ(p2p_chunk({2, true, false, 90}, settings), kib(512));
  settings.chunk = mib(1);
  try {
    p2p_chunk({2, true, false, 90}, settings);
    FAIL() << "taken";
  } catch (const InputError& error) {
    EXPECT_EQ(error.where().key, "NCCL_CHUNK_SIZE");
    EXPECT_THAT(error.what(), HasSubstr("the data that arrives is wrong"));
  }
}

TEST(NcclOperation, low_latency_is_for_small_parts_and_not_for_the_network) {
  EXPECT_TRUE(uses_ll(kib(16), 1, false));
  EXPECT_FALSE(uses_ll({(16 << 10) + 1}, 1, false));
  EXPECT_TRUE(uses_ll(kib(64), 4, false));
  EXPECT_FALSE(uses_ll(kib(1), 1, true));
  NcclSettings settings;
  settings.network_ll_buffers = true;
  EXPECT_TRUE(uses_ll(kib(16), 1, true, settings));
}

TEST(NcclOperation, network_chunks_are_smaller_for_small_ops) {
  const Bytes chunk = kib(128);
  EXPECT_EQ(network_chunk({(128 << 10) - 1}, chunk), kib(32));
  EXPECT_EQ(network_chunk(kib(128), chunk), kib(64));
  EXPECT_EQ(network_chunk({(1 << 20) - 1}, chunk), kib(64));
  EXPECT_EQ(network_chunk(mib(1), chunk), kib(128));
  EXPECT_EQ(network_steps(mib(16), mib(64), chunk), 128);
  EXPECT_EQ(network_steps({(64 << 10) + 1}, kib(256), chunk), 2);
  EXPECT_EQ(network_steps({0}, {0}, chunk), 0);
}

TEST(NcclOperation, sixteen_slots_of_a_channel_are_shared_and_one_op_takes_eight_at_most) {
  const std::array<std::uint32_t, 8> expected{8, 8, 5, 4, 3, 2, 2, 2};
  for (std::uint32_t sharers = 1; sharers <= 8; ++sharers) {
    EXPECT_EQ(chunks_in_flight(sharers), expected.at(sharers - 1)) << sharers;
  }
}

TEST(NcclOperation, zero_copy_needs_registered_buffers_and_no_relays) {
  NcclZeroCopy state{true, true, true, true, true, true, 1};
  EXPECT_TRUE(zero_copy(state));
  state.local_ranks = 8;
  EXPECT_FALSE(zero_copy(state));
  state.pxn = false;
  EXPECT_TRUE(zero_copy(state));
  state.registered = false;
  EXPECT_FALSE(zero_copy(state));
}

}  // namespace
}  // namespace isthmus
