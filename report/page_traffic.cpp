#include "report/page_traffic.hpp"

#include <map>
#include <tuple>

#include <fmt/format.h>

namespace isthmus::report {
namespace {

std::string side_of(const Refit& refit, std::size_t rank) {
  if (rank >= refit.members()) return "relay";
  if (refit.train_ranks == 0) return "";
  return rank < refit.train_ranks ? "training" : "generation";
}

struct RowsOfRanks {
  std::vector<std::uint32_t> row;  // by rank
  TrafficMatrix matrix;            // without bytes
};

RowsOfRanks single_ranks(const Refit& refit) {
  RowsOfRanks rows{{}, {"rank", {}, {}}};
  for (std::uint32_t r = 0; r < refit.ranks(); ++r) {
    const std::string side = side_of(refit, r);
    rows.row.push_back(r);
    rows.matrix.names.push_back(side.empty() ? fmt::format("rank {}", r)
                                             : fmt::format("rank {} ({})", r, side));
  }
  return rows;
}

RowsOfRanks rows_of_hosts(const Refit& refit, std::size_t most) {
  std::map<std::uint32_t, std::uint32_t> number_of;  // of the hosts that hold ranks
  for (const GpuId gpu : refit.gpu_of_rank) number_of[refit.fabric.host_of(gpu).value] = 0;
  const auto together = static_cast<std::uint32_t>((number_of.size() + most - 1) / most);
  RowsOfRanks rows{{}, {together == 1 ? "host" : fmt::format("{} hosts", together), {}, {}}};
  std::uint32_t count = 0, first = 0;
  for (auto& [host, number] : number_of) {
    number = count++ / together;
    if (number == rows.matrix.names.size()) {
      first = host;
      rows.matrix.names.push_back(fmt::format("host {}", host));
    } else {
      rows.matrix.names.back() = fmt::format("hosts {}-{}", first, host);
    }
  }
  for (const GpuId gpu : refit.gpu_of_rank) rows.row.push_back(number_of[refit.fabric.host_of(gpu).value]);
  return rows;
}

class TrafficCounter {
 public:
  explicit TrafficCounter(RowsOfRanks rows) : rows_(std::move(rows)), size_(rows_.matrix.size()) {
    rows_.matrix.bytes.assign(size_ * size_, 0);
  }

  void add(Rank from, Rank to, std::int64_t bytes) {
    rows_.matrix.bytes[rows_.row[from.index()] * size_ + rows_.row[to.index()]] += bytes;
  }
  void broadcast(const std::vector<Rank>& members, Rank root, std::int64_t bytes) {
    for (const Rank member : members) {
      if (member != root) add(root, member, bytes);
    }
  }
  /// What does not divide goes to the first members, a byte each.
  void all_gather(const std::vector<Rank>& members, std::int64_t bytes) {
    const auto count = static_cast<std::int64_t>(members.size());
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t share = bytes / count + (i < bytes % count ? 1 : 0);
      broadcast(members, members[static_cast<std::size_t>(i)], share);
    }
  }
  TrafficMatrix take() { return std::move(rows_.matrix); }

 private:
  RowsOfRanks rows_;
  std::size_t size_;
};

}  // namespace

TrafficMatrix traffic_matrix(const Refit& refit, const Operations& operations, std::size_t most_rows) {
  TrafficCounter counter(refit.ranks() <= most_rows ? single_ranks(refit) : rows_of_hosts(refit, most_rows));
  // Collectives of equal members first together: each is worth as many cells as it has members.
  std::map<std::tuple<StepKind, std::uint32_t, Rank>, std::int64_t> collectives;
  for (const Operation& each : operations.list) {
    if (operations.collective(each)) {
      collectives[{each.kind, each.members, each.source}] += each.bytes.value;
    } else if (each.source != each.target) {
      counter.add(each.source, each.target, each.bytes.value);
    }
  }
  for (const auto& [key, bytes] : collectives) {
    const auto& [kind, index, root] = key;
    const std::vector<Rank>& members = operations.members[index];
    if (kind == StepKind::all_gather) {
      counter.all_gather(members, bytes);
    } else {
      counter.broadcast(members, root, bytes);
    }
  }
  return counter.take();
}

}  // namespace isthmus::report
