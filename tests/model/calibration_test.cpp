#include "model/calibration.hpp"

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/project_files.hpp"

namespace isthmus {
namespace {

namespace fs = std::filesystem;

/// A folder that is gone at the end of the test.
class Calibrations : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / fmt::format("isthmus_calibration_test_{}", ::getpid());
    fs::remove_all(folder_);
    fs::create_directories(folder_ / "scenarios" / "cases");
    fs::create_directories(folder_ / "scenarios" / "calibrations");
  }
  void TearDown() override { fs::remove_all(folder_); }

  void write(const fs::path& name, const std::string& text) { std::ofstream(folder_ / name) << text; }

  /// All constants as the reader wants them; `key` gets the text `entry` instead, or is left out when it is
  /// empty.
  static std::string constants(std::string_view key = {}, std::string_view entry = {}) {
    std::string text;
    for (const ConstantField& field : calibration_fields()) {
      const bool chosen = field.key == key;
      if (chosen && entry.empty()) continue;
      const std::string_view value = field.unit == "ratio" ? "0.5" : field.unit == "s" ? "3 us" : "2 GB/s";
      text += fmt::format("{}: ", field.key);
      text += chosen
                  ? std::string(entry)
                  : fmt::format("{{value: {0}, interval: [{0}, {0}], provenance: metal, source: x}}", value);
      text += '\n';
    }
    return text;
  }

  /// The mapping of the constants of replays, likewise.
  static std::string replay(std::string_view key = {}, std::string_view entry = {}) {
    std::string text = "replay:\n";
    for (const ReplayField& field : replay_fields()) {
      const bool chosen = field.key == key;
      if (chosen && entry.empty()) continue;
      const std::string_view value = field.unit == "ratio" ? "0.5"
                                     : field.unit == "s"   ? "3 us"
                                     : field.unit == "B"   ? "2 MB"
                                                           : "2 GB/s";
      const std::string whole =
          fmt::format("{{value: {0}, interval: [{0}, {0}], provenance: metal, source: x}}", value);
      text += fmt::format("  {}: {}\n", field.key, chosen ? std::string(entry) : whole);
    }
    return text;
  }

  std::string fault_of(const std::string& text) {
    write("scenarios/calibrations/mine.yaml", text);
    try {
      read_calibration("mine", folder_ / "scenarios");
    } catch (const InputError& error) {
      const std::string message = error.what();
      const std::size_t file_name = message.find("mine.yaml");
      return file_name == std::string::npos ? message : message.substr(file_name);
    }
    return "";
  }

  fs::path folder_;
};

TEST_F(Calibrations, shipped_files_are_read_and_wire_only_equals_its_function) {
  const Calibration wire = read_calibration("wire-only", project_folder() / "scenarios");
  EXPECT_EQ(wire, wire_only());
  const Calibration h100 = read_calibration("h100-ib400", project_folder() / "scenarios");
  EXPECT_EQ(h100.name, "h100-ib400");
  EXPECT_EQ(h100.nvlink_efficiency.value, 0.82);
  EXPECT_EQ(h100.nvlink_latency.value, 15e-6);
  EXPECT_EQ(h100.collective_bandwidth.value, 224e9);
  EXPECT_EQ(h100.collective_bandwidth.provenance, Provenance::nccl_source);
  EXPECT_EQ(h100.memory_bandwidth.value, 2.5e12);
}

TEST_F(Calibrations, of_a_scenario_named_without_a_folder_are_sought_from_the_working_folder_on) {
  EXPECT_EQ(read_calibration("h100-ib400", {}).name, "h100-ib400");  // tests run in the project's folder
}

TEST_F(Calibrations, every_interval_of_the_shipped_files_holds_its_value) {
  for (const char* name : {"wire-only", "h100-ib400", "gb200-nvl72"}) {
    const Calibration calibration = read_calibration(name, project_folder() / "scenarios");
    for (const ConstantField& field : calibration_fields()) {
      const Constant& constant = calibration.*field.member;
      EXPECT_LE(constant.low, constant.value) << field.key;
      EXPECT_LE(constant.value, constant.high) << field.key;
      EXPECT_FALSE(constant.source.empty()) << field.key;
    }
  }
}

TEST_F(Calibrations, have_no_more_than_eight_fitted_constants) {
  for (const char* name : {"wire-only", "h100-ib400", "gb200-nvl72"}) {
    const Calibration calibration = read_calibration(name, project_folder() / "scenarios");
    int fitted = 0;
    for (const ConstantField& field : calibration_fields())
      if ((calibration.*field.member).provenance == Provenance::fitted) ++fitted;
    EXPECT_LE(fitted, 8) << name;
  }
}

