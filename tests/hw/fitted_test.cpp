// Curves made from known constants give these constants back; the file that is written is the one that is
// read; what was not measured stays.

#include "hw/fitted.hpp"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temporary_folder.hpp"

namespace isthmus::hw {
namespace {

constexpr double rate = 360e9, latency = 15e-6, each = 4e-6, host = 0.5e-6;

CurvePoint message_point(const std::string& path, std::uint32_t operations, std::int64_t bytes,
                         double share = 1) {
  CurvePoint point;
  point.path = path;
  point.operations = operations;
  point.bytes = {bytes};
  point.seconds = latency + (operations - 1) * each + operations * static_cast<double>(bytes) / rate / share;
  point.fastest = point.seconds * 0.9;
  point.slowest = point.seconds * 1.2;
  point.host_seconds = operations * host;
  return point;
}

std::vector<CurvePoint> made_curves() {
  std::vector<CurvePoint> curves;
  for (const std::int64_t bytes : {std::int64_t{4096}, std::int64_t{65536}, std::int64_t{1} << 32}) {
    curves.push_back(message_point("nccl", 1, bytes));
    curves.push_back(message_point("nccl-both-ways", 1, bytes, 0.8));
    if (bytes <= 65536) curves.push_back(message_point("nccl", 512, bytes));
  }
  for (const double gigabytes : {1.0, 2.0, 3.0}) {
    CurvePoint copy;
    copy.path = "strided-copy";
    copy.bytes = {1'000'000'000};
    copy.seconds = 1e-3 / gigabytes;
    curves.push_back(copy);
  }
  return curves;
}

TEST(Fitted, gives_back_the_constants_that_the_curves_were_made_from) {
  const Calibration base = wire_only();
  const Calibration result = fitted(made_curves(), base, gigabytes_per_second(450), "a test");
  EXPECT_NEAR(result.nvlink_efficiency.value, 0.8, 0.002);
  EXPECT_NEAR(result.nvlink_efficiency.low, 0.64, 0.002);
  EXPECT_NEAR(result.nvlink_latency.value, latency, 1e-7);
  EXPECT_NEAR(result.enqueue_time.value, host, 1e-9);
  EXPECT_NEAR(result.nvlink_operation_time.value, each, 1e-8);
  EXPECT_NEAR(result.memory_bandwidth.value, 4e12, 1e9);
  EXPECT_EQ(result.memory_bandwidth.provenance, Provenance::metal);
  EXPECT_EQ(result.network_latency, base.network_latency);
}

TEST(Fitted, of_no_curves_is_the_base) {
  EXPECT_EQ(fitted({}, wire_only(), gigabytes_per_second(450), "a test"), wire_only());
}

/// Curves of a machine with these constants; the host takes as long as the constants say.
std::vector<CurvePoint> replay_curves(const ReplayConstants& truth) {
  std::vector<CurvePoint> curves;
  const auto add = [&curves](const std::string& path, std::uint32_t operations, std::int64_t bytes,
                             double seconds, double host_seconds) {
    CurvePoint point;
    point.path = path;
    point.operations = operations;
    point.bytes = {bytes};
    point.seconds = point.fastest = point.slowest = seconds;
    point.host_seconds = host_seconds;
    curves.push_back(point);
  };
  constexpr double mebibyte = 1 << 20;
  for (const std::int64_t bytes :
       {std::int64_t{4096}, std::int64_t{1} << 22, std::int64_t{1} << 28, std::int64_t{1} << 32}) {
    const auto size = static_cast<double>(bytes);
    const double wire = size / truth.exchange_bandwidth.value;
    const double one = truth.message_time.value + (size > mebibyte ? truth.large_message_time.value : 0);
    const double ramp = size > mebibyte ? truth.ramp_time.value / (1 + 16 * mebibyte / size) : 0;
    // The largest is as far from the wire as the next, so that their difference is the rate.
    const double lost = bytes == std::int64_t{1} << 32 ? truth.ramp_time.value / (1 + 1.0 / 16) : ramp;
    for (const std::uint32_t count : {1U, 64U}) {
      const double host_time = truth.exchange_host_time.value + count * truth.message_host_time.value;
      const double group_host = count == 1 ? host_time : count * truth.message_host_time.value;
      const double time = 2e-5 + count * (one + wire) + lost;
      add("nccl", count, bytes, time, group_host);
      add("nccl-both-ways", count, bytes, time / truth.both_ways_share.value, group_host);
    }
  }
  add("no-work", 1, 0, truth.issue_latency.value, 0);
  add("launch", 1, 16, truth.kernel_host_time.value + truth.issue_latency.value + truth.kernel_time.value,
      truth.kernel_host_time.value);
  add("put", 4, 1 << 30, 4.0 * (1 << 30) / truth.put_bandwidth.value, 0);
  add("strided-copy", 1, 1 << 30, 2.0 * (1 << 30) / truth.copy_bandwidth.value, 0);
  add("strided-copy", 1, 1 << 30, (1 << 30) / truth.strided_bandwidth.value, 0);
  curves.back().row = {256};
  return curves;
}

TEST(Fitted, gives_back_the_constants_of_replays_and_keeps_those_that_no_curve_shows) {
  Calibration truth = wire_only(), base = wire_only();
  truth.replay.emplace();
  base.replay.emplace();
  double next = 1;
  for (const ReplayField& field : replay_fields()) {
    const double value = field.unit == "ratio" ? 0.8 : field.unit == "s" ? 1e-6 * next : 1e11 * next;
    next += 1;
    *truth.replay.*field.member = {value, value, value, Provenance::metal, "truth"};
    *base.replay.*field.member = {3 * value, 3 * value, 3 * value, Provenance::fitted, "base"};
  }
  const Calibration result = fitted(replay_curves(*truth.replay), base, gigabytes_per_second(450), "a test");
  int measured = 0;
  for (const ReplayField& field : replay_fields()) {
    const Constant& constant = *result.replay.*field.member;
    if (constant.provenance == Provenance::fitted) {
      EXPECT_EQ(constant, *base.replay.*field.member) << field.key;
      continue;
    }
    ++measured;
    const double value = (*truth.replay.*field.member).value;
    EXPECT_NEAR(constant.value, value, 0.02 * value) << field.key;
    EXPECT_THAT(constant.source, testing::HasSubstr("a test")) << field.key;
  }
  EXPECT_EQ(measured, 13);
}

TEST(Fitted, constants_of_replays_are_written_as_a_file_that_reads_back) {
  const TemporaryFolder folder;
  Calibration written = wire_only();
  written.replay.emplace();
  for (const ReplayField& field : replay_fields()) {
    const double value = field.unit == "ratio" ? 0.8 : field.unit == "s" ? 1e-6 : 1e9;
    *written.replay.*field.member = {value, value, value, Provenance::fitted, "base"};
  }
  folder.write("made.yaml", calibration_text(written, "made by a test"));
  EXPECT_EQ(read_calibration("made.yaml", folder.path()).replay, written.replay);
}

TEST(Fitted, is_written_as_a_file_that_reads_back) {
  const TemporaryFolder folder;
  const Calibration written = fitted(made_curves(), wire_only(), gigabytes_per_second(450), "a test");
  folder.write("made.yaml", calibration_text(written, "made by a test"));
  const Calibration read = read_calibration("made.yaml", folder.path());
  for (const ConstantField& field : calibration_fields()) {
    const Constant &a = written.*field.member, &b = read.*field.member;
    SCOPED_TRACE(field.key);
    if (std::isinf(a.value)) {
      EXPECT_EQ(b.value, a.value);
    } else {
      EXPECT_NEAR(b.value, a.value, 1e-5 * a.value);
    }
    EXPECT_EQ(b.provenance, a.provenance);
    EXPECT_EQ(b.source, a.source);
  }
}

}  // namespace
}  // namespace isthmus::hw
