// Crews hand out each job once and take each line once, and nobody hangs when somebody fails.

#include "report/sweep_crew.hpp"

#include <atomic>
#include <mutex>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "model/error.hpp"

namespace isthmus::report {
namespace {

class CountingDesk : public SharedDesk {
 public:
  explicit CountingDesk(std::uint32_t jobs, std::uint32_t bad = ~0U) : jobs_(jobs), bad_(bad) {}
  SweepJob kind() const override { return SweepJob::detail; }
  std::optional<std::uint32_t> take() override {
    const std::uint32_t next = next_++;
    return next < jobs_ ? std::optional(next) : std::nullopt;
  }
  std::string compute(std::uint32_t candidate) const override {
    if (candidate == bad_) throw SystemError("no memory");
    return fmt::format("line {}", candidate);
  }
  void accept(std::uint32_t candidate, const std::string& line) override {
    const std::lock_guard lock(mutex_);
    EXPECT_EQ(line, fmt::format("line {}", candidate));
    EXPECT_TRUE(accepted_.insert(candidate).second) << candidate;
  }
  std::size_t accepted() const { return accepted_.size(); }

 private:
  std::uint32_t jobs_, bad_;
  std::atomic<std::uint32_t> next_ = 0;
  std::mutex mutex_;
  std::set<std::uint32_t> accepted_;
};

/// Processes that are none: they answer at once, at most so many jobs, then the launcher wants an end.
class AnsweringTeam : public hw::JobTeam {
 public:
  explicit AnsweringTeam(int most = 1'000'000) : most_(most) {}
  bool leads() const override { return true; }
  std::size_t size() const override { return 2; }
  void lead(const Take& take, const Accept& accept) override {
    while (const std::optional<std::uint64_t> job = take()) {
      if (most_-- == 0) throw SystemError("ended by the launcher");
      EXPECT_EQ(*job >> 32U, 1U) << "a detail";
      accept(*job, fmt::format("line {}", static_cast<std::uint32_t>(*job)));
    }
  }
  void dismiss() override {}
  void serve(const Compute& compute) override { (void)compute; }

 private:
  int most_;
};

TEST(SweepCrews, do_each_job_once) {
  for (const std::uint32_t jobs : {0U, 1U, 1000U}) {
    CountingDesk by_threads(jobs), by_team(jobs), alone(jobs);
    ThreadCrew(3).share(by_threads);
    EXPECT_EQ(by_threads.accepted(), jobs);
    AnsweringTeam team;
    TeamCrew crew(team, 2);
    crew.share(by_team);
    EXPECT_EQ(by_team.accepted(), jobs);
    crew.run(alone);
    EXPECT_EQ(alone.accepted(), jobs);
  }
}

TEST(SweepCrews, raise_what_a_team_raises) {
  CountingDesk desk(1'000'000'000);
  AnsweringTeam team(3);
  TeamCrew crew(team, 2);
  EXPECT_THROW(crew.share(desk), SystemError);
}

TEST(SweepCrews, raise_what_a_job_raises) {
  CountingDesk desk(1'000'000'000, 2);
  EXPECT_THROW(ThreadCrew(2).share(desk), SystemError);
}

}  // namespace
}  // namespace isthmus::report