TEST_F(Calibrations, of_gb200_carries_the_fitted_constants_of_h100_over_with_wider_intervals) {
  const Calibration h100 = read_calibration("h100-ib400", project_folder() / "scenarios");
  const Calibration gb200 = read_calibration("gb200-nvl72", project_folder() / "scenarios");
  for (const ConstantField& field : calibration_fields()) {
    const Constant &before = h100.*field.member, &after = gb200.*field.member;
    EXPECT_NE(after.provenance, Provenance::metal) << field.key << ": nothing was measured there";
    if (before.provenance != Provenance::fitted) continue;
    EXPECT_EQ(after.provenance, Provenance::fitted) << field.key;
    EXPECT_EQ(after.value, before.value) << field.key;
    EXPECT_LE(after.low, before.low) << field.key;
    EXPECT_GT(after.high, before.high) << field.key;
  }
}

TEST_F(Calibrations, of_gpus_that_were_measured_have_constants_of_replays_and_others_none) {
  const fs::path scenarios = project_folder() / "scenarios";
  EXPECT_FALSE(read_calibration("wire-only", scenarios).replay);
  EXPECT_FALSE(read_calibration("h100-ib400", scenarios).replay);
  const Calibration metal = read_calibration("h200-nvlink", scenarios);
  ASSERT_TRUE(metal.replay);
  for (const ReplayField& field : replay_fields()) {
    const Constant& constant = *metal.replay.*field.member;
    EXPECT_GT(constant.value, 0) << field.key;
    EXPECT_LE(constant.low, constant.value) << field.key;
    EXPECT_LE(constant.value, constant.high) << field.key;
    EXPECT_NE(constant.provenance, Provenance::judgement) << field.key;
  }
}

TEST_F(Calibrations, faults_in_constants_of_replays_name_line_key_found_and_allowed) {
  EXPECT_EQ(fault_of(constants() + replay()), "");
  EXPECT_EQ(fault_of(constants() + replay("cache")),
            "mine.yaml:17: replay.cache: found nothing; allowed: a value; the key 'cache' is required here");
  EXPECT_EQ(
      fault_of(constants() + replay("cache",
                                    "{value: 5 GB/s, interval: [1 MB, 9 MB], provenance: "
                                    "datasheet, source: x}")),
      "mine.yaml:27: replay.cache.value: found '5 GB/s'; allowed: a size above zero with its unit, such "
      "as 1.7 GB or 2 GiB");
  EXPECT_EQ(fault_of(constants() + replay("cache",
                                          "{value: 5 MB, interval: [6 MB, 9 MB], provenance: "
                                          "datasheet, source: x}")),
            "mine.yaml:27: replay.cache.interval: found an interval that does not hold the value; allowed: "
            "[low, high] with low <= value <= high");
  EXPECT_EQ(fault_of(constants() + replay() + "  cach: 1\n").substr(0, 60),
            "mine.yaml:38: replay.cach: found an unknown key; allowed: ca");
  EXPECT_EQ(fault_of(constants() + "replay: 1\n").substr(0, 53),
            "mine.yaml:17: replay: found '1'; allowed: a mapping w");
}

