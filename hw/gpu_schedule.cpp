#include "hw/gpu_schedule.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "hw/batches.hpp"
#include "hw/strided.hpp"
#include "model/error.hpp"

namespace isthmus::hw {
namespace {

constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

enum Part : std::size_t { packing, exchanging, unpacking, local, parts };

/// A transfer between arenas of GPUs.
struct Routed {
  std::uint32_t from = 0, to = 0;
  Move move;
};

/// What two transfers share when the same bytes go to the same GPU: one crossing serves both.
auto crossing_key(const Routed& routed) {
  const auto& loops = routed.move.loops;
  return std::tuple(routed.from, routed.to, routed.move.source, routed.move.run,
                    std::array{loops[0].count, loops[1].count, loops[2].count},
                    std::array{loops[0].source_stride, loops[1].source_stride, loops[2].source_stride});
}

/// Bytes on their way through a slot. `again`: those of the piece before, for one more place.
struct Piece {
  std::uint32_t from = 0, to = 0, operation = 0;
  bool again = false;
  Move move;
};

/// What one exchange carries, with what comes before and after it.
struct Window {
  std::vector<Piece> pieces;
  std::vector<Message> direct;
  std::vector<std::vector<Move>> onward;                        // by GPU, after direct messages
  std::vector<std::int64_t> sent, received;                     // bytes in slots, by GPU
  std::map<std::array<std::uint32_t, 3>, std::int64_t> joined;  // from, to, operation: bytes of a message
  std::vector<std::uint32_t> packed_operations, direct_operations, onward_operations;

  std::size_t messages() const { return direct.size() + joined.size(); }
};

class ScheduleBuilder {
 public:
  ScheduleBuilder(const Program& program, std::uint32_t gpus, const ScheduleOptions& options)
      : program_(program), options_(options), gpus_(gpus) {
    ISTHMUS_ASSERT(options.slot_bytes > 0 && options.slot_bytes % arena_alignment == 0 && options.slots > 0,
                   "{} slots of {} bytes", options.slots, options.slot_bytes);
    const std::size_t lanes = std::max<std::size_t>(1, program.operations().lanes.size());
    result_.folding = fold(program, gpus);
    result_.lane_streams = static_cast<std::uint32_t>(std::min<std::size_t>(options.lane_streams, lanes));
    result_.arena_bytes = result_.folding.memory;
    result_.moves.resize(gpus);
    result_.moves_begin.resize(gpus);
    finals_.resize(lanes);
    slots_.resize(std::size_t{result_.lane_streams} * options.slots);
    next_slot_.assign(result_.lane_streams, 0);
    local_.resize(gpus);
    result_.batch_of.resize(program.operations().list.size());
    clear_window();
  }

  GpuSchedule run() {
    for (const Batch& batch : make_batches(program_.operations())) lower(batch);
    for (std::uint32_t g = 0; g < gpus_; ++g)
      result_.moves_begin[g].push_back(static_cast<std::uint32_t>(result_.moves[g].size()));
    finish_operations();
    return std::move(result_);
  }

 private:
  struct Slot {
    std::uint32_t exchange = none, unpacking = none;  // its last users
  };

  void lower(const Batch& batch) {
    lane_stream_ = batch.lane.value % result_.lane_streams;
    begin_batch(batch);
    for (const std::uint32_t operation : batch.operations)
      result_.batch_of[operation] = static_cast<std::uint32_t>(result_.starts.size());
    result_.starts.push_back(dependencies_);
    for (const std::uint32_t operation : batch.operations) lower(operation);
    flush();
    emit_local();
    std::vector<std::uint32_t>& finals = finals_[batch.lane.index()];
    finals.clear();
    for (const std::uint32_t launch : last_) {
      if (launch != none) finals.push_back(launch);
    }
    if (finals.empty()) finals = dependencies_;
  }

  /// Lanes move on batch by batch, so the last one of a lane stands for all before it.
  void begin_batch(const Batch& batch) {
    const Operations& operations = program_.operations();
    dependencies_ = finals_[batch.lane.index()];
    std::vector<bool> seen(finals_.size(), false);
    for (const std::uint32_t operation : batch.operations) {
      for (const std::uint32_t after : operations.dependencies(operations.list[operation])) {
        const std::size_t lane = operations.list[after].lane.index();
        if (seen[lane]) continue;
        seen[lane] = true;
        dependencies_.insert(dependencies_.end(), finals_[lane].begin(), finals_[lane].end());
      }
    }
    std::sort(dependencies_.begin(), dependencies_.end());
    dependencies_.erase(std::unique(dependencies_.begin(), dependencies_.end()), dependencies_.end());
    last_.fill(none);
  }

