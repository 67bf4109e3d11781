// Refit descriptions with local maps, as users hand them to the program.

#include <algorithm>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"
#include "tests/support/refit_info_generator.hpp"

namespace isthmus {
namespace {

using test::OrderedJson;
using ::testing::HasSubstr;

class RefitInfoProgram : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    test::RefitInfoShape shape;
    shape.tp = shape.ep = shape.pp = shape.generate_tp = shape.engines = 2;
    shape.layers = {1, 1};
    document_ = test::make_refit_info(shape);
    info_ = write("info.json", document_["nccl_reshard_refit_info"]);
  }
  std::string write(const std::string& name, const OrderedJson& json) const {
    return folder_.write(name, json.dump(1)).string();
  }

  OrderedJson document_;
  std::string info_;
};

TEST_F(RefitInfoProgram, validates_one_file_two_files_and_a_folder) {
  const OrderedJson& maps = document_["local_maps"];
  for (std::size_t i = 0; i < maps.size(); ++i) write(fmt::format("maps/{}.json", i), maps[i]);
  for (const std::string& arguments :
       {write("both.json", document_), info_ + " --local-maps " + write("maps.json", maps),
        info_ + " --local-maps " + (folder_.path() / "maps").string()}) {
    const ProgramResult result = run("validate " + arguments);
    EXPECT_EQ(result.status, 0) << result.output << result.errors;
    EXPECT_THAT(result.output, HasSubstr(": valid\n"));
    EXPECT_EQ(result.output.find("no local maps"), std::string::npos);
  }
  EXPECT_THAT(run("validate " + info_).output, HasSubstr("note: no local maps are given (--local-maps)"));
}

TEST_F(RefitInfoProgram, exits_with_1_and_lists_all_violations_with_file_line_and_key) {
  OrderedJson& maps = document_["local_maps"];
  std::swap(maps[4]["entries"][0]["after"], maps[4]["entries"][1]["after"]);
  std::swap(maps[5]["misc_order"][0], maps[5]["misc_order"][1]);
  maps.erase(0);
  const std::string file = write("both.json", document_);
  const ProgramResult result = run("validate " + file);
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.output, HasSubstr("both: 3 violations\n"));
  EXPECT_THAT(result.output, HasSubstr("the two halves are exchanged"));
  EXPECT_THAT(result.output,
              HasSubstr(": local_maps.4.misc_order: found 'model.layers.0.input_layernorm.weight'"));
  EXPECT_THAT(result.output, HasSubstr("local_maps: found no map of training rank 0"));
  const nlohmann::json json = nlohmann::json::parse(run("validate --json " + file).output);
  EXPECT_FALSE(json.at("valid").get<bool>());
  EXPECT_EQ(json.at("violations").size(), 3U);
  EXPECT_EQ(run("simulate " + file).status, 2);
}

TEST_F(RefitInfoProgram, exits_with_2_when_a_file_cannot_be_read) {
  const std::string broken = folder_.write("broken.json", "{\"per_layer_params\": {").string();
  for (const std::string& arguments : {broken, info_ + " --local-maps none.json",
                                       info_ + " --local-maps " + broken, info_ + " --set train_world_size=8",
                                       std::string("calibrations/h100-ib400.yaml --local-maps ") + info_}) {
    const ProgramResult result = run("validate " + arguments);
    EXPECT_EQ(result.status, 2) << arguments << result.output;
    EXPECT_EQ(result.output, "");
    EXPECT_EQ(std::count(result.errors.begin(), result.errors.end(), '\n'), 1) << result.errors;
  }
}

TEST_F(RefitInfoProgram, is_simulated_verified_and_bounded_with_its_assumptions_on_standard_error) {
  for (const std::string command : {"simulate", "verify", "bound"}) {
    const ProgramResult result = run(
        fmt::format("{} {} --set fabric.preset=gb200-nvl72 --set fabric.hosts=2 --set calibration=wire-only",
                    command, info_));
    EXPECT_EQ(result.status, 0) << result.errors;
    EXPECT_THAT(result.errors, HasSubstr("assumed: fabric gb200-nvl72 with 2 hosts"));
    EXPECT_THAT(result.errors, HasSubstr("assumed: 3 misc tensors"));
  }
}

}  // namespace
}  // namespace isthmus