TEST_F(Calibrations, wire_only_has_no_software_terms) {
  const Calibration wire = wire_only();
  EXPECT_EQ(wire.achieved({"", LinkClass::nic, Bandwidth{50'000'000'001}}), Bandwidth{50'000'000'001});
  EXPECT_EQ(wire.network_operation_time.value, 0);
  EXPECT_TRUE(std::isinf(wire.collective_bandwidth.value));
}

TEST_F(Calibrations, achieved_rate_is_nominal_times_the_efficiency_of_the_class) {
  Calibration calibration = wire_only();
  calibration.nvlink_efficiency.value = 0.82;
  calibration.nic_efficiency.value = 0.96;
  calibration.pcie_efficiency.value = 0.5;
  calibration.uplink_efficiency.value = 0.25;
  EXPECT_EQ(calibration.achieved({"", LinkClass::nvlink, Bandwidth{450'000'000'000}}),
            Bandwidth{369'000'000'000});
  EXPECT_EQ(calibration.achieved({"", LinkClass::nic, Bandwidth{50'000'000'000}}), Bandwidth{48'000'000'000});
  EXPECT_EQ(calibration.achieved({"", LinkClass::pcie, Bandwidth{10}}), Bandwidth{5});
  EXPECT_EQ(calibration.achieved({"", LinkClass::switch_uplink, Bandwidth{1}}), Bandwidth{1});
}

TEST_F(Calibrations, faults_name_line_key_found_and_allowed) {
  EXPECT_EQ(fault_of(constants("nic_efficiency")),
            "mine.yaml:1: nic_efficiency: found nothing; allowed: a value; the key 'nic_efficiency' is "
            "required here");
  EXPECT_EQ(fault_of(constants() + "nic_efficency: 1\n").substr(0, 88),
            "mine.yaml:17: nic_efficency: found an unknown key; allowed: nic_efficiency, pcie_efficie");
  EXPECT_EQ(fault_of(constants("nic_efficiency", "0.9")),
            "mine.yaml:2: nic_efficiency: found '0.9'; allowed: a mapping with keys value, interval, "
            "provenance, source");
  EXPECT_EQ(
      fault_of(constants("nic_efficiency", "{value: 96, interval: [1, 1], provenance: metal, source: x}")),
      "mine.yaml:2: nic_efficiency.value: found '96'; allowed: a ratio above 0 and at most 1");
  EXPECT_EQ(
      fault_of(constants("enqueue_time", "{value: 1, interval: [1 us, 1 us], provenance: metal, source: x}")),
      "mine.yaml:7: enqueue_time.value: found '1'; allowed: a time with its unit, such as 25 us or 0.2 ms");
  EXPECT_EQ(fault_of(constants("memory_bandwidth",
                               "{value: 2 GB, interval: [1 GB/s, 3 GB/s], provenance: metal, source: x}")),
            "mine.yaml:16: memory_bandwidth.value: found '2 GB'; allowed: a rate above zero with its unit, "
            "such as 400 Gbit/s "
            "or 50 GB/s, or unlimited");
}

TEST_F(Calibrations, an_interval_must_hold_the_value) {
  EXPECT_EQ(fault_of(constants("enqueue_time",
                               "{value: 1 us, interval: [2 us, 3 us], provenance: metal, source: x}")),
            "mine.yaml:7: enqueue_time.interval: found an interval that does not hold the value; allowed: "
            "[low, high] "
            "with low <= value <= high");
  EXPECT_EQ(
      fault_of(constants("enqueue_time", "{value: 1 us, interval: [1 us], provenance: metal, source: x}")),
      "mine.yaml:7: enqueue_time.interval: found a list of one item; allowed: [low, high]");
}

TEST_F(Calibrations, provenance_is_one_of_five) {
  EXPECT_EQ(
      fault_of(
          constants("enqueue_time", "{value: 1 us, interval: [1 us, 1 us], provenance: rumour, source: x}")),
      "mine.yaml:7: enqueue_time.provenance: found 'rumour'; allowed: metal, nccl-source, datasheet, fitted, "
      "judgement");
}

TEST_F(Calibrations, a_name_is_sought_beside_the_scenario_and_above_it) {
  write("scenarios/calibrations/mine.yaml", constants());
  EXPECT_EQ(read_calibration("mine", folder_ / "scenarios").name, "mine");
  EXPECT_EQ(read_calibration("mine", folder_ / "scenarios" / "").name, "mine");
  EXPECT_EQ(read_calibration("mine", folder_ / "scenarios" / "cases").name, "mine");
  EXPECT_EQ(read_calibration("mine", folder_).name, "mine");
  EXPECT_EQ(read_calibration("calibrations/mine.yaml", folder_ / "scenarios").name, "mine");
}

TEST_F(Calibrations, a_nearer_file_wins) {
  write("scenarios/calibrations/mine.yaml", constants());
  fs::create_directories(folder_ / "scenarios" / "cases" / "calibrations");
  write("scenarios/cases/calibrations/mine.yaml",
        constants("nic_efficiency", "{value: 0.25, interval: [0, 1], provenance: metal, source: x}"));
  EXPECT_THROW(read_calibration("mine", folder_ / "scenarios" / "cases"),
               InputError);  // a low of 0 is no ratio
  write("scenarios/cases/calibrations/mine.yaml",
        constants("nic_efficiency", "{value: 0.25, interval: [0.1, 1], provenance: metal, source: x}"));
  EXPECT_EQ(read_calibration("mine", folder_ / "scenarios" / "cases").nic_efficiency.value, 0.25);
  EXPECT_EQ(read_calibration("mine", folder_ / "scenarios").nic_efficiency.value, 0.5);
}

TEST_F(Calibrations, installed_files_are_found_through_the_environment) {
  write("scenarios/calibrations/mine.yaml", constants());
  EXPECT_THROW(read_calibration("mine", "/"), InputError);
  ::setenv("ISTHMUS_SCENARIOS", (folder_ / "scenarios").c_str(), 1);
  EXPECT_EQ(read_calibration("mine", "/").name, "mine");
  ::unsetenv("ISTHMUS_SCENARIOS");
}

TEST_F(Calibrations, a_missing_name_lists_those_found_at_the_scenarios_key) {
  write("scenarios/calibrations/mine.yaml", constants());
  try {
    read_calibration("yours", folder_ / "scenarios", {"a.yaml", 7, "calibration"});
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(
        error.what(),
        "a.yaml:7: calibration: found 'yours', which is no calibration; allowed: mine, wire-only; or a path "
        "that ends in .yaml");
  }
}

TEST_F(Calibrations, the_default_needs_no_file) {
  EXPECT_EQ(read_calibration("wire-only", "/"), wire_only());
}

TEST_F(Calibrations, a_missing_path_is_one_line) {
  try {
    read_calibration("none.yaml", folder_);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("none.yaml: found no such file"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace isthmus
