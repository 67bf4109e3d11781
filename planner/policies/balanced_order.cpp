#include "planner/policies/balanced_order.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <tuple>
#include <utility>

#include "planner/large_arrays.hpp"
#include "planner/policies/balanced_pattern.hpp"
#include "planner/policies/lent_pattern.hpp"
#include "planner/policies/rounds_in_flight.hpp"
#include "planner/rounds.hpp"

namespace isthmus {
namespace {

constexpr std::uint32_t window = many_in_flight;
constexpr std::uint32_t halved = 8;        // network rounds at the end: what they bring has to be passed on
constexpr std::uint32_t fan_window = 128;  // where one transfer feeds several in its lane, as bursts
constexpr std::uint8_t tree_children = 2;  // so many are no burst
constexpr std::int64_t block_share = 2;    // a block's steps have at most a round's bytes by this
constexpr std::uint32_t not_here = 0xFFFFFFFF;

/// Instances that share their rounds, by the first of them.
struct Block {
  std::uint32_t instance = 0, instances = 1, pattern = 0;
  std::uint32_t first_transfer = 0, first_feed = 0;  // of the present lane
};

/// A step of the present pattern on the present lane.
struct Move {
  LocalRank source, target;
  Bytes bytes;
};

/// A pattern without what does not matter for the order: numbers of steps, ascending. Steps are large.
struct MovesOfPattern {
  std::array<std::vector<std::uint32_t>, 2> of_lane;  // network, NVLink
  std::vector<std::uint32_t> followers;  // that go on with what others brought, over NVLink or from a lender
  std::vector<std::uint32_t> moves;      // of the present lane, and present in its rounds
  std::vector<Feed> feeds;               // between these moves
};

bool alike(const Instance& a, const Instance& b) {
  return a.pattern == b.pattern && a.source_base == b.source_base && a.target_base == b.target_base;
}

class BalancedOrder {
 public:
  BalancedOrder(const Refit& refit, const BalancedRounds& wanted, Plan& plan)
      : refit_(refit), wanted_(wanted), plan_(plan) {}

  void run() {
    find_blocks();
    for (std::size_t p = 0; p < blocks_of_.size(); ++p)
      if (!blocks_of_[p].empty()) list_steps(plan_.patterns[p], patterns_[p]);
    const std::uint32_t network_rounds = order_lane(network_lane, 0);
    order_lane(nvlink_lane, network_rounds);
    if (network_rounds > 0) follow_feeds();
    if (plan_.lanes.size() > lending_lane) precede_loans();
  }

 private:
  void find_blocks() {
    std::vector<std::uint32_t> first_of(plan_.instances.size());
    std::iota(first_of.begin(), first_of.end(), 0U);
    if (plan_.step_count() > wanted_.most_single_steps) join_alike(first_of);
    assign_schedule(first_of);
  }

  /// Names the first instance of the block that each one is in.
  void join_alike(std::vector<std::uint32_t>& first_of) const {
    std::vector<std::uint32_t> order = first_of;
    std::stable_sort(order.begin(), order.end(), [this](std::uint32_t a, std::uint32_t b) {
      const Instance &x = plan_.instances[a], &y = plan_.instances[b];
      return std::tie(x.pattern, x.source_base, x.target_base) <
             std::tie(y.pattern, y.source_base, y.target_base);
    });
    for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
      const Instance& first = plan_.instances[order[begin]];
      while (end < order.size() && alike(first, plan_.instances[order[end]])) ++end;
      const std::size_t most = most_in_block(first);
      const std::size_t blocks = (end - begin + most - 1) / most;
      for (std::size_t i = begin; i < end; ++i) {
        const std::size_t block = (i - begin) * blocks / (end - begin);
        const std::size_t start = begin + (block * (end - begin) + blocks - 1) / blocks;
        first_of[order[i]] = order[start];
      }
    }
  }

  /// How many equal instances may share their rounds.
  std::size_t most_in_block(const Instance& instance) const {
    std::array<Bytes, 2> largest{Bytes{1}, Bytes{1}};
    const Layout& layout = refit_.geometry(instance.tensor).source;
    for (const Step& step : plan_.pattern(instance).steps)
      largest[std::min(step.lane, nvlink_lane)] =
          std::max(largest[std::min(step.lane, nvlink_lane)], layout.bytes(step.region));
    std::int64_t most = std::int64_t{1} << 20U;
    for (const std::uint16_t lane : {network_lane, nvlink_lane})
      most = std::min(most, wanted_.bytes[lane].value / block_share / largest[lane].value);
    return to_size(std::max<std::int64_t>(1, most));
  }

