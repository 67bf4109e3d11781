// The rules that the sizes of the grids must keep among themselves.

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "model/grid.hpp"
#include "model/rank_grid.hpp"
#include "model/scenario_reader.hpp"

namespace isthmus {
namespace {

class Judge {
 public:
  explicit Judge(const Scenario& scenario) : scenario_(scenario) {}

  std::vector<InputFault> take() { return std::move(faults_); }

  /// The change names numbers that fit `every_grid`, a multiple of this and of the side's other grids.
  void multiple(std::string_view key, int gpus, std::int64_t grid, std::string_view formula,
                std::int64_t every_grid) {
    if (gpus % grid == 0) return;
    const bool possible = every_grid <= max_gpus;
    add(key, fmt::format("{} GPUs", gpus), fmt::format("a multiple of {} = {}", formula, grid),
        possible ? nearest_multiples(gpus, every_grid) + " GPUs"
                 : fmt::format("smaller sizes: {} GPUs are the most", max_gpus));
  }

  void expert_divisor(std::string_view key, int ep, std::int64_t experts) {
    if (ep == 1) return;
    if (experts == 0) {
      add(key, fmt::format("{}", ep), "1 (the model has no experts)", "1");
    } else if (experts % ep != 0) {
      add(key, fmt::format("{}", ep), fmt::format("a divisor of the {} experts", experts),
          nearest_divisors(ep, experts));
    }
  }

  void add(std::string_view key, std::string found, std::string allowed, std::string change) {
    faults_.push_back({scenario_.at(key), std::move(found), std::move(allowed), std::move(change)});
  }

