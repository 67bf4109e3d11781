#include "hw/mpi/run.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "model/error.hpp"

namespace isthmus::hw {
namespace {

/// A stream goes on in parts, so that processes along its way work at the same time. Of parts below MPI's
/// eager limit (64 KiB over TCP) each is on its way without a handshake, and they arrive one after the other;
/// every eighth and the last one wait until they are taken.
constexpr std::int64_t least_stream_part = std::int64_t{60} << 10, most_stream_parts = 256;
constexpr std::uint32_t stream_window = 16, answered_parts = 8;

std::int64_t stream_part(std::int64_t bytes) {
  return std::max(least_stream_part, (bytes + most_stream_parts - 1) / most_stream_parts);
}

std::vector<Rank> ranks_of(const std::vector<std::uint32_t>& process_of, std::uint32_t process) {
  std::vector<Rank> ranks;
  for (std::uint32_t rank = 0; rank < process_of.size(); ++rank)
    if (process_of[rank] == process) ranks.push_back({rank});
  return ranks;
}

}  // namespace

MpiProgram::MpiProgram(const Program& lowered, const MpiWorld& world)
    : program(lowered),
      process_of(processes_of_ranks(lowered, world.size())),
      ranks(ranks_of(process_of, world.process())),
      part(part_of(lowered.operations(), process_of, world.process())),
      queues(part.operations) {
  const auto last_tag = 2 * static_cast<std::int64_t>(lowered.operations().list.size()) + 1;
  if (last_tag > world.most_tag())
    throw SystemError(fmt::format("MPI has tags up to {}, the plan needs {}", world.most_tag(), last_tag));
  work.reserve(part.number.size());
  for (const std::uint32_t operation : part.number)
    work.push_back(work_of(program, operation, process_of, world.process(), world.host_of()));
}

SystemFault MpiProgram::missing(std::uint32_t process) const {
  SystemFault fault{"wait", fmt::format("process {} is missing", process)};
  const auto rank = std::find(process_of.begin(), process_of.end(), process) - process_of.begin();
  if (rank == static_cast<std::ptrdiff_t>(process_of.size())) return fault;
  fault.rank = static_cast<std::uint32_t>(rank);
  const std::vector<Operation>& list = program.operations().list;
  for (std::uint32_t i = static_cast<std::uint32_t>(list.size()); i-- > 0;) {
    if (list[i].source.value != fault.rank && list[i].target.value != fault.rank) continue;
    fault.step = program.describe(i);
    break;
  }
  return fault;
}

MpiRun::MpiRun(const MpiProgram& mpi, HostMemory& memory, MpiWorld& world, const Watch& watch)
    : mpi_(mpi),
      memory_(memory),
      world_(world),
      watch_(watch),
      queues_(mpi.queues),
      requests_(world, [this](std::uint32_t token) { return describe(token); }),
      under_way_(mpi.work.size(), 0),
      buffers_(mpi.work.size()),
      streams_(mpi.work.size()) {
  for (const std::uint32_t operation : mpi.part.number) spans_.push_back({operation, {}, {}});
}

Instant MpiRun::now() const {
  const auto since = MpiWorld::Clock::now() - start_;
  return {std::chrono::duration_cast<std::chrono::nanoseconds>(since).count() * 1000};
}

int MpiRun::tag(std::uint32_t operation) const { return static_cast<int>(2 * operation + 1); }

std::vector<LocalSpan> MpiRun::run() {
  if (!mpi_.part.number.empty()) world_.doing(mpi_.part.number.front());
  world_.exchange({}, [this](std::uint32_t process) { return mpi_.missing(process); });
  start_ = MpiWorld::Clock::now();
  if (watch_) watch_(0);
  queues_.begin(ready_);
  start_ready();
  while (queues_.waiting() > 0 || !requests_.empty()) {
    if (requests_.empty()) {
      throw SystemError(to_string({"wait",
                                   fmt::format("{} operations wait for each other", queues_.waiting()),
                                   {},
                                   mpi_.ranks.front().value}));
    }
    const std::vector<std::uint32_t> done = requests_.poll();
    for (const std::uint32_t token : done) end(token);
    start_ready();
  }
  return std::move(spans_);
}

void MpiRun::start_ready() {
  while (!ready_.empty()) {
    const std::vector<std::uint32_t> found = std::exchange(ready_, {});
    for (const std::uint32_t operation : found) start(operation);
  }
}

std::uint32_t MpiRun::token(Role role, std::uint32_t operation, std::uint32_t index, std::int64_t parts) {
  if (operation < under_way_.size() && role != Role::told) ++under_way_[operation];
  shares_.push_back({role, operation, index, parts});
  return static_cast<std::uint32_t>(shares_.size() - 1);
}

void MpiRun::start(std::uint32_t operation) {
  if (operation >= mpi_.work.size()) {
    const std::size_t index = operation - mpi_.work.size();
    const Notice& notice = mpi_.part.notices[index];
    requests_.receive(nullptr, 0, notice.process, tag(notice.operation) + 1,
                      token(Role::notice, operation, 0, 1));
    return;
  }
  spans_[operation].ready = now();
  world_.doing(mpi_.part.number[operation]);
  const ProcessWork& work = mpi_.work[operation];
  const int own_tag = tag(mpi_.part.number[operation]);
  buffers_[operation].resize(work.receives.size() + work.sends.size() + 1);
  ++under_way_[operation];  // until all has been started
  for (std::uint32_t i = 0; i < work.receives.size(); ++i) {
    const RankMessage& message = work.receives[i];
    std::byte* place = memory_.arena(message.to) + message.moves.front().target;
    if (message.moves.size() > 1 || !message.moves.front().target_contiguous()) {
      buffers_[operation][i].resize(to_size(message.bytes));
      place = buffers_[operation][i].data();
    }
    requests_.receive(place, message.bytes, message.peer, own_tag,
                      token(Role::receive, operation, i, part_count(message.bytes)));
  }
  for (std::uint32_t i = 0; i < work.sends.size(); ++i) {
    const RankMessage& message = work.sends[i];
    const std::byte* bytes = packed(message, buffers_[operation][work.receives.size() + i]);
    requests_.send(bytes, message.bytes, message.peer, own_tag,
                   token(Role::send, operation, i, part_count(message.bytes)));
  }
  if (work.stream) start_stream(operation);
  for (const Transfer& transfer : work.local)
    copy_bytes(transfer.move, memory_.arena(transfer.from), memory_.arena(transfer.to));
  if (--under_way_[operation] == 0) finish(operation);
}

void MpiRun::start_stream(std::uint32_t operation) {
  const RankStream& stream = *mpi_.work[operation].stream;
  std::vector<std::byte>& buffer = buffers_[operation].back();
  const std::int64_t size = stream_part(stream.bytes);
  buffer.resize(to_size(stream.bytes));
  if (!stream.previous) {
    std::byte* next = buffer.data();
    for (const Move& move : stream.members.front().moves) {
      pack_bytes(move, memory_.arena(stream.root), next);
      next += move.bytes();
    }
  }
  const auto parts = static_cast<std::uint32_t>((stream.bytes + size - 1) / size);
  streams_[operation].here.assign(parts, !stream.previous);
  for (std::uint32_t part = 0; stream.previous && part < parts; ++part) {
    const std::int64_t first = part * size, bytes = std::min(size, stream.bytes - first);
    requests_.receive(buffer.data() + first, bytes, *stream.previous, tag(mpi_.part.number[operation]),
                      token(Role::stream_in, operation, part, part_count(bytes)));
  }
  pass_on(operation);
}

void MpiRun::pass_on(std::uint32_t operation) {
  const RankStream& stream = *mpi_.work[operation].stream;
  if (!stream.next) return;
  StreamState& state = streams_[operation];
  const std::int64_t size = stream_part(stream.bytes);
  while (state.sent < state.here.size() && state.here[state.sent] &&
         state.sent < state.gone + stream_window) {
    const std::int64_t first = state.sent * size, bytes = std::min(size, stream.bytes - first);
    const std::byte* const memory = buffers_[operation].back().data() + first;
    const int own_tag = tag(mpi_.part.number[operation]);
    const std::uint32_t sent = token(Role::stream_out, operation, state.sent, part_count(bytes));
    const std::uint32_t next = state.sent + 1;
    if (next % answered_parts == 0 || next == state.here.size()) {
      requests_.send(memory, bytes, *stream.next, own_tag, sent);
    } else {
      requests_.post(memory, bytes, *stream.next, own_tag, sent);
    }
    ++state.sent;
  }
}

const std::byte* MpiRun::packed(const RankMessage& message, std::vector<std::byte>& buffer) {
  const std::byte* const arena = memory_.arena(message.from);
  const Move& first = message.moves.front();
  if (message.moves.size() == 1 && first.source_contiguous()) return arena + first.source;
  buffer.resize(to_size(message.bytes));
  std::byte* next = buffer.data();
  for (const Move& move : message.moves) {
    pack_bytes(move, arena, next);
    next += move.bytes();
  }
  return buffer.data();
}

void MpiRun::unpack(const RankMessage& message, const std::byte* bytes) {
  for (const Move& move : message.moves) {
    unpack_bytes(move, bytes, memory_.arena(message.to));
    bytes += move.bytes();
  }
}

void MpiRun::end(std::uint32_t token) {
  if (--shares_[token].left > 0) return;
  const Share share = shares_[token];
  if (share.role == Role::told) return;
  if (share.role == Role::notice) {
    queues_.complete(share.operation, ready_);
    return;
  }
  const ProcessWork& work = mpi_.work[share.operation];
  if (share.role == Role::receive) {
    std::vector<std::byte>& buffer = buffers_[share.operation][share.index];
    if (!buffer.empty()) unpack(work.receives[share.index], buffer.data());
  } else if (work.stream) {
    StreamState& state = streams_[share.operation];
    if (share.role == Role::stream_in) state.here[share.index] = true;
    if (share.role == Role::stream_out) ++state.gone;
    pass_on(share.operation);
  }
  if (--under_way_[share.operation] > 0) return;
  if (work.stream && work.stream->previous) {
    for (const RankMessage& member : work.stream->members)
      unpack(member, buffers_[share.operation].back().data());
  }
  finish(share.operation);
}

void MpiRun::finish(std::uint32_t operation) {
  spans_[operation].end = now();
  buffers_[operation] = {};
  for (const std::uint32_t process : mpi_.part.tell[operation]) {
    requests_.post(nullptr, 0, process, tag(mpi_.part.number[operation]) + 1,
                   token(Role::told, operation, 0, 1));
  }
  queues_.complete(operation, ready_);
  ++complete_;
  if (watch_) watch_(complete_);
}

SystemFault MpiRun::describe(std::uint32_t token) const {
  const Share& share = shares_[token];
  if (share.role == Role::notice) {
    const Notice& notice = mpi_.part.notices[share.operation - mpi_.work.size()];
    return {"wait", fmt::format("no word from process {}", notice.process),
            mpi_.program.describe(notice.operation), mpi_.ranks.front().value};
  }
  const ProcessWork& work = mpi_.work[share.operation];
  SystemFault fault{"wait", "", mpi_.program.describe(mpi_.part.number[share.operation]), {}};
  if (share.role == Role::receive) {
    const RankMessage& message = work.receives[share.index];
    fault.code = fmt::format("nothing from rank {} (process {})", message.from.value, message.peer);
    fault.rank = message.to.value;
  } else if (share.role == Role::send) {
    const RankMessage& message = work.sends[share.index];
    fault.code = fmt::format("not taken by rank {} (process {})", message.to.value, message.peer);
    fault.rank = message.from.value;
  } else {
    const bool in = share.role == Role::stream_in;
    if (work.stream) {
      fault.code = fmt::format("stream {} process {}", in ? "from" : "to",
                               in ? work.stream->previous.value_or(0) : work.stream->next.value_or(0));
    }
    fault.rank = mpi_.ranks.front().value;
  }
  return fault;
}

}  // namespace isthmus::hw