  void assign_schedule(const std::vector<std::uint32_t>& first_of) {
    std::vector<std::uint32_t> block_of(first_of.size());
    blocks_of_.resize(plan_.patterns.size());
    patterns_.resize(plan_.patterns.size());
    std::uint32_t next = 0;
    for (std::uint32_t i = 0; i < first_of.size(); ++i) {
      Instance& instance = plan_.instances[i];
      if (first_of[i] != i) {
        instance.schedule = plan_.instances[first_of[i]].schedule;
        ++blocks_[block_of[first_of[i]]].instances;
        continue;
      }
      block_of[i] = static_cast<std::uint32_t>(blocks_.size());
      blocks_of_[instance.pattern.index()].push_back(block_of[i]);
      blocks_.push_back({i, 1, instance.pattern.value});
      instance.schedule = next;
      next += static_cast<std::uint32_t>(plan_.pattern(instance).steps.size());
    }
    plan_.schedule = large_vector<std::uint32_t>(next);
  }

  static void list_steps(const Pattern& pattern, MovesOfPattern& list) {
    for (std::uint32_t i = 0; i < pattern.steps.size(); ++i) {
      const Step& step = pattern.steps[i];
      const bool from_lender = step.lane == lending_lane && !is_loan(step);
      if (step.lane <= nvlink_lane) list.of_lane[step.lane].push_back(i);
      if ((step.lane == nvlink_lane || from_lender) && step.after_begin != step.after_end)
        list.followers.push_back(i);
    }
  }

  /// Orders the steps of one lane. Of the NVLink lane, steps that wait for the network are left out when
  /// there are network rounds, and the rest is spread over them.
  std::uint32_t order_lane(std::uint16_t lane, std::uint32_t network_rounds) {
    const bool unfed_only = network_rounds > 0;
    find_places(lane, unfed_only);
    for (const std::vector<std::uint32_t>& blocks : blocks_of_) add_transfers(blocks);
    if (fans_out()) plan_.lanes[lane].window = fan_window;
    const bool nvlink = lane == nvlink_lane, own_nics_only = plan_.lanes.size() <= lending_lane;
    const std::vector<std::uint32_t> rounds =
        order_rounds(transfers_, feeds_,
                     {wanted_.rounds[lane], wanted_.smallest[lane], window,
                      nvlink && !unfed_only ? fan_window : 0, !nvlink && own_nics_only ? halved : 0});
    if (!nvlink && own_nics_only && feeds_.empty())
      plan_.lanes[lane].window = rounds_in_flight(refit_, plan_, transfers_, rounds);
    const std::uint32_t count = rounds.empty() ? 0 : 1 + *std::max_element(rounds.begin(), rounds.end());
    for (const std::vector<std::uint32_t>& blocks : blocks_of_) {
      if (blocks.empty()) continue;
      const std::vector<std::uint32_t>& moves = patterns_[blocks_[blocks.front()].pattern].moves;
      for (const std::uint32_t block : blocks) {
        std::uint32_t* const schedule = plan_.schedule.data() + instance_of(block).schedule;
        const std::uint32_t* round = rounds.data() + blocks_[block].first_transfer;
        for (const std::uint32_t step : moves) {
          const auto spread = std::uint64_t{*round} * network_rounds / std::max(1U, count);
          schedule[step] = unfed_only ? static_cast<std::uint32_t>(spread) : *round;
          ++round;
        }
      }
    }
    return count;
  }

  const Instance& instance_of(std::uint32_t block) const { return plan_.instances[blocks_[block].instance]; }
  const Pattern& pattern_of(std::uint32_t block) const { return plan_.pattern(instance_of(block)); }

  /// The steps of a pattern on one lane, and what feeds what among them.
  void list_moves(const Pattern& pattern, std::uint16_t lane, bool unfed_only, MovesOfPattern& list) {
    list.moves = std::move(list.of_lane[lane]);
    if (unfed_only) {
      std::vector<std::uint32_t> unfed;
      std::set_difference(list.moves.begin(), list.moves.end(), list.followers.begin(), list.followers.end(),
                          std::back_inserter(unfed));
      list.moves = std::move(unfed);
    }
    list.feeds.clear();
    if (unfed_only || pattern.after.empty()) return;
    move_of_.assign(pattern.steps.size(), not_here);
    for (std::uint32_t move = 0; move < list.moves.size(); ++move) {
      move_of_[list.moves[move]] = move;
      add_feeds(pattern, pattern.steps[list.moves[move]], move, list.feeds);
    }
  }

  /// Feeds within the lane; through a step of the other lane its own feeds count.
  void add_feeds(const Pattern& pattern, const Step& step, std::uint32_t self, std::vector<Feed>& feeds) {
    for (std::uint32_t a = step.after_begin; a < step.after_end; ++a) {
      const std::uint32_t before = pattern.after[a];
      if (move_of_[before] != not_here) {
        feeds.push_back({self, move_of_[before]});
      } else {
        add_feeds(pattern, pattern.steps[before], self, feeds);
      }
    }
  }

