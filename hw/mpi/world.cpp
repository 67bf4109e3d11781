#include "hw/mpi/world.hpp"

#include <unistd.h>
#include <csignal>
#include <ctime>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "model/error.hpp"
#include "model/units.hpp"

namespace isthmus::hw {
namespace {

/// Of the messages of exchange(); those of operations have tags above.
constexpr int exchange_tag = 0;

constexpr std::chrono::microseconds nap{50};
constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

sigset_t only_terminate() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  return signals;
}

/// Takes a pending SIGTERM, if there is one.
bool told_to_end() {
  const sigset_t signals = only_terminate();
  const timespec at_once{};
  return ::sigtimedwait(&signals, nullptr, &at_once) == SIGTERM;
}

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "?";
  return name.data();
}

std::string text_of(int code) {
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  if (MPI_Error_string(code, text.data(), &length) != MPI_SUCCESS) return fmt::format("code {}", code);
  return {text.data(), static_cast<std::size_t>(length)};
}

void no_fault_but(int code, const char* call) {
  if (code != MPI_SUCCESS) throw SystemError(to_string(SystemFault{call, text_of(code)}));
}

double in_seconds(std::chrono::nanoseconds time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

MpiWorld::MpiWorld(std::chrono::nanoseconds deadline) : deadline_(deadline) {
  const sigset_t signals = only_terminate();
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  beat();
  guardian_ = std::thread(&MpiWorld::look_after, this);
  try {
    join();
  } catch (...) {
    over_ = true;
    guardian_.join();
    throw;
  }
}

MpiWorld::~MpiWorld() {
  beat();
  if (!failed_ && std::uncaught_exceptions() == 0) MPI_Finalize();
  over_ = true;
  guardian_.join();
}

void MpiWorld::join() {
  // Or else a process that finds a peer gone reports it through the launcher, and may wait for it for ever.
  ::setenv("OMPI_MCA_orte_base_help_aggregate", "0", 0);
  int given = 0, process = 0, size = 0, found = 0;
  no_fault_but(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &given), "MPI_Init_thread");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  no_fault_but(MPI_Comm_rank(MPI_COMM_WORLD, &process), "MPI_Comm_rank");
  no_fault_but(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size");
  process_ = static_cast<std::uint32_t>(process);
  size_ = static_cast<std::uint32_t>(size);
  void* value = nullptr;
  no_fault_but(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &found), "MPI_Comm_get_attr");
  if (found != 0) most_tag_ = *static_cast<const int*>(value);
  const std::string own = host_name();
  std::vector<std::byte> bytes(own.size());
  std::memcpy(bytes.data(), own.data(), own.size());
  const auto who = [](std::uint32_t other) {
    return SystemFault{"wait", fmt::format("process {} has not joined the job", other)};
  };
  for (const std::vector<std::byte>& one : exchange(bytes, who)) {
    std::string host(one.size(), ' ');
    std::memcpy(host.data(), one.data(), one.size());
    const auto known = std::find(hosts_.begin(), hosts_.end(), host) - hosts_.begin();
    host_of_.push_back(static_cast<std::uint32_t>(known));
    if (known == static_cast<std::ptrdiff_t>(hosts_.size())) hosts_.push_back(std::move(host));
  }
}

void MpiWorld::set_deadline(std::chrono::nanoseconds deadline) { deadline_ = deadline; }

void MpiWorld::beat() {
  ends_ = (Clock::now() + deadline_ + grace).time_since_epoch() / std::chrono::nanoseconds(1);
}

void MpiWorld::rest() { ends_ = never; }

void MpiWorld::set_scene(std::function<std::string(std::uint32_t)> describe) {
  const std::lock_guard lock(scene_mutex_);
  scene_ = std::move(describe);
}

void MpiWorld::look_after() {
  std::int64_t patience = never;  // once told to end
  while (!over_) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const std::int64_t now = Clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
    if (told_to_end()) told_ = true;
    if (told_ && patience == never) patience = now + std::int64_t{500'000'000};
    const std::int64_t ends = ends_;
    if (ends != never && now >= std::min(ends, patience) && !over_) give_up();
  }
}

