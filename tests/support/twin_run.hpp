#pragma once
// Internal to the twin: executions of one plan, one after the other. Operations are made first (joined
// where a lane coalesces), then launched and finished one by one; every rank walks its groups lane by lane.
// Invariant: an operation reads when it is launched, and staging again when it finishes; of two values it
// moves the wrong one. It writes once, when it finishes.

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/twin.hpp"

namespace isthmus::test {

class TwinRun {
 public:
  TwinRun(const Twin& twin, const Plan& plan) : twin_(twin), plan_(plan) {
    result_.impossible = find_impossible();
    if (!result_.impossible.empty()) return;
    set_up_ = set_up();
    make_operations();
    make_walks();
    prepared_ = result_;
  }

  TwinResult run(TwinSchedule schedule) {
    if (!result_.impossible.empty()) return result_;
    begin();
    make_priorities(schedule);
    execute();
    judge();
    return result_;
  }
  EndState end_state() const;

 private:
  struct Memory {
    std::vector<std::uint64_t> values;  // element ids; 0 is poison
    std::vector<int> writes;
    std::vector<bool> installed;  // loaded, or processed since the last write
  };
  using Piece = std::pair<std::size_t, std::size_t>;  // instance, step
  struct Walk {                                       // of one rank along one lane
    std::vector<std::vector<std::size_t>> groups;     // operations, by ascending group
    std::size_t started = 0, done = 0;                // groups from the first on
  };
  struct Operation {
    std::uint32_t lane = 0, group = 0;
    StepKind kind = StepKind::send;
    Buffer from = Buffer::source, to = Buffer::target;
    std::vector<std::uint32_t> ranks;  // source and target, or the members in their order
    std::uint32_t root = 0;            // broadcast
    std::vector<Piece> pieces;
    std::set<std::size_t> after;                        // operations
    std::vector<std::size_t> dependents;                // those that wait for it
    std::vector<std::vector<std::size_t>> elements;     // of the region, by piece
    std::vector<std::vector<std::uint64_t>> in_flight;  // what was read, by piece and element of the region
    std::vector<std::pair<Walk*, std::size_t>> groups;  // its group in the walk of each of its ranks
    bool connected = true;                              // its ranks have a communicator in common
    bool launched = false, complete = false;
  };
  /// A communicator as the calls that made it: splits and colours.
  using Calls = std::vector<std::uint32_t>;
  using RankLane = std::pair<std::uint32_t, std::uint32_t>;

  std::string find_impossible() const;
  std::string find_impossible_step(const Instance& instance, std::size_t index) const;
  bool impossible_ranks(const Instance& instance, const Step& step) const;
  void make_operations();
  Operation operation_of(const Instance& instance, std::size_t step) const;
  void note_size(const Instance& instance, const Step& step);
  void begin();
  void make_priorities(TwinSchedule schedule);
  void make_walks();
  void start_groups(std::size_t window, Walk& walk);
  void execute();
  bool may_launch(const Operation& operation) const;
  void launch(Operation& operation);
  std::vector<std::uint64_t> values_of(const Operation& operation, std::size_t piece);
  void read_again(Operation& operation);
  std::uint64_t held_value(std::size_t tensor, std::uint32_t rank, std::size_t element) const;
  void quantise(const Operation& operation, std::size_t piece, std::vector<std::uint64_t>& values) const;
  void finish(Operation& operation);
  std::vector<bool> own_part(const Piece& piece, std::uint32_t rank) const;
  bool set_up();
  bool enter(std::size_t split, const std::set<std::uint32_t>& everybody);
  bool is_connected(const Operation& operation) const;
  void install(const Operation& operation, std::size_t piece);
  void note_puts(const Operation& operation, bool launched);
  std::uint64_t gather(std::size_t instance, const Operation& operation, std::size_t element);
  std::uint64_t read(std::size_t instance, std::uint32_t rank, Buffer from, std::size_t element);
  void write(std::size_t index, std::uint32_t rank, Buffer to, std::size_t element, std::uint64_t value);
  /// Where an element lies in the memory that instances share: its first byte.
  std::size_t place_of(std::size_t instance, std::uint32_t rank, std::size_t element);
  std::uint64_t read_shared(std::size_t instance, std::uint32_t rank, std::size_t element);
  void write_shared(std::size_t instance, std::uint32_t rank, std::size_t element, std::uint64_t value);
  void judge();
  std::vector<std::size_t> elements_in(const Instance& instance, const Step& step) const;

  const Twin::Place& place(std::size_t tensor, std::uint32_t rank, Buffer buffer) const {
    const Twin::Tensor& of = twin_.tensors_[tensor];
    return buffer == Buffer::source ? of.source_place[rank] : of.target_place[rank];
  }
  static std::uint64_t id_of(std::size_t tensor, std::size_t element) {
    return tensor * 1'000'000 + element + 1;
  }
  static constexpr std::uint64_t other_version = 1'000'000'000;  // added to ids of another refit's weights
  static constexpr std::uint64_t in_bf16 = 4'000'000'000'000;    // added to ids of what is to be quantised
  const Step& step_of(const Piece& piece) const {
    return plan_.patterns[plan_.instances[piece.first].pattern.value].steps[piece.second];
  }

  const Twin& twin_;
  const Plan& plan_;
  TwinResult result_, prepared_;  // the latter as each run begins
  std::vector<Operation> operations_;
  std::vector<std::size_t> priority_;
  std::vector<std::size_t> ready_;  // operations that may have become free to run
  std::vector<Memory> memories_;
  std::vector<std::vector<std::vector<std::uint64_t>>> staging_;  // element ids by tensor, rank, element
  std::vector<std::map<std::uint32_t, Calls>> made_;              // by split and rank
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> kept_;  // by rank and slot: the split
  std::map<Calls, std::size_t> members_;
  bool set_up_ = true;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> puts_;  // in flight, by sender and receiver
  std::map<RankLane, Walk> walks_;
  struct Box {
    Element low, high;  // inclusive
  };
  std::map<std::pair<std::size_t, std::uint32_t>, Box> staged_;  // by instance and rank
  /// By instance and rank: the elements that its steps have brought into shared memory there.
  std::map<std::pair<std::size_t, std::uint32_t>, std::set<std::size_t>> brought_;
  /// By buffer and rank: which element each byte belongs to.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::uint64_t>> shared_;
};

}  // namespace isthmus::test
