// isthmus sweep: enumerates a space of layouts, predicts what may matter, ranks.

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "cli/scenario_input.hpp"
#include "hw/job_team.hpp"
#include "report/sweep_crew.hpp"
#include "report/sweep_documents.hpp"
#include "report/sweep_journal.hpp"

namespace isthmus::cli {
namespace {

/// A line on the terminal that is drawn over; nothing where standard error is none.
class ProgressBar {
 public:
  explicit ProgressBar(std::size_t all) : all_(all), shown_(isatty(STDERR_FILENO) == 1 && all > 0) {}
  ~ProgressBar() { clear(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void clear() {
    if (std::exchange(drawn_, false)) fmt::print(stderr, "\r\033[K");
  }
  void show(std::size_t decided, std::size_t computed) {
    const auto now = std::chrono::steady_clock::now();
    if (!shown_ || (drawn_ && now - last_ < std::chrono::milliseconds(200))) return;
    constexpr std::size_t width = 40;
    const std::size_t full = width * decided / all_;
    fmt::print(stderr, "\r[{:#<{}}{:.<{}}] {} of {} candidates decided, {} predicted now\033[K", "", full, "",
               width - full, decided, all_, computed);
    std::fflush(stderr);
    drawn_ = true;
    last_ = now;
  }

 private:
  std::size_t all_;
  bool shown_, drawn_ = false;
  std::chrono::steady_clock::time_point last_{};
};

report::SweepResult run(const SweepOptions& options, const SweepSpace& space,
                        const report::SweepCandidates& candidates, report::SweepCrew& crew) {
  std::unique_ptr<report::FileJournal> journal;
  if (options.resume) journal = std::make_unique<report::FileJournal>(*options.resume, candidates);
  ProgressBar bar(candidates.list.size());
  report::SweepSettings settings;
  settings.top = options.top;
  settings.prune = options.prune;
  settings.journal = journal.get();
  settings.progress = [&bar](std::size_t decided, std::size_t computed) { bar.show(decided, computed); };
  return report::run_sweep(space, candidates, settings, crew);
}

}  // namespace

int sweep(const SweepOptions& options) {
  const SweepSpace space = read_sweep_space(options.space, parse_overrides(options.overrides));
  const std::vector<std::string> policies = chosen_policies(
      space.policies, space.generate.quantize_mxfp8 && space.refit.quantise_at == QuantiseAt::source);
  const report::SweepCandidates candidates = report::sweep_candidates(space, policies);
  std::unique_ptr<hw::JobTeam> team;
  // The launcher says how many processes a machine has; one thread each, unless told otherwise.
  const std::size_t threads = options.threads.value_or(hw::has_company() ? 1 : report::all_cores());
  if (hw::has_company()) {
    team = hw::join_job_team(candidates.fingerprint, threads);
    if (!team->leads()) {
      report::serve_sweep(*team, space, candidates);
      return 0;
    }
  }
  std::unique_ptr<report::SweepCrew> crew = std::make_unique<report::ThreadCrew>(threads);
  if (team) crew = std::make_unique<report::TeamCrew>(*team, threads);
  const report::SweepResult result = run(options, space, candidates, *crew);
  if (team) team->dismiss();
  const report::SweepView view{space, candidates, result};
  print(options.json  ? report::sweep_json_lines(view)
        : options.csv ? report::sweep_csv(view)
                      : report::sweep_table(view));
  return 0;
}

}  // namespace isthmus::cli