  void lower(std::uint32_t operation) {
    std::vector<Routed> routed = route(operation);
    const bool put = program_.operations().list[operation].kind == StepKind::put;
    for (std::size_t i = 0; i < routed.size();) {
      std::size_t end = i + 1;
      while (end < routed.size() && crossing_key(routed[end]) == crossing_key(routed[i])) ++end;
      const std::span<Routed> same(routed.begin() + static_cast<std::ptrdiff_t>(i), end - i);
      if (put || same[0].from == same[0].to) {
        for (const Routed& each : same) add_local(operation, each);
      } else {
        result_.crossing_bytes += same[0].move.bytes();
        cross(operation, same);
      }
      i = end;
    }
  }

  std::vector<Routed> route(std::uint32_t operation) const {
    const Folding& folding = result_.folding;
    std::vector<Routed> routed;
    for (const Transfer& transfer : program_.transfers(operation)) {
      if (transfer.move.bytes() == 0) continue;
      Routed next{folding.gpu[transfer.from.index()], folding.gpu[transfer.to.index()], transfer.move};
      next.move.source += folding.base[transfer.from.index()];
      next.move.target += folding.base[transfer.to.index()];
      routed.push_back(next);
    }
    std::stable_sort(routed.begin(), routed.end(),
                     [](const Routed& a, const Routed& b) { return crossing_key(a) < crossing_key(b); });
    return routed;
  }

  void add_local(std::uint32_t operation, const Routed& routed) {
    if (routed.from != routed.to) result_.crossing_bytes += routed.move.bytes();
    std::vector<Move> pieces;
    cut(routed.move, options_.largest_message, pieces);
    for (const Move& piece : pieces) local_[routed.from].push_back({piece, routed.to});
    note(local_operations_, operation);
  }

  /// Brings the bytes of `same` to another GPU, once.
  void cross(std::uint32_t operation, std::span<Routed> same) {
    const auto whole = [](const Routed& routed) { return routed.move.target_contiguous(); };
    const auto leader = std::find_if(same.begin(), same.end(), whole);
    if (leader != same.end()) std::iter_swap(same.begin(), leader);
    const Move& move = same[0].move;
    if (leader != same.end() && move.source_contiguous() && move.bytes() >= options_.direct_bytes) {
      send_directly(operation, same);
    } else {
      send_packed(operation, same);
    }
  }

  void send_directly(std::uint32_t operation, std::span<const Routed> same) {
    const Move& move = same[0].move;
    const std::int64_t limit = options_.largest_message;
    const auto count = static_cast<std::size_t>((move.bytes() + limit - 1) / limit);
    if (window_.messages() + count > options_.most_messages) flush();
    for (std::int64_t done = 0; done < move.bytes(); done += limit) {
      window_.direct.push_back({same[0].from, same[0].to, move.source + done, move.target + done,
                                std::min(limit, move.bytes() - done)});
    }
    for (const Routed& other : same.subspan(1)) {
      cut(onward(move, other.move), limit, window_.onward[other.to]);
      note(window_.onward_operations, operation);
    }
    note(window_.direct_operations, operation);
  }

  void send_packed(std::uint32_t operation, std::span<const Routed> same) {
    std::vector<std::vector<Move>> cuts(same.size());
    const std::int64_t limit = std::min(options_.slot_bytes, options_.largest_message);
    for (std::size_t i = 0; i < same.size(); ++i) cut(same[i].move, limit, cuts[i]);
    for (std::size_t p = 0; p < cuts[0].size(); ++p) {
      reserve(operation, same[0], cuts[0][p].bytes());
      for (std::size_t i = 0; i < same.size(); ++i)
        window_.pieces.push_back({same[i].from, same[i].to, operation, i > 0, cuts[i][p]});
      note(window_.packed_operations, operation);
    }
  }

  /// Pieces start at multiples of 16 bytes in a message, as wide as kernels copy.
  static std::int64_t padded(std::int64_t bytes) { return (bytes + 15) / 16 * 16; }

  void reserve(std::uint32_t operation, const Routed& routed, std::int64_t bytes) {
    const std::array<std::uint32_t, 3> key{routed.from, routed.to, options_.join ? 0 : operation};
    const std::int64_t need = padded(bytes);
    const bool full = window_.sent[routed.from] + need > options_.slot_bytes ||
                      window_.received[routed.to] + need > options_.slot_bytes ||
                      window_.joined[key] + need > options_.largest_message ||
                      window_.messages() > options_.most_messages;
    if (full) flush();
    window_.sent[routed.from] += need;
    window_.received[routed.to] += need;
    window_.joined[key] += need;
  }

