// Fits the fitted constants of a calibration's `replay` to measured replays that are not held out, and prints
// them. It moves one constant at a time by a factor, as long as that helps, then by smaller factors; the loss
// is the mean of |log(predicted / median)|, at most 0.5 each, rows of 16 MiB and more counting 1.5 times.
// Run: build/release/bench/fit_replay [CALIBRATION [FILE.jsonl]]

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "model/error.hpp"
#include "report/gpu_prediction.hpp"
#include "report/measured.hpp"

namespace {

using namespace isthmus;

double loss_of(const std::vector<report::Replanned>& rows, const ReplayConstants& constants) {
  double sum = 0;
  for (const report::Replanned& each : rows) {
    const double predicted = seconds(report::predict_on_gpus(*each.schedule, constants).end);
    const double off = std::min(0.5, std::abs(std::log(predicted / each.row.median)));
    sum += off * (each.row.bytes.value >= 16 << 20 ? 1.5 : 1);
  }
  return sum / static_cast<double>(rows.size());
}

void fit(const std::vector<report::Replanned>& rows, ReplayConstants& constants) {
  double best = loss_of(rows, constants);
  for (double step = 1.25; step > 1.02; step = 1 + (step - 1) * 0.6) {
    for (const ReplayField& field : replay_fields()) {
      if ((constants.*field.member).provenance != Provenance::fitted) continue;
      for (const double factor : {step, 1 / step}) {
        while (true) {
          ReplayConstants tried = constants;
          (tried.*field.member).value *= factor;
          const double loss = loss_of(rows, tried);
          if (loss > best - 1e-5) break;
          best = loss;
          constants = tried;
        }
      }
    }
  }
  fmt::print("loss {:.4f} over {} rows\n", best, rows.size());
}

}  // namespace

int main(int argument_count, char** arguments) {
  try {
    const std::filesystem::path scenarios = std::filesystem::path(ISTHMUS_SOURCE_DIR) / "scenarios";
    const std::string name = argument_count > 1 ? arguments[1] : "h200-nvlink";
    const std::filesystem::path file =
        argument_count > 2 ? std::filesystem::path(arguments[2]) : scenarios / "measured/h200-x2.jsonl";
    const Calibration calibration = read_calibration(name, scenarios);
    ReplayConstants constants = report::replay_constants(calibration, {"calibration", 0, ""});
    std::vector<report::Replanned> all = report::replan(file), rows;
    for (const report::Replanned& each : all)
      if (each.schedule && each.row.byte_exact && !report::is_held_out(each.row)) rows.push_back(each);
    fit(rows, constants);
    for (const ReplayField& field : replay_fields()) {
      const Constant& constant = constants.*field.member;
      if (constant.provenance == Provenance::fitted) fmt::print("{}: {:.4g}\n", field.key, constant.value);
    }
    fmt::print("{}", report::to_table(report::predict_measured(all, calibration, constants)));
    return 0;
  } catch (const InputError& error) {
    fmt::print(stderr, "fit_replay: {}\n", error.what());
    return 2;
  }
}
