#include "hw/host_run.hpp"

#include <algorithm>
#include <thread>

#include <fmt/format.h>

#include "model/error.hpp"

namespace isthmus::hw {
namespace {

/// What goes as one message, over a network or a library that takes contiguous buffers.
bool is_message(StepKind kind) { return kind == StepKind::send || is_collective(kind); }

}  // namespace

HostProgram prepare_host(const Program& program) {
  HostProgram host{program, QueuePlan(program.operations()), {}, {}};
  const auto operations = static_cast<std::uint32_t>(program.operations().list.size());
  host.transfers.reserve(operations);
  for (std::uint32_t i = 0; i < operations; ++i) {
    host.transfers.push_back(program.transfers(i));
    for (const Transfer& transfer : host.transfers.back())
      if (transfer.from != transfer.to) host.between_ranks += Bytes{transfer.move.bytes()};
  }
  return host;
}

std::size_t thread_count(const HostSettings& settings, std::size_t ranks) {
  constexpr std::size_t most = 16;
  const std::size_t cores = std::max<std::size_t>(1, std::thread::hardware_concurrency());
  const std::size_t wanted = settings.threads > 0 ? settings.threads : std::min(cores, most);
  return std::clamp<std::size_t>(wanted, 1, std::max<std::size_t>(1, ranks));
}

HostRun::HostRun(const HostProgram& host, HostMemory& memory, const RunOptions& options,
                 const HostSettings& settings)
    : host_(host),
      memory_(memory),
      options_(options),
      settings_(settings),
      queues_(host.queues),
      in_flight_(thread_count(settings, host.program.ranks())),
      complete_(host.transfers.size(), false),
      random_(options.seed) {
  timeline_.spans.resize(host.transfers.size());
}

Instant HostRun::now() const {
  return {std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start_).count() * 1000};
}

Timeline HostRun::run() {
  start_ = Clock::now();
  std::vector<std::thread> threads;
  {
    const std::lock_guard lock(mutex_);
    std::vector<std::uint32_t> found;
    queues_.begin(found);
    add_ready(found, Span::no_cause);
  }
  for (std::size_t i = 0; i < in_flight_.size(); ++i) threads.emplace_back(&HostRun::work, this, i);
  watch();
  for (std::thread& thread : threads) thread.join();
  if (failure_) std::rethrow_exception(failure_);
  for (const Span& span : timeline_.spans) timeline_.end = std::max(timeline_.end, span.end);
  return std::move(timeline_);
}

void HostRun::work(std::size_t thread) {
  std::vector<std::byte> message;
  std::uint32_t operation = 0;
  try {
    while (take(thread, operation)) {
      execute(operation, message);
      finish(thread, operation);
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::current_exception();
    more_.notify_all();
    ended_.notify_all();
  }
}

bool HostRun::take(std::size_t thread, std::uint32_t& operation) {
  std::unique_lock lock(mutex_);
  more_.wait(lock, [this] { return failure_ || !ready_.empty() || queues_.waiting() == 0; });
  if (failure_ || ready_.empty()) return false;
  operation = ready_.front();
  ready_.pop_front();
  in_flight_[thread] = {operation, Clock::now()};
  return true;
}

void HostRun::finish(std::size_t thread, std::uint32_t operation) {
  const std::lock_guard lock(mutex_);
  in_flight_[thread].operation = Span::no_cause;
  if (failure_) return;
  complete_[operation] = true;
  timeline_.spans[operation].end = now();
  std::vector<std::uint32_t> found;
  queues_.complete(operation, found);
  add_ready(found, operation);
}

/// Also notices when nothing will ever be ready again. Requires the lock.
void HostRun::add_ready(const std::vector<std::uint32_t>& found, std::uint32_t cause) {
  for (const std::uint32_t operation : found) {
    timeline_.spans[operation].ready = cause == Span::no_cause ? Instant{} : timeline_.spans[cause].end;
    timeline_.spans[operation].cause = cause;
    ready_.push_back(operation);
    if (options_.seed != 0) std::swap(ready_.back(), ready_[random_() % ready_.size()]);
  }
  const bool idle = ready_.empty() && std::all_of(in_flight_.begin(), in_flight_.end(), [](const auto& one) {
                      return one.operation == Span::no_cause;
                    });
  if (idle && queues_.waiting() > 0) {
    const auto waiting = std::find(complete_.begin(), complete_.end(), false) - complete_.begin();
    fail("wait", fmt::format("{} operations wait for each other; the first is this one", queues_.waiting()),
         static_cast<std::uint32_t>(waiting));
  }
  if (found.size() > 1 || queues_.waiting() == 0) more_.notify_all();  // the caller takes one itself
  if (queues_.waiting() == 0) ended_.notify_all();
}

void HostRun::execute(std::uint32_t operation, std::vector<std::byte>& message) {
  const bool as_message = is_message(host_.program.operations().list[operation].kind);
  if (settings_.faults.stuck_operation == operation) wait_for_failure();
  const std::vector<Transfer>& transfers = host_.transfers[operation];
  for (const Transfer& transfer : transfers) move(transfer, as_message, message);
  if (settings_.faults.corrupt_operation == operation && !transfers.empty()) corrupt(transfers.back());
}

void HostRun::move(const Transfer& transfer, bool as_message, std::vector<std::byte>& message) {
  const std::byte* const source = memory_.arena(transfer.from);
  std::byte* const target = memory_.arena(transfer.to);
  const Move& move = transfer.move;
  const bool one_piece = move.source_contiguous() && move.target_contiguous();
  if (!as_message || one_piece || transfer.from == transfer.to) return copy_bytes(move, source, target);
  if (move.source_contiguous()) return unpack_bytes(move, source + move.source, target);
  if (move.target_contiguous()) return pack_bytes(move, source, target + move.target);
  if (message.size() < to_size(move.bytes())) message.resize(to_size(move.bytes()));
  pack_bytes(move, source, message.data());
  unpack_bytes(move, message.data(), target);
}

void HostRun::corrupt(const Transfer& transfer) {
  std::int64_t last = transfer.move.target + transfer.move.run - 1;
  for (const Loop& loop : transfer.move.loops) last += (loop.count - 1) * loop.target_stride;
  memory_.arena(transfer.to)[last] ^= std::byte{1};
}

void HostRun::wait_for_failure() {
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [this] { return failure_ != nullptr; });
}

void HostRun::watch() {
  const auto deadline = std::chrono::nanoseconds(options_.deadline.value / 1000);
  std::unique_lock lock(mutex_);
  while (!failure_ && queues_.waiting() > 0) {
    Clock::time_point until = Clock::now() + deadline;
    for (const InFlight& one : in_flight_) {
      if (one.operation == Span::no_cause) continue;
      if (Clock::now() - one.since > deadline) {
        return fail("wait", fmt::format("not complete after {:.3g} s", seconds(options_.deadline)),
                    one.operation);
      }
      until = std::min(until, one.since + deadline);
    }
    ended_.wait_until(lock, until);
  }
}

/// Requires the lock.
void HostRun::fail(const char* call, const std::string& code, std::uint32_t operation) {
  if (failure_) return;
  const Program& program = host_.program;
  const SystemFault fault{call, code, program.describe(operation),
                          program.operations().list[operation].source.value};
  failure_ = std::make_exception_ptr(SystemError(to_string(fault)));
  more_.notify_all();
  ended_.notify_all();
}

}  // namespace isthmus::hw
