#include "hw/mpi/mpi.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "planner/queues.hpp"

namespace isthmus::hw {
namespace {

/// Plain words to and from the bytes that processes exchange.
class WordWriter {
 public:
  void add(std::uint64_t word) { add(&word, sizeof(word)); }
  void add(const std::string& text) {
    add(text.size());
    add(text.data(), text.size());
  }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  void add(const void* first, std::size_t size) {
    const std::size_t at = bytes_.size();
    bytes_.resize(at + size);
    if (size > 0) std::memcpy(bytes_.data() + at, first, size);
  }
  std::vector<std::byte> bytes_;
};

class WordReader {
 public:
  explicit WordReader(std::span<const std::byte> bytes) : rest_(bytes) {}
  std::uint64_t word() {
    std::uint64_t word = 0;
    take(&word, sizeof(word));
    return word;
  }
  std::string text() {
    std::string text(word(), ' ');
    take(text.data(), text.size());
    return text;
  }

 private:
  void take(void* to, std::size_t size) {
    if (size > 0) std::memcpy(to, rest_.data(), size);
    rest_ = rest_.subspan(size);
  }
  std::span<const std::byte> rest_;
};

/// What became ready when, and by what: the execution rule once more, with the ends that were measured.
void find_causes(const Operations& operations, Timeline& timeline) {
  const QueuePlan plan(operations);
  Queues queues(plan);
  std::vector<std::uint32_t> order(operations.list.size()), found;
  for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return timeline.spans[a].end < timeline.spans[b].end;
  });
  queues.begin(found);
  for (const std::uint32_t operation : order) {
    found.clear();
    queues.complete(operation, found);
    for (const std::uint32_t next : found) {
      Span& span = timeline.spans[next];
      if (span.end < timeline.spans[operation].end) continue;  // clocks of two processes
      span.ready = timeline.spans[operation].end;
      span.cause = operation;
    }
  }
}

Timeline gather(const MpiProgram& mpi, MpiWorld& world, const std::vector<LocalSpan>& own) {
  WordWriter words;
  for (const LocalSpan& span : own) {
    words.add(span.operation);
    words.add(static_cast<std::uint64_t>(span.end.value));
  }
  Timeline timeline;
  timeline.spans.resize(mpi.program.operations().list.size());
  const auto who = [&mpi](std::uint32_t process) { return mpi.missing(process); };
  for (const std::vector<std::byte>& bytes : world.exchange(words.bytes(), who)) {
    WordReader reader(bytes);
    for (std::size_t i = 0; i < bytes.size() / (2 * sizeof(std::uint64_t)); ++i) {
      Span& span = timeline.spans[reader.word()];
      span.end = std::max(span.end, Instant{static_cast<std::int64_t>(reader.word())});
      timeline.end = std::max(timeline.end, span.end);
    }
  }
  find_causes(mpi.program.operations(), timeline);
  return timeline;
}

std::vector<std::byte> verdict_bytes(const Measurement& own) {
  WordWriter words;
  words.add(own.mismatch_count);
  words.add(static_cast<std::uint64_t>(own.verified.value));
  words.add(own.mismatches.size());
  for (const Mismatch& mismatch : own.mismatches) {
    for (const std::uint64_t word : {std::uint64_t{mismatch.tensor.value}, std::uint64_t{mismatch.rank.value},
                                     std::uint64_t{mismatch.pass}, mismatch.expected, mismatch.found,
                                     std::uint64_t{mismatch.element.size()}})
      words.add(word);
    for (const std::int64_t index : mismatch.element) words.add(static_cast<std::uint64_t>(index));
    words.add(mismatch.message);
  }
  return words.bytes();
}

void add_verdict(std::span<const std::byte> bytes, std::size_t most, Measurement& measurement) {
  WordReader reader(bytes);
  measurement.mismatch_count += reader.word();
  measurement.verified += Bytes{static_cast<std::int64_t>(reader.word())};
  const std::uint64_t count = reader.word();
  for (std::uint64_t i = 0; i < count; ++i) {
    Mismatch mismatch;
    mismatch.tensor.value = static_cast<std::uint32_t>(reader.word());
    mismatch.rank.value = static_cast<std::uint32_t>(reader.word());
    mismatch.pass = static_cast<std::uint32_t>(reader.word());
    mismatch.expected = reader.word();
    mismatch.found = reader.word();
    mismatch.element.resize(reader.word());
    for (std::int64_t& index : mismatch.element) index = static_cast<std::int64_t>(reader.word());
    mismatch.message = reader.text();
    if (measurement.mismatches.size() < most) measurement.mismatches.push_back(std::move(mismatch));
  }
}

/// Of all processes, so that all of them say the same.
void judge(const MpiProgram& mpi, MpiWorld& world, const HostMemory& memory, std::uint32_t pass,
           std::size_t most, Measurement& measurement) {
  Measurement own;
  memory.judge(pass, most, own);
  measurement.verified = {};
  const auto who = [&mpi](std::uint32_t process) { return mpi.missing(process); };
  for (const std::vector<std::byte>& bytes : world.exchange(verdict_bytes(own), who))
    add_verdict(bytes, most, measurement);
}

/// While it lives, the world can name the operations of the program.
class MpiScene {
 public:
  MpiScene(const MpiProgram& mpi, MpiWorld& world) : world_(world) {
    world.set_scene([&mpi](std::uint32_t operation) {
      if (mpi.ranks.empty() || mpi.program.operations().list.empty()) return std::string{};
      return fmt::format(" (rank {}; {})", mpi.ranks.front().value, mpi.program.describe(operation));
    });
  }
  ~MpiScene() { world_.set_scene({}); }
  MpiScene(const MpiScene&) = delete;
  MpiScene& operator=(const MpiScene&) = delete;

 private:
  MpiWorld& world_;
};

Bytes between_ranks(const Program& program) {
  Bytes sum;
  for (std::uint32_t i = 0; i < program.operations().list.size(); ++i) {
    for (const Transfer& transfer : program.transfers(i))
      if (transfer.from != transfer.to) sum += Bytes{transfer.move.bytes()};
  }
  return sum;
}

}  // namespace

Measurement MpiExecutor::run(const Program& program, const RunOptions& options) {
  const std::chrono::nanoseconds deadline(options.deadline.value / 1000);
  if (!world_) world_ = std::make_unique<MpiWorld>(deadline);
  world_->set_deadline(deadline);
  const MpiProgram mpi(program, *world_);
  const MpiScene scene(mpi, *world_);
  HostMemory memory(program, 1, mpi.ranks);
  Measurement measurement;
  measurement.backend = "mpi";
  measurement.device = fmt::format("{} processes on {}", world_->size(), fmt::join(world_->hosts(), ", "));
  measurement.moved = between_ranks(program);
  measurement.memory = program.memory();
  measurement.passes_needed = memory.passes();
  const std::uint32_t runs = run_count(options, memory.passes());
  for (std::uint32_t r = 0; r < runs; ++r) {
    memory.prepare(r);
    const std::vector<LocalSpan> own = MpiRun(mpi, memory, *world_, settings_.watch).run();
    Timeline timeline = gather(mpi, *world_, own);
    if (is_timed(options, r)) add_repetition(measurement, std::move(timeline));
    if (!options.verify) continue;
    judge(mpi, *world_, memory, r, options.most_mismatches, measurement);
    measurement.passes = std::min(r + 1, memory.passes());
  }
  return measurement;
}

}  // namespace isthmus::hw
