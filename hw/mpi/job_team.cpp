#include "hw/mpi/job_team.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "model/error.hpp"

namespace isthmus::hw {
namespace {

/// Of the messages of a team; those of MpiWorld::exchange have another.
constexpr int team_tag = 1;
/// In place of a job: the team may go.
constexpr std::uint64_t no_job = ~std::uint64_t{0};
/// Processes may begin minutes apart, and enumerate for as long.
constexpr std::chrono::minutes patience{10};

SystemFault team_fault() { return {"job team", "the launcher wants an end"}; }

/// Threads that compute what they find in a queue.
class TeamThreads {
 public:
  TeamThreads(const JobTeam::Compute& compute, std::size_t threads) : compute_(compute) {
    for (std::size_t i = 0; i < threads; ++i) threads_.emplace_back(&TeamThreads::work, this);
  }
  ~TeamThreads() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    wake_.notify_all();
    for (std::thread& each : threads_) each.join();
  }
  TeamThreads(const TeamThreads&) = delete;
  TeamThreads& operator=(const TeamThreads&) = delete;

  void add(std::uint64_t job) {
    {
      const std::lock_guard lock(mutex_);
      jobs_.push_back(job);
    }
    wake_.notify_one();
  }
  /// What is ready; raises what a job raised.
  std::vector<std::pair<std::uint64_t, std::string>> take_ready() {
    const std::lock_guard lock(mutex_);
    if (raised_) std::rethrow_exception(raised_);
    return std::exchange(ready_, {});
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [this] { return over_ || !jobs_.empty(); });
      if (over_) return;
      const std::uint64_t job = jobs_.front();
      jobs_.pop_front();
      lock.unlock();
      std::string result;
      std::exception_ptr raised;
      try {
        result = compute_(job);
      } catch (...) {
        raised = std::current_exception();
      }
      lock.lock();
      if (raised) raised_ = raised;
      ready_.emplace_back(job, std::move(result));
    }
  }

  const JobTeam::Compute& compute_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool over_ = false;
  std::deque<std::uint64_t> jobs_;
  std::vector<std::pair<std::uint64_t, std::string>> ready_;
  std::exception_ptr raised_;
  std::vector<std::thread> threads_;
};

std::vector<std::byte> bytes_of(std::uint64_t word, const std::string& text) {
  std::vector<std::byte> bytes(sizeof(word) + text.size());
  std::memcpy(bytes.data(), &word, sizeof(word));
  if (!text.empty()) std::memcpy(bytes.data() + sizeof(word), text.data(), text.size());
  return bytes;
}

}  // namespace

MpiJobTeam::MpiJobTeam(const std::string& purpose, std::size_t threads)
    : world_(patience), threads_(std::max<std::size_t>(1, threads)) {
  const auto who = [](std::uint32_t process) {
    return SystemFault{"job team", fmt::format("process {} did not come", process)};
  };
  for (const std::vector<std::byte>& bytes : world_.exchange(bytes_of(threads_, purpose), who)) {
    std::uint64_t count = 0;
    std::memcpy(&count, bytes.data(), sizeof(count));
    if (bytes != bytes_of(count, purpose)) {
      throw SystemError(
          fmt::format("process {} of the job does something else: all need the same files, "
                      "settings and program",
                      threads_of_.size()));
    }
    threads_of_.push_back(count);
  }
}

bool MpiJobTeam::receive(Message& message) {
  int there = 0, size = 0;
  MPI_Status status;
  world_.beat();
  world_.require(MPI_Iprobe(MPI_ANY_SOURCE, team_tag, MPI_COMM_WORLD, &there, &status), "MPI_Iprobe",
                 team_fault);
  if (there != 0) {
    world_.require(MPI_Get_count(&status, MPI_BYTE, &size), "MPI_Get_count", team_fault);
    std::vector<std::byte> bytes(static_cast<std::size_t>(size));
    world_.require(MPI_Recv(bytes.data(), size, MPI_BYTE, status.MPI_SOURCE, team_tag, MPI_COMM_WORLD,
                            MPI_STATUS_IGNORE),
                   "MPI_Recv", team_fault);
    message.process = static_cast<std::uint32_t>(status.MPI_SOURCE);
    std::memcpy(&message.job, bytes.data(), sizeof(message.job));
    message.result.assign(bytes.size() - sizeof(message.job), ' ');
    if (!message.result.empty())
      std::memcpy(message.result.data(), bytes.data() + sizeof(message.job), message.result.size());
  }
  world_.rest();
  return there != 0;
}

void MpiJobTeam::send(std::uint32_t process, std::uint64_t job, const std::string& result) {
  const std::vector<std::byte> bytes = bytes_of(job, result);
  world_.beat();
  world_.require(MPI_Send(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, static_cast<int>(process),
                          team_tag, MPI_COMM_WORLD),
                 "MPI_Send", team_fault);
  world_.rest();
}

void MpiJobTeam::nap() {
  world_.still_waiting(MpiWorld::Clock::now(), team_fault);
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void MpiJobTeam::lead(const Take& take, const Accept& accept) {
  std::vector<std::uint64_t> under_way(world_.size());
  bool more = true;
  std::uint64_t outstanding = 0;
  while (more || outstanding > 0) {
    for (std::uint32_t process = 1; process < world_.size(); ++process) {
      while (more && under_way[process] < threads_of_[process]) {
        const std::optional<std::uint64_t> job = take();
        more = job.has_value();
        if (!more) break;
        send(process, *job, "");
        ++under_way[process];
        ++outstanding;
      }
    }
    Message message;
    if (!receive(message)) {
      nap();
      continue;
    }
    --under_way[message.process];
    --outstanding;
    accept(message.job, message.result);
  }
}

void MpiJobTeam::dismiss() {
  for (std::uint32_t process = 1; process < world_.size(); ++process) send(process, no_job, "");
}

void MpiJobTeam::serve(const Compute& compute) {
  TeamThreads threads(compute, threads_);
  while (true) {
    Message message;
    const bool came = receive(message);
    if (came && message.job == no_job) return;
    if (came) threads.add(message.job);
    for (const auto& [job, result] : threads.take_ready()) send(0, job, result);
    if (!came) nap();
  }
}

}  // namespace isthmus::hw
