#include "model/calibration.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include <fmt/format.h>

#include "model/calibration_file.hpp"
#include "model/quantity.hpp"
#include "model/text.hpp"
#include "model/yaml.hpp"

namespace isthmus {
namespace {

constexpr double unlimited = std::numeric_limits<double>::infinity();
constexpr std::string_view unlimited_word = "unlimited";

constexpr Provenance provenances[] = {Provenance::metal, Provenance::nccl_source, Provenance::datasheet,
                                      Provenance::fitted, Provenance::judgement};

std::string value_form(std::string_view unit) {
  if (unit == "s") return std::string(time_form);
  if (unit == "B") return std::string(size_form);
  if (unit == "B/s") return fmt::format("{}, or {}", rate_form, unlimited_word);
  return "a ratio above 0 and at most 1";
}

double read_value(const YamlValue& value, std::string_view unit) {
  const std::string form = value_form(unit);
  if (unit == "s") {
    const std::optional<Duration> time = parse_duration(value.text(form));
    if (!time) value.refuse(form);
    return static_cast<double>(time->value) / static_cast<double>(picoseconds_per_second);
  }
  if (unit == "B") {
    const std::optional<Bytes> size = parse_bytes(value.text(form));
    if (!size) value.refuse(form);
    return static_cast<double>(size->value);
  }
  if (unit == "B/s") {
    const std::string text = value.text(form);
    if (text == unlimited_word) return unlimited;
    const std::optional<Bandwidth> rate = parse_bandwidth(text);
    if (!rate) value.refuse(form);
    return static_cast<double>(rate->value);
  }
  const double ratio = value.number(form);
  if (ratio <= 0 || ratio > 1) value.refuse(form);
  return ratio;
}

Provenance read_provenance(const YamlValue& value) {
  std::vector<std::string_view> names;
  for (const Provenance provenance : provenances) names.push_back(to_string(provenance));
  const std::string form = fmt::format("{}", fmt::join(names, ", "));
  const std::string text = value.text(form);
  for (const Provenance provenance : provenances) {
    if (to_string(provenance) == text) return provenance;
  }
  value.refuse(form);
}

/// Where calibrations may stand, nearest first: beside the scenario and in each folder above it, then
/// installed.
std::vector<std::filesystem::path> calibration_folders(const std::filesystem::path& scenario_directory) {
  std::vector<std::filesystem::path> folders;
  std::error_code code;
  const std::filesystem::path here = scenario_directory.empty() ? "." : scenario_directory;
  std::filesystem::path folder = std::filesystem::absolute(here, code).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();  // "a/b/" is a/b
  for (bool at_top = false; !at_top;) {
    folders.push_back(folder / "calibrations");
    folders.push_back(folder / "scenarios" / "calibrations");
    at_top = !folder.has_relative_path();
    folder = folder.parent_path();
  }
  if (const char* installed = std::getenv("ISTHMUS_SCENARIOS")) {
    folders.push_back(std::filesystem::path(installed) / "calibrations");
  }
  return folders;
}

/// The built-in name and those found in these folders, sorted, each once.
std::vector<std::string> known_names(const std::vector<std::filesystem::path>& folders) {
  std::vector<std::string> names{std::string(built_in_calibration)};
  for (const std::filesystem::path& folder : folders) {
    std::error_code code;
    for (std::filesystem::directory_iterator at(folder, code), end; !code && at != end; at.increment(code)) {
      if (at->path().extension() == ".yaml") names.push_back(printable(at->path().stem().string()));
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

ReplayConstants read_replay(const YamlValue& entry) {
  std::vector<std::string_view> keys;
  for (const ReplayField& field : replay_fields()) keys.push_back(field.key);
  entry.allow_only(keys);
  ReplayConstants constants;
  for (const ReplayField& field : replay_fields())
    constants.*field.member = read_constant(entry.at(field.key), field.unit);
  return constants;
}

Calibration read_file(const std::filesystem::path& file) {
  const YamlDocument document(read_text_file(file), file.string());
  const YamlValue root = document.root();
  std::vector<std::string_view> keys;
  for (const ConstantField& field : calibration_fields()) keys.push_back(field.key);
  keys.emplace_back("replay");
  keys.push_back(membership_key);
  root.allow_only(keys);
  Calibration calibration;
  calibration.name = file.stem().string();
  for (const ConstantField& field : calibration_fields()) {
    calibration.*field.member = read_constant(root.at(field.key), field.unit);
  }
  if (const std::optional<YamlValue> replay = root.find("replay")) calibration.replay = read_replay(*replay);
  return calibration;
}

}  // namespace

Constant read_constant(const YamlValue& entry, std::string_view unit) {
  entry.allow_only({"value", "interval", "provenance", "source"});
  Constant constant;
  constant.value = read_value(entry.at("value"), unit);
  const YamlValue interval = entry.at("interval");
  const std::vector<YamlValue> ends = interval.items(2);
  if (ends.size() != 2) interval.refuse("a list of one item", "[low, high]");
  constant.low = read_value(ends[0], unit);
  constant.high = read_value(ends[1], unit);
  if (constant.low > constant.value || constant.value > constant.high) {
    interval.refuse("an interval that does not hold the value", "[low, high] with low <= value <= high");
  }
  constant.provenance = read_provenance(entry.at("provenance"));
  constant.source = entry.at("source").text("one line that says where the number comes from");
  return constant;
}

std::optional<std::filesystem::path> find_calibration(std::string_view name,
                                                      const std::filesystem::path& scenario_directory) {
  if (name.ends_with(".yaml")) return scenario_directory / std::filesystem::path(name);
  if (name.empty() || name.find_first_of("/\\") != std::string_view::npos) return std::nullopt;
  for (const std::filesystem::path& folder : calibration_folders(scenario_directory)) {
    const std::filesystem::path file = folder / fmt::format("{}.yaml", name);
    std::error_code code;
    if (std::filesystem::exists(file, code)) return file;
  }
  return std::nullopt;
}

std::string_view to_string(Provenance provenance) {
  switch (provenance) {
    case Provenance::metal: return "metal";
    case Provenance::nccl_source: return "nccl-source";
    case Provenance::datasheet: return "datasheet";
    case Provenance::fitted: return "fitted";
    case Provenance::judgement: return "judgement";
  }
  return "";
}

Bandwidth Calibration::achieved(const Link& link) const {
  const auto efficiency = [&] {
    switch (link.link_class) {
      case LinkClass::nvlink: return nvlink_efficiency.value;
      case LinkClass::pcie: return pcie_efficiency.value;
      case LinkClass::nic: return nic_efficiency.value;
      case LinkClass::switch_uplink: return uplink_efficiency.value;
    }
    return 1.0;
  }();
  if (efficiency >= 1) return {std::max<std::int64_t>(link.nominal.value, 1)};
  const double rate = static_cast<double>(link.nominal.value) * efficiency;
  return {std::max<std::int64_t>(std::llround(rate), 1)};
}

const std::vector<ConstantField>& calibration_fields() {
  static const std::vector<ConstantField> fields{
      {"nvlink_efficiency", "ratio", &Calibration::nvlink_efficiency},
      {"nic_efficiency", "ratio", &Calibration::nic_efficiency},
      {"pcie_efficiency", "ratio", &Calibration::pcie_efficiency},
      {"uplink_efficiency", "ratio", &Calibration::uplink_efficiency},
      {"nvlink_latency", "s", &Calibration::nvlink_latency},
      {"network_latency", "s", &Calibration::network_latency},
      {"enqueue_time", "s", &Calibration::enqueue_time},
      {"nvlink_operation_time", "s", &Calibration::nvlink_operation_time},
      {"network_operation_time", "s", &Calibration::network_operation_time},
      {"collective_bandwidth", "B/s", &Calibration::collective_bandwidth},
      {"channel_bandwidth", "B/s", &Calibration::channel_bandwidth},
      {"python_call_time", "s", &Calibration::python_call_time},
      {"native_call_time", "s", &Calibration::native_call_time},
      {"export_time_per_tensor", "s", &Calibration::export_time_per_tensor},
      {"load_time_per_tensor", "s", &Calibration::load_time_per_tensor},
      {"memory_bandwidth", "B/s", &Calibration::memory_bandwidth},
  };
  return fields;
}

const std::vector<ReplayField>& replay_fields() {
  using R = ReplayConstants;
  static const std::vector<ReplayField> fields{
      {"exchange_bandwidth", "B/s", &R::exchange_bandwidth},
      {"both_ways_share", "ratio", &R::both_ways_share},
      {"put_bandwidth", "B/s", &R::put_bandwidth},
      {"message_time", "s", &R::message_time},
      {"large_message_time", "s", &R::large_message_time},
      {"ramp_time", "s", &R::ramp_time},
      {"copy_bandwidth", "B/s", &R::copy_bandwidth},
      {"contiguous_bandwidth", "B/s", &R::contiguous_bandwidth},
      {"strided_bandwidth", "B/s", &R::strided_bandwidth},
      {"cache", "B", &R::cache},
      {"kernel_time", "s", &R::kernel_time},
      {"issue_latency", "s", &R::issue_latency},
      {"dispatch_time", "s", &R::dispatch_time},
      {"exchange_latency", "s", &R::exchange_latency},
      {"turn_time", "s", &R::turn_time},
      {"kernel_host_time", "s", &R::kernel_host_time},
      {"exchange_host_time", "s", &R::exchange_host_time},
      {"message_host_time", "s", &R::message_host_time},
      {"wait_host_time", "s", &R::wait_host_time},
      {"record_host_time", "s", &R::record_host_time},
  };
  return fields;
}

Calibration read_calibration(std::string_view name, const std::filesystem::path& scenario_directory,
                             const Location& where) {
  if (const auto file = find_calibration(name, scenario_directory)) return read_file(*file);
  if (name == built_in_calibration) return wire_only();
  const std::vector<std::string> known = known_names(calibration_folders(scenario_directory));
  throw InputError(where, fmt::format("'{}', which is no calibration", printable(name)),
                   fmt::format("{}; or a path that ends in .yaml", fmt::join(known, ", ")));
}

Calibration wire_only() {
  Calibration calibration;
  calibration.name = built_in_calibration;
  for (const ConstantField& field : calibration_fields()) {
    const double value = field.unit == "ratio" ? 1 : field.unit == "s" ? 0 : unlimited;
    calibration.*field.member = {value, value, value, Provenance::judgement, "by definition"};
  }
  return calibration;
}

}  // namespace isthmus