  /// Where the transfers and feeds of each block begin: in the order of the blocks.
  void find_places(std::uint16_t lane, bool unfed_only) {
    for (std::size_t p = 0; p < blocks_of_.size(); ++p)
      if (!blocks_of_[p].empty()) list_moves(plan_.patterns[p], lane, unfed_only, patterns_[p]);
    std::uint32_t next_transfer = 0, next_feed = 0;
    for (Block& block : blocks_) {
      const MovesOfPattern& list = patterns_[block.pattern];
      block.first_transfer =
          std::exchange(next_transfer, next_transfer + static_cast<std::uint32_t>(list.moves.size()));
      block.first_feed = std::exchange(next_feed, next_feed + static_cast<std::uint32_t>(list.feeds.size()));
    }
    transfers_ = large_vector<Transfer>(next_transfer);
    feeds_ = large_vector<Feed>(next_feed);
  }

  /// Those of all blocks of one pattern.
  void add_transfers(const std::vector<std::uint32_t>& blocks) {
    if (blocks.empty()) return;
    const Pattern& pattern = pattern_of(blocks.front());
    const MovesOfPattern& list = patterns_[blocks_[blocks.front()].pattern];
    const Layout& layout = refit_.geometry(instance_of(blocks.front()).tensor).source;
    own_.clear();
    reserve_large(own_, list.moves.size());
    for (const std::uint32_t i : list.moves) {
      const Step& step = pattern.steps[i];
      own_.push_back({step.source, step.target, layout.bytes(step.region)});
    }
    for (const std::uint32_t number : blocks) {
      const Block& block = blocks_[number];
      const Instance& instance = plan_.instances[block.instance];
      Transfer* transfer = transfers_.data() + block.first_transfer;
      for (const Move& move : own_)
        *transfer++ = {refit_.gpu(global_rank(instance, move.source)).value,
                       refit_.gpu(global_rank(instance, move.target)).value,
                       Bytes{move.bytes.value * std::int64_t{block.instances}}};
      Feed* next = feeds_.data() + block.first_feed;
      for (const Feed& feed : list.feeds)
        *next++ = {block.first_transfer + feed.transfer, block.first_transfer + feed.feed};
    }
  }

  bool fans_out() const {
    std::vector<std::uint8_t> fed(transfers_.size());
    return std::any_of(feeds_.begin(), feeds_.end(),
                       [&fed](const Feed& feed) { return ++fed[feed.feed] > tree_children; });
  }

  /// To the lender of a NIC out.
  static bool is_loan(const Step& step) { return step.lane == lending_lane && step.to == Buffer::staging; }

  /// What goes to a lender goes one round before it leaves from there.
  void precede_loans() {
    for (std::uint32_t block = 0; block < blocks_.size(); ++block) {
      const Pattern& pattern = pattern_of(block);
      std::uint32_t* const rounds = plan_.schedule.data() + instance_of(block).schedule;
      for (std::uint32_t i = 0; i < pattern.steps.size(); ++i)
        if (is_loan(pattern.steps[i])) rounds[i] = not_here;
      for (std::uint32_t i = 0; i < pattern.steps.size(); ++i) {
        const Step& step = pattern.steps[i];
        const std::uint32_t round = std::max(1U, rounds[i]) - 1;
        for (std::uint32_t a = step.after_begin; a < step.after_end; ++a) {
          std::uint32_t& before = rounds[pattern.after[a]];
          if (is_loan(pattern.steps[pattern.after[a]])) before = std::min(before, round);
        }
      }
    }
  }

  /// NVLink passes follow one round after what they wait for.
  void follow_feeds() {
    for (const std::vector<std::uint32_t>& blocks : blocks_of_) {
      if (blocks.empty()) continue;
      const Pattern& pattern = pattern_of(blocks.front());
      own_feeds_.clear();
      for (const std::uint32_t i : patterns_[blocks_[blocks.front()].pattern].followers) {
        const Step& step = pattern.steps[i];
        for (std::uint32_t a = step.after_begin; a < step.after_end; ++a)
          own_feeds_.push_back({i, pattern.after[a]});
      }
      for (const std::uint32_t block : blocks) {
        std::uint32_t* const rounds = plan_.schedule.data() + instance_of(block).schedule;
        for (const Feed& feed : own_feeds_)
          rounds[feed.transfer] = std::max(rounds[feed.transfer], rounds[feed.feed] + 1);
      }
    }
  }

  const Refit& refit_;
  const BalancedRounds& wanted_;
  Plan& plan_;
  std::vector<Block> blocks_;
  std::vector<std::vector<std::uint32_t>> blocks_of_;  // by pattern
  std::vector<MovesOfPattern> patterns_;               // of those that have blocks
  std::vector<Transfer> transfers_;                    // of the present lane, block by block
  std::vector<Feed> feeds_;                            // between them
  std::vector<std::uint32_t> move_of_;                 // of the present pattern, by step
  std::vector<Move> own_;                              // by move
  std::vector<Feed> own_feeds_;                        // between steps
};

}  // namespace

std::vector<Lane> balanced_lanes() { return {{"network", window, true}, {"nvlink", fan_window, true}}; }

void order_balanced(const Refit& refit, const BalancedRounds& wanted, Plan& plan) {
  BalancedOrder(refit, wanted, plan).run();
}

}  // namespace isthmus
