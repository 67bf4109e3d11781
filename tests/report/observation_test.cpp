#include "report/observation.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "model/error.hpp"
#include "tests/support/refit_generator.hpp"
#include "tests/support/temporary_folder.hpp"

namespace isthmus::report {
namespace {

/// Two tensors; the second is a stack of experts.
Refit refit_of_two() {
  TensorSpec spec;
  spec.source = {{16}, Dtype::u8, contiguous_mesh({1}, Rank{0}), {{}}, ChunkRule::even};
  spec.target = {{16}, Dtype::u8, contiguous_mesh({1}, Rank{1}), {{}}, ChunkRule::even};
  spec.name = "model.layers.0.norm.weight";
  TensorSpec stacked = spec;
  stacked.name = "model.layers.0.mlp.experts.up_proj.weight";
  return test::make_refit({{spec, stacked}, 2});
}

Observation read(std::string_view text) {
  const TemporaryFolder folder;
  return read_observation(folder.write("run", text), refit_of_two());
}

/// line, key, found and allowed of what is refused.
std::string refusal(std::string_view text) {
  try {
    read(text);
  } catch (const InputError& error) {
    return std::to_string(error.where().line) + " " + error.where().key + ": " + error.message();
  }
  return "none";
}

TEST(Observation, reads_a_table_with_commas_or_tabs_in_any_unit) {
  const Observation seconds = read("stage,tensor,start_s,end_s\n0,model.layers.0.norm.weight,2,3.5\n");
  ASSERT_EQ(seconds.spans.size(), 1U);
  EXPECT_EQ(seconds.form, ObservedForm::table);
  EXPECT_EQ(seconds.spans[0].stage, 0);
  EXPECT_EQ(seconds.spans[0].tensor, TensorId{0});
  EXPECT_EQ(seconds.spans[0].begin.value, 0);
  EXPECT_EQ(seconds.spans[0].end.value, 1'500'000'000'000);
  const Observation mixed = read("end_us\ttensor\tstart_ms\r\n4000\tmodel.layers.0.norm.weight\t1\r\n");
  EXPECT_EQ(mixed.spans[0].end.value, 3'000'000'000);
}

TEST(Observation, keeps_times_since_1970) {
  const Observation observation = read(
      "tensor,start_s,end_s\nmodel.layers.0.norm.weight,1790000000.25,1790000000.75\n"
      "model.layers.0.mlp.experts.up_proj.weight,1790000001.25,1790000001.75\n");
  EXPECT_NEAR(seconds(observation.spans[1].begin), 1, 1e-6);
  const Observation events =
      read(R"([{"ph":"X","name":"model.layers.0.norm.weight","ts":1790000000000000.5,"dur":2.5}])");
  EXPECT_EQ(events.spans[0].end.value, 2'500'000);
}

TEST(Observation, finds_tensors_in_the_names_of_profiler_events) {
  const Observation observation = read(R"x([
    {"ph":"X","name":"refit: model.layers.0.mlp.experts.12.up_proj.weight (rank 3)","ts":10,"dur":4},
    {"ph":"X","name":"gemm","ts":0,"dur":100},
    {"ph":"i","name":"model.layers.0.norm.weight","ts":3},
    {"ph":"X","name":"model.layers.0.norm.weight","ts":14.000001,"dur":1,"args":{"note":{"ph":"X"}}}])x");
  EXPECT_EQ(observation.form, ObservedForm::profile);
  EXPECT_EQ(observation.ignored, 1U);
  ASSERT_EQ(observation.spans.size(), 2U);
  EXPECT_EQ(observation.spans[0].tensor, TensorId{1});
  EXPECT_EQ(observation.spans[1].tensor, TensorId{0});
  EXPECT_EQ(observation.spans[1].begin.value, 4'000'001);
}

TEST(Observation, refuses_what_it_cannot_read_and_says_where) {
  EXPECT_EQ(refusal("stage,tensor,begin\n").substr(0, 8), "1 begin:");
  EXPECT_NE(refusal("stage,start_s\n0,1\n").find("a table with start_U, end_U"), std::string::npos);
  EXPECT_NE(refusal("tensor,start_s,end_s\nno.such,0,1\n").find("2 tensor: found 'no.such'"),
            std::string::npos);
  EXPECT_NE(refusal("stage,start_s,end_s\n0,0,1\n7,0,1\n").find("3 stage: found '7'"), std::string::npos);
  EXPECT_NE(refusal("stage,start_s,end_s\n0,0,x\n").find("2 end_s: found 'x'"), std::string::npos);
  EXPECT_NE(refusal("stage,start_s,end_s\n0,2,1\n").find("start <= end"), std::string::npos);
  EXPECT_NE(refusal("stage,start_s,end_s\n0,2\n").find("2 values"), std::string::npos);
  EXPECT_NE(refusal("stage,start_s,end_s\n").find("nothing of this refit"), std::string::npos);
  EXPECT_NE(refusal("[{\"ph\":\"X\",\"name\":\"gemm\",\"ts\":0,\"dur\":1}]").find("1 spans name none"),
            std::string::npos);
  EXPECT_NE(refusal("{\"traceEvents\":[").find("trace-event JSON"), std::string::npos);
  EXPECT_NE(refusal("{\"traceEvents\":[{\"ph\":\"X\",\"name\":\"a\"}]}").find("name, ts and dur"),
            std::string::npos);
  EXPECT_NE(refusal("\x1f\x8b...").find("gunzip"), std::string::npos);
  EXPECT_NE(refusal("SQLite format 3, but not really").find("Nsight Systems"), std::string::npos);
  EXPECT_NE(refusal("").find("a table with"), std::string::npos);
}

}  // namespace
}  // namespace isthmus::report
