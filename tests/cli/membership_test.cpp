// `isthmus membership` as users run it.

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"

namespace isthmus {
namespace {

using ::testing::HasSubstr;

class MembershipCommand : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    file_ = folder_
                .write("small.yaml",
                       "name: small\nmodel: {config: models/deepseek-v3.json, layers: 1}\n"
                       "fabric: {preset: dgx-h100, hosts: 4}\n"
                       "train: {gpus: 8}\ngenerate: {gpus: 16, tp: 8}\ncalibration: h100-ib400\n")
                .string();
  }
  ProgramResult membership(const std::string& arguments) const {
    return run("membership '" + file_ + "' --policy p2p,balanced " + arguments);
  }

  std::string file_;
};

TEST_F(MembershipCommand, prints_a_table) {
  const ProgramResult result = membership("--leave 2 --join 3");
  EXPECT_EQ(result.status, 0) << result.errors;
  for (const char* const part : {"hosts 2 leave, hosts 3 join generation", "copies from", "own side",
                                 "shrink/grow", "recreate", "spares", "fastest: "})
    EXPECT_THAT(result.output, HasSubstr(part));
}

TEST_F(MembershipCommand, prints_json) {
  const ProgramResult result = membership("--leave 1-2 --join 1,3 --join train:2 --next-refit '1 s' --json");
  ASSERT_EQ(result.status, 0) << result.errors;
  const auto json = nlohmann::json::parse(result.output);
  EXPECT_EQ(json["leave"], (std::vector<int>{1, 2}));
  EXPECT_EQ(json["join_generate"], (std::vector<int>{1, 3}));
  EXPECT_EQ(json["join_train"], (std::vector<int>{2}));
  EXPECT_EQ(json["train_gpus"]["after"], 16);
  EXPECT_EQ(json["next_refit_seconds"], 1);
}

TEST_F(MembershipCommand, refuses_bad_input_and_says_what_is_allowed) {
  const auto refusal = [this](const std::string& arguments) {
    const ProgramResult result = membership(arguments);
    EXPECT_EQ(result.status, 2) << arguments;
    EXPECT_EQ(result.output, "");
    return result.errors;
  };
  EXPECT_THAT(refusal("--leave 3"),
              HasSubstr("--leave: found host 3; allowed: hosts of the refit: 0 train, 1-2"));
  EXPECT_THAT(refusal("--leave 1-2"), HasSubstr("at least 8 GPUs, which one replica takes: 1 host"));
  EXPECT_THAT(refusal("--join 4"), HasSubstr("--join: found host 4; allowed: 0 to 3 (fabric.hosts is 4)"));
  EXPECT_THAT(refusal("--leave 2-1"), HasSubstr("--leave: found '2-1'; allowed: hosts, such as 3"));
  EXPECT_THAT(refusal("--leave 1,1"), HasSubstr("each host once"));
  EXPECT_THAT(refusal("--join all"), HasSubstr("--join: found 'all'"));
  EXPECT_THAT(refusal("--leave 1 --next-refit 5"), HasSubstr("--next-refit: found '5'; allowed: a time"));
  const auto bare = folder_.write("bare.yaml",
                                  "fabric: {preset: dgx-h100, hosts: 2}\ntensor: {shape: [8], dtype: u8}\n"
                                  "source: {mesh: [1], first_rank: 0, placements: [replicated]}\n"
                                  "target: {mesh: [1], first_rank: 8, placements: [replicated]}\n");
  EXPECT_THAT(run("membership --leave 1 '" + bare.string() + "'").errors, HasSubstr("no whole refit"));
}

}  // namespace
}  // namespace isthmus
