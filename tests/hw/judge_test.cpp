#include "hw/judge.hpp"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/policy.hpp"
#include "tests/support/check_fixture.hpp"

namespace isthmus::hw {
namespace {

using ::testing::HasSubstr;

/// Two tensors, the second of 8 columns on ranks 2 and 3.
class JudgeFixture : public test::CheckFixture {
 protected:
  JudgeFixture() {
    refit({test::tensor("a", {6}, {1, 0}, {1, 2}), test::tensor("b", {3, 8}, {2, 0, 1}, {2, 2, 1})}, 4);
    plan_ = std::get<Plan>(plan_p2p(*refit_));
  }
};

TEST_F(JudgeFixture, codes_of_all_elements_differ_and_replicas_agree) {
  const Program program(*refit_, plan_);
  const Codes codes(program);
  EXPECT_EQ(codes.passes(), 1U);
  std::set<std::uint64_t> words;
  std::size_t elements = 0;
  for (std::uint32_t rank = 0; rank < program.ranks(); ++rank) {
    for (const Shard& shard : program.sources({rank})) {
      const ShardCode code = codes.source(shard, 0);
      elements += code.elements;
      for (std::uint64_t i = 0; i < code.elements; ++i) words.insert(code_word(code, i));
    }
    for (const Shard& shard : program.targets({rank})) {
      const ShardCode code = codes.target(shard, 0);
      for (std::uint64_t i = 0; i < code.elements; ++i) EXPECT_TRUE(words.count(code_word(code, i)) > 0);
    }
  }
  EXPECT_EQ(elements, 30U);
  EXPECT_EQ(words.size(), 30U);
}

TEST_F(JudgeFixture, what_was_filled_compares_equal_and_poison_nowhere) {
  const Program program(*refit_, plan_);
  const Codes codes(program);
  const Shard& shard = program.targets({3}).front();
  const ShardCode code = codes.target(shard, 0);
  std::vector<std::byte> memory(to_size(shard.bytes.value));
  std::vector<WrongWord> wrong;
  fill(code, memory.data());
  EXPECT_EQ(compare(code, memory.data(), 9, wrong), 0U);
  memory[5] ^= std::byte{4};  // element 2, its high byte
  EXPECT_EQ(compare(code, memory.data(), 9, wrong), 1U);
  ASSERT_EQ(wrong.size(), 1U);
  EXPECT_EQ(wrong[0].position, 2U);
  EXPECT_EQ(wrong[0].found, code_word(code, 2) ^ 0x400U);
  poison(code, memory.data());
  EXPECT_EQ(compare(code, memory.data(), 3, wrong), code.elements);
  EXPECT_EQ(wrong.size(), 4U);
}

TEST_F(JudgeFixture, a_mismatch_names_tensor_element_rank_and_step) {
  const Program program(*refit_, plan_);
  const Codes codes(program);
  const auto& shards = program.targets({3});
  ASSERT_EQ(shards.front().tensor, TensorId{1});
  const Mismatch mismatch = codes.mismatch(shards.front(), {3}, 0, 5, 0xBEEF);  // row 1, column 4 + 1
  EXPECT_EQ(mismatch.element, (std::vector<std::int64_t>{1, 5}));
  EXPECT_THAT(mismatch.message, HasSubstr("tensor b, element (1,5) on rank 3: found beef"));
  EXPECT_THAT(mismatch.message, HasSubstr("(send, rank 1 -> rank 3)"));
}

}  // namespace
}  // namespace isthmus::hw
