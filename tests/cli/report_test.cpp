// --report and --plot as users run them: what is written, what is printed, what is refused.

#include "report/page.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"

namespace isthmus {
namespace {

using testing::HasSubstr;

class ReportCommands : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    folder_.write("a.yaml",
                  "name: a\ntensor: {shape: [50000000], dtype: bf16}\n"
                  "source: {mesh: [1], first_rank: 0, placements: [replicated]}\n"
                  "target: {mesh: [1], first_rank: 8, placements: [replicated]}\n"
                  "fabric: {preset: dgx-h100, hosts: 2}\ncalibration: h100-ib400\n"
                  "published:\n  - {id: A, policy: p2p, seconds: 0.001, source: x}\n");
  }
  std::string scenario() const { return "'" + (folder_.path() / "a.yaml").string() + "'"; }
  std::filesystem::path file(const std::string& name) const { return folder_.path() / name; }
  std::string option(const std::string& name, const std::string& to) const {
    return " " + name + " '" + file(to).string() + "'";
  }
  /// The JSON in the page's element of this id.
  nlohmann::json embedded(const std::string& name, const std::string& id) const {
    const std::string page = read_file(file(name)), begin = "id=\"" + id + "\">";
    const std::size_t from = page.find(begin) + begin.size();
    return nlohmann::json::parse(page.substr(from, page.find("</script>", from) - from));
  }
};

TEST_F(ReportCommands, simulate_writes_a_page_with_the_numbers_that_it_prints) {
  if (report::page_assets().library.empty()) GTEST_SKIP() << "built without D3";
  const ProgramResult result =
      run("simulate --json --policy p2p " + scenario() + option("--report", "a.html"));
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_EQ(result.errors, "");
  const nlohmann::json printed = nlohmann::json::parse(result.output);
  EXPECT_EQ(embedded("a.html", "data"), printed);
  EXPECT_EQ(printed["report"]["traffic"]["bytes"], 100'000'000);
  EXPECT_TRUE(embedded("a.html", "explanation").is_null());
}

TEST_F(ReportCommands, explain_adds_its_changes_to_the_page) {
  if (report::page_assets().library.empty()) GTEST_SKIP() << "built without D3";
  const ProgramResult result =
      run("explain --json --policy p2p " + scenario() + option("--report", "e.html"));
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_EQ(embedded("e.html", "explanation"), nlohmann::json::parse(result.output));
  EXPECT_EQ(embedded("e.html", "data")["report"]["policy"], "p2p");
}

TEST_F(ReportCommands, without_them_the_json_has_no_report) {
  const ProgramResult result = run("simulate --json " + scenario() + option("--plot", "a.svg"));
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_FALSE(nlohmann::json::parse(result.output).contains("report"));
  EXPECT_THAT(read_file(file("a.svg")), HasSubstr("a: policies against the lower bound"));
}

TEST_F(ReportCommands, scoreboard_plots_its_rows) {
  folder_.write("mine/a.yaml", read_file(file("a.yaml")));
  const ProgramResult result = run("scoreboard '" + file("mine").string() + "'" + option("--plot", "s.svg"));
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_THAT(result.output, HasSubstr("counted rows: 1"));
  EXPECT_THAT(read_file(file("s.svg")), HasSubstr("A, p2p: published 0.001 s, predicted"));
}

TEST_F(ReportCommands, refuse_standard_output_and_plain_traffic) {
  for (const std::string name : {"--report", "--plot"}) {
    const ProgramResult result = run("simulate " + scenario() + " " + name + " -");
    EXPECT_EQ(result.status, 2);
    EXPECT_THAT(result.errors, HasSubstr(name + ": found '-'; allowed: the name of a file"));
    folder_.write("t.yaml", "fabric: {preset: dgx-h100, hosts: 2}\ntraffic: {all-reduce: {gpus: 0-15}}\n");
    const ProgramResult traffic =
        run("simulate '" + file("t.yaml").string() + "'" + option(name, "never.html"));
    EXPECT_EQ(traffic.status, 2);
    EXPECT_THAT(traffic.errors, HasSubstr(name + ": found beside plain traffic"));
    EXPECT_FALSE(std::filesystem::exists(file("never.html")));
  }
}

}  // namespace
}  // namespace isthmus