void MpiWorld::give_up() {
  std::string step;
  {
    const std::lock_guard lock(scene_mutex_);
    if (scene_) step = scene_(doing_);
  }
  const std::string reason = told_
                                 ? std::string("ended by the launcher (SIGTERM)")
                                 : fmt::format("not complete after {:.3g} s", in_seconds(deadline_ + grace));
  fmt::print(stderr, "isthmus: process {} does not come back from MPI: {}{}\n", process_, reason, step);
  std::fflush(stderr);
  ::_exit(3);
}

void MpiWorld::fail(const SystemFault& fault) {
  failed_ = true;
  rest();
  throw SystemError(to_string(fault));
}

void MpiWorld::require(int code, const char* call, const std::function<SystemFault()>& fault) {
  if (code == MPI_SUCCESS) return;
  SystemFault what = fault();
  what.code = fmt::format("{}; {}", text_of(code), what.code);
  what.call = call;
  fail(what);
}

void MpiWorld::still_waiting(Clock::time_point since, const std::function<SystemFault()>& fault) {
  beat();
  const bool ended = told_ || told_to_end();
  if (!ended && Clock::now() - since <= deadline_) {
    std::this_thread::sleep_for(nap);
    return;
  }
  SystemFault what = fault();
  const std::string reason = ended ? std::string("ended by the launcher (SIGTERM)")
                                   : fmt::format("not complete after {:.3g} s", in_seconds(deadline_));
  what.code = fmt::format("{}; {}", reason, what.code);
  fail(what);
}

std::vector<std::vector<std::byte>> MpiWorld::exchange(const std::vector<std::byte>& bytes, const Who& who) {
  beat();
  std::vector<std::byte> word(sizeof(std::uint64_t));
  const std::uint64_t size = bytes.size();
  std::memcpy(word.data(), &size, sizeof(size));
  const std::vector<std::vector<std::byte>> words =
      round(word, std::vector<std::uint64_t>(size_, word.size()), who);
  std::vector<std::uint64_t> sizes(size_);
  for (std::size_t p = 0; p < size_; ++p) std::memcpy(&sizes[p], words[p].data(), sizeof(std::uint64_t));
  std::vector<std::vector<std::byte>> all = round(bytes, sizes, who);
  rest();
  return all;
}

std::vector<std::vector<std::byte>> MpiWorld::round(const std::vector<std::byte>& bytes,
                                                    const std::vector<std::uint64_t>& sizes, const Who& who) {
  std::vector<std::vector<std::byte>> all(size_);
  std::vector<MPI_Request> requests(2 * std::size_t{size_}, MPI_REQUEST_NULL);
  std::uint32_t last = process_;
  const auto fault = [&] { return who(last); };
  for (std::uint32_t other = 0; other < size_; ++other) {
    all[other].resize(sizes[other]);
    if (other == process_) {
      all[other] = bytes;
      continue;
    }
    last = other;
    ISTHMUS_ASSERT(std::max(sizes[other], bytes.size()) <= INT_MAX, "{} bytes", sizes[other]);
    const int peer = static_cast<int>(other);
    if (sizes[other] > 0) {
      require(MPI_Irecv(all[other].data(), static_cast<int>(sizes[other]), MPI_BYTE, peer, exchange_tag,
                        MPI_COMM_WORLD, &requests[other]),
              "MPI_Irecv", fault);
    }
    if (!bytes.empty()) {
      require(MPI_Isend(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, peer, exchange_tag,
                        MPI_COMM_WORLD, &requests[size_ + other]),
              "MPI_Isend", fault);
    }
  }
  const Clock::time_point since = Clock::now();
  while (true) {
    int done = 0;
    require(MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE),
            "MPI_Testall", fault);
    if (done != 0) return all;
    const auto missing = std::find_if(requests.begin(), requests.end(),
                                      [](MPI_Request one) { return one != MPI_REQUEST_NULL; });
    last = static_cast<std::uint32_t>(missing - requests.begin()) % size_;
    still_waiting(since, fault);
  }
}

}  // namespace isthmus::hw
