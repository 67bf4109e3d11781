// isthmus calibrate.

#include <cstdio>
#include <filesystem>
#include <optional>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "hw/fitted.hpp"
#include "hw/microbench.hpp"
#include "model/calibration.hpp"
#include "model/quantity.hpp"
#include "model/text.hpp"

namespace isthmus::cli {
namespace {

std::string json_line(const hw::CurvePoint& point) {
  return nlohmann::ordered_json{{"path", point.path},
                                {"operations", point.operations},
                                {"bytes", point.bytes.value},
                                {"row_bytes", point.row.value},
                                {"blocks", point.blocks},
                                {"seconds", point.seconds},
                                {"fastest_seconds", point.fastest},
                                {"slowest_seconds", point.slowest},
                                {"host_seconds", point.host_seconds},
                                {"bytes_per_second", point.bytes_per_second()}}
      .dump();
}

std::string table_line(const hw::CurvePoint& point) {
  return fmt::format("{:<20} {:>6} {:>12} {:>8} {:>6} {:>12.2f} {:>12.2f} {:>12.2f} {:>10.2f}", point.path,
                     point.operations, point.bytes.value, point.row.value, point.blocks, point.seconds * 1e6,
                     point.slowest * 1e6, point.host_seconds * 1e6, point.bytes_per_second() * 1e-9);
}

/// What goes into the calibration file beside the curves; read before anything is measured.
struct CalibrationFrame {
  Calibration base;
  Bandwidth nominal;
};

CalibrationFrame read_frame(const CalibrateOptions& options) {
  if (options.output.empty()) return {};
  const bool network = options.backend == "mpi";
  const std::string& text = network ? options.nic : options.nvlink;
  const std::optional<Bandwidth> nominal = parse_bandwidth(text);
  if (!nominal)
    throw InputError({network ? "--nic" : "--nvlink", 0, ""}, fmt::format("'{}'", printable(text)),
                     rate_form);
  return {read_calibration(options.base, std::filesystem::current_path(), {"--base", 0, ""}), *nominal};
}

/// Prints each point as it comes, unless the calibration itself goes to standard output.
std::vector<hw::CurvePoint> measure(const CalibrateOptions& options, hw::CurveDevice& device) {
  std::vector<hw::CurvePoint> points;
  const auto visit = [&](const hw::CurvePoint& point) {
    points.push_back(point);
    if (options.output == "-") return;
    if (points.size() == 1 && !options.json) {
      fmt::print("{:<20} {:>6} {:>12} {:>8} {:>6} {:>12} {:>12} {:>12} {:>10}\n", "path", "count", "bytes",
                 "row", "blocks", "median us", "slowest us", "host us", "GB/s");
    }
    fmt::print("{}\n", options.json ? json_line(point) : table_line(point));
    std::fflush(stdout);
  };
  device = options.backend == "mpi" ? hw::measure_network_curves(visit) : hw::measure_curves(visit);
  return points;
}

}  // namespace

int calibrate(const CalibrateOptions& options) {
  if (options.backend != "nccl" && options.backend != "mpi")
    throw InputError({"--backend", 0, ""}, fmt::format("'{}'", printable(options.backend)), "nccl, mpi");
  const CalibrationFrame frame = read_frame(options);
  const bool quiet = options.output == "-";
  hw::CurveDevice device;
  const std::vector<hw::CurvePoint> points = measure(options, device);
  if (!device.reports) return 0;
  if (!quiet && options.json)
    fmt::print("{}\n", nlohmann::ordered_json{{"device", device.description}}.dump());
  if (!quiet && !options.json) fmt::print("{}\n", device.description);
  if (options.output.empty()) return 0;
  const std::string source = fmt::format("isthmus calibrate, {}, {}", device.description, today());
  write_output(options.output, hw::calibration_text(hw::fitted(points, frame.base, frame.nominal, source),
                                                    fmt::format("{}; what it did not measure is that of {}",
                                                                source, options.base)));
  return 0;
}

}  // namespace isthmus::cli
