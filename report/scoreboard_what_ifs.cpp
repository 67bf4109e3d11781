// What would help a row of the scoreboard most: single changes of its refit, each planned, proven and
// simulated.
// Tried are settings, faster links, placements, resharding in place of another policy, and for blind rows,
// whose layout is an assumption, other engines of generation.
// What two rows would try alike is predicted once.

#include <algorithm>
#include <map>
#include <tuple>

#include "model/refit.hpp"
#include "report/scoreboard.hpp"
#include "report/sweep_crew.hpp"

namespace isthmus::report {
namespace {

bool worth_trying(const ChangeRow& change) {
  if (change.kind == ChangeKind::policy) return change.policy == "striped" || change.policy == "balanced";
  return change.kind != ChangeKind::fault;
}

struct WhatIfJob {
  std::filesystem::path file;
  ChangeRow change;
  int gpus = 0;
};

/// Every change once, whichever rows ask for it.
class WhatIfs {
 public:
  explicit WhatIfs(const std::filesystem::path& folder) : folder_(folder) {}

  void plan(ScoreRow& row) {
    const Scenario scenario = read_scenario(folder_ / (row.scenario + ".yaml"));
    const Refit refit = resolve(scenario);
    const std::string& policy = row.published.policy;
    std::vector<ChangeRow> changes = single_changes(scenario, refit.fabric, policy);
    std::erase_if(changes, [](const ChangeRow& change) { return !worth_trying(change); });
    if (row.published.blind()) {
      for (ChangeRow& change : layout_changes(scenario, policy)) changes.push_back(std::move(change));
    }
    for (ChangeRow& change : changes) {
      const auto [at, fresh] =
          numbers_.try_emplace({row.scenario, change.policy, change.settings}, jobs_.size());
      if (fresh) jobs_.push_back({scenario.file, change, static_cast<int>(refit.fabric.gpu_count())});
      wanted_.push_back({&row, at->second, std::move(change)});
    }
  }

  void run(unsigned threads) {
    // Large ones first, so that none runs alone at the end.
    std::vector<WhatIfJob*> order;
    for (WhatIfJob& job : jobs_) order.push_back(&job);
    std::stable_sort(order.begin(), order.end(),
                     [](const WhatIfJob* a, const WhatIfJob* b) { return a->gpus > b->gpus; });
    run_jobs(order.size(), threads, [&](std::size_t number) {
      WhatIfJob& job = *order[number];
      predict_change([&](const std::vector<Override>& settings) { return read_scenario(job.file, settings); },
                     job.change);
    });
  }

  void hand_out() {
    for (Wanted& each : wanted_) {
      each.change.seconds = jobs_[each.job].change.seconds;
      each.change.refused = jobs_[each.job].change.refused;
      each.row->what_ifs.push_back(std::move(each.change));
    }
  }

 private:
  struct Wanted {
    ScoreRow* row;
    std::size_t job;
    ChangeRow change;  // in the words of this row
  };

  std::filesystem::path folder_;
  std::vector<WhatIfJob> jobs_;
  std::vector<Wanted> wanted_;
  std::map<std::tuple<std::string, std::string, std::vector<Override>>, std::size_t> numbers_;
};

}  // namespace

void predict_what_ifs(Scoreboard& scoreboard, const std::filesystem::path& folder, unsigned threads) {
  WhatIfs what_ifs(folder);
  for (ScoreRow& row : scoreboard.rows)
    if (row.prediction.predicted()) what_ifs.plan(row);
  what_ifs.run(threads);
  what_ifs.hand_out();
  for (ScoreRow& row : scoreboard.rows) {
    std::stable_sort(row.what_ifs.begin(), row.what_ifs.end(), [](const ChangeRow& a, const ChangeRow& b) {
      if (a.refused.empty() != b.refused.empty()) return a.refused.empty();
      return a.refused.empty() && a.seconds < b.seconds;
    });
  }
}

bool has_what_ifs(const Scoreboard& scoreboard) {
  return std::any_of(scoreboard.rows.begin(), scoreboard.rows.end(),
                     [](const ScoreRow& row) { return !row.what_ifs.empty(); });
}

const ChangeRow* most_helpful(const ScoreRow& row) {
  constexpr double least_gain = 0.01;
  for (const ChangeRow& change : row.what_ifs) {
    if (!change.refused.empty() || change.seconds > (1 - least_gain) * row.prediction.seconds) break;
    if (change.kind != ChangeKind::layout) return &change;
  }
  return nullptr;
}

}  // namespace isthmus::report