  void flush() {
    // Reserving may have left an empty entry for what did not fit.
    for (auto entry = window_.joined.begin(); entry != window_.joined.end();)
      entry = entry->second == 0 ? window_.joined.erase(entry) : std::next(entry);
    if (window_.messages() == 0) return clear_window();
    const std::size_t index =
        std::size_t{lane_stream_} * options_.slots + next_slot_[lane_stream_]++ % options_.slots;
    Slot& slot = slots_[index];
    std::vector<Message> messages = merged(std::move(window_.direct));
    std::vector<std::vector<GpuMove>> before(gpus_), after(gpus_);
    if (!window_.pieces.empty()) place_pieces(index, messages, before, after);
    for (std::uint32_t g = 0; g < gpus_; ++g) {
      for (const Move& move : window_.onward[g]) after[g].push_back({move, g});
    }
    std::uint32_t packed = none;
    if (!window_.pieces.empty()) packed = emit_moves(packing, {slot.exchange}, before);
    assign(window_.packed_operations, packed);
    slot.exchange = emit_exchange({packed, slot.unpacking}, messages);
    assign(window_.packed_operations, slot.exchange);
    assign(window_.direct_operations, slot.exchange);
    if (!window_.pieces.empty() || !window_.onward_operations.empty()) {
      slot.unpacking = emit_moves(unpacking, {slot.exchange}, after);
      assign(window_.packed_operations, slot.unpacking);
      assign(window_.onward_operations, slot.unpacking);
    }
    clear_window();
  }

  /// Messages that continue each other on both sides become one: NCCL's rate grows with their size.
  std::vector<Message> merged(std::vector<Message> messages) const {
    std::sort(messages.begin(), messages.end(), [](const Message& a, const Message& b) {
      return std::tie(a.from, a.to, a.target) < std::tie(b.from, b.to, b.target);
    });
    std::vector<Message> result;
    for (const Message& next : messages) {
      Message* const last = result.empty() ? nullptr : &result.back();
      const bool continues = last != nullptr && last->from == next.from && last->to == next.to &&
                             last->source + last->bytes == next.source &&
                             last->target + last->bytes == next.target;
      if (continues && last->bytes + next.bytes <= options_.largest_message) {
        last->bytes += next.bytes;
      } else {
        result.push_back(next);
      }
    }
    return result;
  }

  void place_pieces(std::size_t slot, std::vector<Message>& messages,
                    std::vector<std::vector<GpuMove>>& before, std::vector<std::vector<GpuMove>>& after) {
    std::vector<std::int64_t> send(gpus_), receive(gpus_);
    for (std::uint32_t g = 0; g < gpus_; ++g) {
      send[g] = result_.folding.memory[g] + static_cast<std::int64_t>(slot) * 2 * options_.slot_bytes;
      receive[g] = send[g] + options_.slot_bytes;
      result_.arena_bytes[g] = std::max(result_.arena_bytes[g], receive[g] + options_.slot_bytes);
    }
    std::map<std::array<std::uint32_t, 3>, std::pair<std::int64_t, std::int64_t>> next;
    for (const auto& [key, bytes] : window_.joined) {
      const auto [from, to, operation] = key;
      messages.push_back({from, to, send[from], receive[to], bytes});
      next[key] = {send[from], receive[to]};
      send[from] += bytes;
      receive[to] += bytes;
    }
    std::int64_t read_at = 0;
    for (const Piece& piece : window_.pieces) {
      auto& [sent_at, received_at] = next[{piece.from, piece.to, options_.join ? 0 : piece.operation}];
      if (!piece.again) {
        before[piece.from].push_back({packed(piece.move, sent_at), piece.from});
        read_at = received_at;
        sent_at += padded(piece.move.bytes());
        received_at += padded(piece.move.bytes());
      }
      after[piece.to].push_back({unpacked(piece.move, read_at), piece.to});
    }
  }

  void emit_local() {
    if (!local_operations_.empty()) {
      assign(local_operations_, emit_moves(local, {}, local_));
      local_operations_.clear();
      for (std::vector<GpuMove>& list : local_) list.clear();
    }
  }

  std::uint32_t emit(Part part, std::vector<std::uint32_t> waits) {
    const auto index = static_cast<std::uint32_t>(result_.launches.size());
    if (last_[part] == none && part != unpacking)
      waits.insert(waits.end(), dependencies_.begin(), dependencies_.end());
    std::sort(waits.begin(), waits.end());
    waits.erase(std::unique(waits.begin(), waits.end()), waits.end());
    if (!waits.empty() && waits.back() == none) waits.pop_back();
    Launch launch;
    launch.stream = lane_stream_ * GpuSchedule::streams_per_lane + static_cast<std::uint32_t>(part);
    launch.waits_begin = static_cast<std::uint32_t>(result_.waits.size());
    result_.waits.insert(result_.waits.end(), waits.begin(), waits.end());
    launch.waits_end = static_cast<std::uint32_t>(result_.waits.size());
    launch.messages_begin = launch.messages_end = static_cast<std::uint32_t>(result_.messages.size());
    result_.launches.push_back(launch);
    for (std::uint32_t g = 0; g < gpus_; ++g)
      result_.moves_begin[g].push_back(static_cast<std::uint32_t>(result_.moves[g].size()));
    last_[part] = index;
    return index;
  }