 private:
  const Scenario& scenario_;
  std::vector<InputFault> faults_;
};

/// `dp` is the larger one of the two grids, `tp` too.
void judge_order(const TrainSpec& train, std::int64_t tp, std::int64_t dp, Judge& judge) {
  constexpr std::string_view form = "tp, cp, ep, dp and pp in any order, joined by dashes, pp last";
  const std::string usual = TrainSpec{}.order;
  if (!is_rank_order(train.order)) {
    judge.add("train.order", fmt::format("'{}'", train.order), std::string(form), usual);
    return;
  }
  std::string missing;
  for (const auto& [axis, size] : {std::pair<std::string_view, std::int64_t>("tp", tp),
                                   std::pair<std::string_view, std::int64_t>("cp", train.cp),
                                   std::pair<std::string_view, std::int64_t>("ep", train.ep),
                                   std::pair<std::string_view, std::int64_t>("dp", dp)}) {
    if (size == 1 || train.order.find(axis) != std::string::npos) continue;
    missing += fmt::format("{} {} of {}", missing.empty() ? "" : " and", axis, size);
  }
  if (missing.empty()) return;
  judge.add("train.order", fmt::format("'{}' without{}", train.order, missing), std::string(form), usual);
}

/// True when each run of tp x fsdp ranks of the one grid is one of the other.
bool shard_over_same_ranks(const TrainSpec& train, std::int64_t ranks) {
  const std::int64_t etp = train.etp.value_or(train.tp), expert = etp * train.ep;
  const std::int64_t unit = std::int64_t{train.tp} * train.fsdp;
  std::vector<Rank> of_dense =
      grid_ranks(train.order, {train.tp, train.cp, 1, ranks / (train.tp * train.cp)}, train.fsdp);
  std::vector<Rank> of_expert = grid_ranks(train.order, {etp, 1, train.ep, ranks / expert}, unit / expert);
  for (std::int64_t first = 0; first < ranks; first += unit) {
    std::sort(of_dense.begin() + first, of_dense.begin() + first + unit);
    std::sort(of_expert.begin() + first, of_expert.begin() + first + unit);
  }
  return of_dense == of_expert;
}

/// Of the ranks that FSDP shards over: consecutive replicas, and for experts the same ranks.
void judge_fsdp(const TrainSpec& train, std::int64_t replicas, bool experts, Judge& judge) {
  if (train.fsdp == 1) return;
  if (replicas % train.fsdp != 0) {
    judge.add("train.fsdp", fmt::format("{}", train.fsdp),
              fmt::format("a divisor of the {} replicas, gpus / (tp x pp)", replicas),
              nearest_divisors(train.fsdp, replicas));
    return;
  }
  const std::int64_t expert = std::int64_t{train.ep} * train.etp.value_or(train.tp);
  const std::int64_t unit = std::int64_t{train.tp} * train.fsdp;
  if (!experts) return;
  if (unit % expert == 0) {
    const bool valid_order = is_rank_order(train.order);
    if (!valid_order || shard_over_same_ranks(train, train.gpus / train.pp)) return;
    judge.add("train.order", fmt::format("'{}'", train.order),
              "with fsdp: an order by which experts are sharded over the ranks that shard the other tensors",
              TrainSpec{}.order);
    return;
  }
  judge.add("train.fsdp", fmt::format("tp x fsdp = {}", unit),
            fmt::format("a multiple of ep x etp = {}", expert),
            fmt::format("tp x fsdp of {}", nearest_multiples(unit, expert)));
}

void judge_train(const TrainSpec& train, const Inventory& inventory, Judge& judge) {
  const std::int64_t etp = train.etp.value_or(train.tp);
  const std::int64_t dense = std::int64_t{train.tp} * train.cp * train.pp;
  const std::int64_t expert = inventory.experts > 0 ? etp * train.ep * train.pp : 1;
  const bool small = dense <= max_gpus && expert <= max_gpus;  // else their product may not fit
  const std::int64_t both = small ? std::lcm(dense, expert) : std::max(dense, expert);
  judge.multiple("train.gpus", train.gpus, dense, "tp x cp x pp", both);
  judge.multiple("train.gpus", train.gpus, expert, "etp x ep x pp", both);
  judge.expert_divisor("train.ep", train.ep, inventory.experts);
  if (train.gpus % dense != 0 || train.gpus % expert != 0) return;  // the rest divides by these
  const bool experts = inventory.experts > 0;
  judge_order(train, experts ? std::max<std::int64_t>(train.tp, etp) : train.tp,
              experts ? std::max(train.gpus / dense, train.gpus / expert) : train.gpus / dense, judge);
  judge_fsdp(train, train.gpus / (train.tp * std::int64_t{train.pp}), inventory.experts > 0, judge);
}

/// Experts on the generation side: ep x etp ranks of a stage share them; slots are dealt evenly.
void judge_generate_experts(const GenerateSpec& generate, const Inventory& inventory, Judge& judge) {
  if (generate.ep == 1) {
    if (generate.etp && *generate.etp != generate.tp) {
      judge.add("generate.etp", fmt::format("{}", *generate.etp),
                fmt::format("tp = {} with ep 1", generate.tp), fmt::format("{}", generate.tp));
    }
    if (generate.redundant_experts == 0) return;
    judge.add("generate.redundant_experts", fmt::format("{}", generate.redundant_experts),
              "0 with ep 1 (every rank has a part of every expert)", "0");
    return;
  }
  if (inventory.experts == 0) {
    judge.add("generate.ep", fmt::format("{}", generate.ep), "1 (the model has no experts)", "1");
    return;
  }
  const std::int64_t etp = generate_etp(generate), ranks = generate.gpus / generate.pp;
  if (!generate.etp && generate.tp % generate.ep != 0 && generate.ep % generate.tp != 0) {
    judge.add("generate.ep", fmt::format("{}", generate.ep),
              fmt::format("a divisor or a multiple of tp = {}", generate.tp),
              generate.ep < generate.tp ? nearest_divisors(generate.ep, generate.tp)
                                        : nearest_multiples(generate.ep, generate.tp));
  } else if (ranks % (generate.ep * etp) != 0) {
    judge.add("generate.ep", fmt::format("ep x etp = {}", generate.ep * etp),
              fmt::format("a divisor of the {} ranks, gpus / pp", ranks),
              fmt::format("ep x etp of {}", nearest_divisors(generate.ep * etp, ranks)));
  }
  if (generate.ep > inventory.experts + generate.redundant_experts) {
    const std::int64_t most = inventory.experts + generate.redundant_experts;
    judge.add("generate.ep", fmt::format("{}", generate.ep),
              fmt::format("at most the {} {}", most, generate.redundant_experts > 0 ? "slots" : "experts"),
              fmt::format("{}", most));
  }
  const std::int64_t copies = generate.redundant_experts, slots = inventory.experts + copies;
  if (copies == 0) return;
  if (copies > inventory.experts) {
    judge.add("generate.redundant_experts", fmt::format("{}", copies),
              fmt::format("at most the {} experts", inventory.experts), fmt::format("{}", inventory.experts));
  } else if (slots % generate.ep != 0) {
    judge.add("generate.redundant_experts", fmt::format("{} slots", slots),
              fmt::format("a multiple of ep = {}", generate.ep),
              fmt::format("{} slots", nearest_multiples(slots, generate.ep)));
  }
}

void judge_generate(const GenerateSpec& generate, const Inventory& inventory, Judge& judge) {
  const std::int64_t engine = std::int64_t{generate.tp} * generate.pp;
  const std::string_view formula = generate.pp == 1 ? "tp" : "tp x pp";
  judge.multiple("generate.gpus", generate.gpus, engine, formula, engine);
  const std::int64_t engines = generate.gpus / engine;
  if (generate.dp && *generate.dp != engines) {
    const std::int64_t needed = *generate.dp * engine;
    judge.add("generate.dp", fmt::format("{}", *generate.dp),
              fmt::format("gpus / {} = {}", generate.pp == 1 ? "tp" : "(tp x pp)", engines),
              (engines > 0 ? fmt::format("{}, or ", engines) : "") +
                  fmt::format("{} GPUs for {} engines of {} ranks", needed, *generate.dp, engine));
  }
  if (generate.gpus % engine == 0) judge_generate_experts(generate, inventory, judge);
}

}  // namespace

std::vector<InputFault> grid_faults(const Scenario& scenario, const Inventory& inventory) {
  const TrainSpec& train = *scenario.train;
  const GenerateSpec& generate = *scenario.generate;
  Judge judge(scenario);
  judge_train(train, inventory, judge);
  judge_generate(generate, inventory, judge);
  return judge.take();
}

}  // namespace isthmus
