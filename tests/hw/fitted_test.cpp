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