  std::uint32_t emit_moves(Part part, const std::vector<std::uint32_t>& waits,
                           const std::vector<std::vector<GpuMove>>& moves) {
    const std::uint32_t index = emit(part, waits);
    for (std::uint32_t g = 0; g < gpus_; ++g)
      result_.moves[g].insert(result_.moves[g].end(), moves[g].begin(), moves[g].end());
    return index;
  }

  std::uint32_t emit_exchange(const std::vector<std::uint32_t>& waits, const std::vector<Message>& messages) {
    const std::uint32_t index = emit(exchanging, waits);
    result_.messages.insert(result_.messages.end(), messages.begin(), messages.end());
    result_.launches[index].kind = LaunchKind::exchange;
    result_.launches[index].messages_end = static_cast<std::uint32_t>(result_.messages.size());
    return index;
  }

  void clear_window() {
    window_ = {};
    window_.onward.resize(gpus_);
    window_.sent.assign(gpus_, 0);
    window_.received.assign(gpus_, 0);
  }

  static void note(std::vector<std::uint32_t>& operations, std::uint32_t operation) {
    if (operations.empty() || operations.back() != operation) operations.push_back(operation);
  }

  void assign(const std::vector<std::uint32_t>& operations, std::uint32_t launch) {
    for (const std::uint32_t operation : operations) work_.emplace_back(operation, launch);
  }

  void finish_operations() {
    std::sort(work_.begin(), work_.end());
    work_.erase(std::unique(work_.begin(), work_.end()), work_.end());
    std::size_t next = 0;
    for (std::uint32_t i = 0; i <= program_.operations().list.size(); ++i) {
      result_.launches_begin.push_back(static_cast<std::uint32_t>(result_.launches_of.size()));
      for (; next < work_.size() && work_[next].first == i; ++next)
        result_.launches_of.push_back(work_[next].second);
    }
  }

  const Program& program_;
  const ScheduleOptions options_;
  const std::uint32_t gpus_;
  GpuSchedule result_;
  std::vector<std::vector<std::uint32_t>> finals_;  // by lane: what its last batch ends with
  std::vector<std::uint32_t> dependencies_;         // of the current batch
  std::array<std::uint32_t, parts> last_{};         // launch of the current batch
  std::uint32_t lane_stream_ = 0;
  std::vector<Slot> slots_;  // by lane stream and slot
  std::vector<std::uint32_t> next_slot_;
  Window window_;
  std::vector<std::vector<GpuMove>> local_;  // of the current batch, by GPU
  std::vector<std::uint32_t> local_operations_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> work_;  // operation, launch
};

}  // namespace

std::span<const GpuMove> GpuSchedule::moves_of(std::uint32_t gpu, std::size_t launch) const {
  const std::vector<std::uint32_t>& begin = moves_begin[gpu];
  return std::span(moves[gpu]).subspan(begin[launch], begin[launch + 1] - begin[launch]);
}

std::span<const Message> GpuSchedule::messages_of(const Launch& launch) const {
  return std::span(messages).subspan(launch.messages_begin, launch.messages_end - launch.messages_begin);
}

std::span<const std::uint32_t> GpuSchedule::waits_of(const Launch& launch) const {
  return std::span(waits).subspan(launch.waits_begin, launch.waits_end - launch.waits_begin);
}

std::span<const std::uint32_t> GpuSchedule::launches_of_operation(std::size_t operation) const {
  return std::span(launches_of)
      .subspan(launches_begin[operation], launches_begin[operation + 1] - launches_begin[operation]);
}

std::vector<std::uint32_t> operations_of_launches(const GpuSchedule& schedule) {
  std::vector<std::uint32_t> result(schedule.launches.size(), 0);
  for (std::uint32_t i = 0; i + 1 < schedule.launches_begin.size(); ++i) {
    for (const std::uint32_t launch : schedule.launches_of_operation(i)) result[launch] = i;
  }
  return result;
}

GpuSchedule make_schedule(const Program& program, std::uint32_t gpus, const ScheduleOptions& options) {
  return ScheduleBuilder(program, gpus, options).run();
}

}  // namespace isthmus::hw
