#include "report/measured.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <exception>
#include <future>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "hw/program.hpp"
#include "model/error.hpp"
#include "model/refit_scale.hpp"
#include "model/scenario.hpp"
#include "planner/policy.hpp"
#include "report/gpu_prediction.hpp"

namespace isthmus::report {
namespace {

constexpr std::int64_t large_bytes = 16 << 20;
constexpr std::array<std::string_view, 2> held_out_policies{"golden", "m2n-uniform"};
constexpr std::array<std::string_view, 3> held_out_scenarios{"uneven-3-to-5", "columns-to-rows-8",
                                                             "qwen3-4b-h100-native-pp4dp2-tp4dp2"};

std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

std::filesystem::path scenario_file(const std::string& scenario, const std::filesystem::path& record) {
  std::error_code code;
  if (std::filesystem::exists(scenario, code)) return scenario;
  std::filesystem::path folder = std::filesystem::absolute(record, code).lexically_normal();
  while (folder.has_relative_path()) {
    folder = folder.parent_path();
    if (std::filesystem::exists(folder / scenario, code)) return folder / scenario;
  }
  return scenario;  // the reader says that it is not there
}

Override override_of(const std::string& setting) {
  const std::size_t equals = std::min(setting.find('='), setting.size());
  return {setting.substr(0, equals), setting.substr(std::min(equals + 1, setting.size()))};
}

/// Rows of one refit.
using RefitKey = std::tuple<std::string, std::vector<std::string>, double>;

void replan_row(const Refit& refit, Replanned& result) {
  const Policy* const policy = find_policy(result.row.policy);
  if (result.row.backend != "nccl" || result.row.gpus < 1) {
    result.refused = "not a replay on GPUs";
  } else if (policy == nullptr) {
    result.refused = "no such policy";
  } else {
    const PlanResult made = policy->make(refit);
    if (const Refused* refused = std::get_if<Refused>(&made)) {
      result.refused = refused->reason;
    } else {
      result.schedule = hw::make_schedule(hw::Program(refit, std::get<Plan>(made)),
                                          static_cast<std::uint32_t>(result.row.gpus));
    }
  }
}

void replan_refit(const std::filesystem::path& file, const std::vector<Replanned*>& rows) {
  const MeasuredRow& first = rows.front()->row;
  std::vector<Override> overrides;
  for (const std::string& setting : first.overrides) overrides.push_back(override_of(setting));
  const Scenario scenario = read_scenario(scenario_file(first.scenario, file), overrides);
  const ScaledRefit scaled = scale_refit(resolve(scenario), first.scale);
  for (Replanned* row : rows) replan_row(scaled.refit, *row);
}

bool is_changed(const Replanned& row) {
  return static_cast<std::int64_t>(row.schedule->launches.size()) != row.row.launches ||
         row.schedule->crossing_bytes != row.row.bytes.value;
}

}  // namespace

std::string MeasuredRow::name() const { return std::filesystem::path(scenario).stem().string(); }

bool is_held_out(const MeasuredRow& row) {
  if (row.graph) return true;
  const auto named = [](const auto& names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (named(held_out_policies, row.policy) || named(held_out_scenarios, row.name())) return true;
  return hash_of(fmt::format("{} {} {}", row.name(), row.scale, row.policy)) % 2 != 0;
}

std::vector<Replanned> replan(const std::filesystem::path& file, unsigned threads) {
  std::vector<Replanned> result;
  for (MeasuredRow& row : read_records(file)) result.push_back({std::move(row), "", std::nullopt});
  std::map<RefitKey, std::vector<Replanned*>> groups;
  for (Replanned& each : result)
    groups[{each.row.scenario, each.row.overrides, each.row.scale}].push_back(&each);
  std::vector<std::vector<Replanned*>> work;
  for (auto& [key, rows] : groups) work.push_back(std::move(rows));
  std::vector<std::exception_ptr> failures(work.size());
  std::atomic<std::size_t> next{0};
  const auto run = [&] {
    for (std::size_t i = next++; i < work.size(); i = next++) {
      try {
        replan_refit(file, work[i]);
      } catch (...) {
        failures[i] = std::current_exception();
      }
    }
  };
  std::vector<std::future<void>> workers;
  for (unsigned i = 0; i < std::max(threads, 1U); ++i) workers.push_back(std::async(std::launch::async, run));
  for (std::future<void>& worker : workers) worker.get();
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
  return result;
}

std::optional<double> MeasuredPrediction::error() const {
  if (!predicted || row.median <= 0) return std::nullopt;
  return *predicted / row.median - 1;
}

MeasuredBoard predict_measured(const std::vector<Replanned>& rows, const Calibration& calibration,
                               const ReplayConstants& constants) {
  MeasuredBoard board{calibration.name, {}};
  const ReplayConstants in_graphs = without_host(constants);
  for (const Replanned& each : rows) {
    MeasuredPrediction prediction{each.row, each.refused, false, std::nullopt};
    if (each.schedule) {
      prediction.changed = is_changed(each);
      const ReplayConstants& used = each.row.graph ? in_graphs : constants;
      prediction.predicted = seconds(predict_on_gpus(*each.schedule, used).end);
    }
    board.rows.push_back(std::move(prediction));
  }
  return board;
}

MeasuredBoard predict_measured(const std::filesystem::path& file, std::string_view calibration) {
  std::error_code code;
  const std::filesystem::path folder = std::filesystem::absolute(file, code).parent_path();
  const Location where{"--calibration", 0, ""};
  const Calibration chosen = read_calibration(calibration, folder, where);
  const ReplayConstants& constants = replay_constants(chosen, where);
  return predict_measured(replan(file), chosen, constants);
}

MeasuredSummary summarise(const MeasuredBoard& board, bool large, bool held_out) {
  std::vector<double> errors;
  for (const MeasuredPrediction& row : board.rows) {
    const bool chosen = (row.row.bytes.value >= large_bytes) == large && is_held_out(row.row) == held_out &&
                        row.row.byte_exact && !row.changed;
    if (chosen && row.error()) errors.push_back(std::abs(*row.error()));
  }
  MeasuredSummary summary;
  summary.rows = errors.size();
  if (errors.empty()) return summary;
  std::sort(errors.begin(), errors.end());
  const auto rank = [&errors](double share) {
    const double position = std::ceil(share * static_cast<double>(errors.size()));
    return errors[std::max<std::size_t>(1, static_cast<std::size_t>(position)) - 1];
  };
  summary.median = rank(0.5);
  summary.percentile_95 = rank(0.95);
  summary.largest = errors.back();
  return summary;
}

}  // namespace isthmus::report
