#include "hw/process_part.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "hw/fold.hpp"

namespace isthmus::hw {
namespace {

constexpr std::uint32_t not_here = 0xFFFFFFFF;

/// The processes of an operation's ranks, each once, in order of first appearance; the source's first.
std::vector<std::uint32_t> processes_in(const Operations& operations, const Operation& operation,
                                        const std::vector<std::uint32_t>& process_of) {
  std::vector<std::uint32_t> found;
  const auto add = [&](Rank rank) {
    const std::uint32_t process = process_of[rank.index()];
    if (std::find(found.begin(), found.end(), process) == found.end()) found.push_back(process);
  };
  add(operation.source);
  if (operations.collective(operation)) {
    for (const Rank rank : operations.members[operation.members]) add(rank);
  } else {
    add(operation.target);
  }
  return found;
}

bool contains(const std::vector<std::uint32_t>& list, std::uint32_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

class PartBuilder {
 public:
  PartBuilder(const Operations& all, const std::vector<std::uint32_t>& process_of, std::uint32_t process)
      : all_(all), process_(process), local_(all.list.size(), not_here) {
    for (const Operation& operation : all.list)
      processes_.push_back(processes_in(all, operation, process_of));
    part_.operations.lanes = all.lanes;
    part_.operations.members = all.members;
  }

  ProcessPart build() {
    list_own();
    for (std::uint32_t i = 0; i < all_.list.size(); ++i) {
      for (const std::uint32_t before : all_.dependencies(all_.list[i])) add_dependency(i, before);
    }
    Operations& own = part_.operations;
    for (std::size_t i = 0; i < own.list.size(); ++i) {
      own.list[i].after_begin = static_cast<std::uint32_t>(own.after.size());
      own.after.insert(own.after.end(), after_[i].begin(), after_[i].end());
      own.list[i].after_end = static_cast<std::uint32_t>(own.after.size());
    }
    add_notices();
    return std::move(part_);
  }

 private:
  void list_own() {
    for (std::uint32_t i = 0; i < all_.list.size(); ++i) {
      if (!contains(processes_[i], process_)) continue;
      local_[i] = static_cast<std::uint32_t>(part_.number.size());
      part_.number.push_back(i);
      part_.operations.list.push_back(all_.list[i]);
    }
    after_.resize(part_.number.size());
    part_.tell.resize(part_.number.size());
  }

  void add_dependency(std::uint32_t later, std::uint32_t before) {
    if (local_[later] != not_here && local_[before] != not_here) {
      after_[local_[later]].push_back(local_[before]);
      return;
    }
    if (local_[later] == not_here && local_[before] == not_here) return;
    const std::vector<std::uint32_t>&first = processes_[before], &second = processes_[later];
    if (std::any_of(first.begin(), first.end(), [&](auto process) { return contains(second, process); }))
      return;
    const std::uint32_t waiting = second.front();
    if (local_[before] != not_here) {
      std::vector<std::uint32_t>& tell = part_.tell[local_[before]];
      if (!contains(tell, waiting)) tell.push_back(waiting);
    } else if (waiting == process_) {
      for (const std::uint32_t teller : first) after_[local_[later]].push_back(notice(before, teller));
    }
  }

  std::uint32_t notice(std::uint32_t operation, std::uint32_t teller) {
    const auto next = static_cast<std::uint32_t>(part_.number.size() + part_.notices.size());
    const auto [found, inserted] = notice_of_.try_emplace({operation, teller}, next);
    if (inserted) part_.notices.push_back({operation, teller});
    return found->second;
  }

  /// Notices may come in any order: a lane of their own, on which all groups are open.
  void add_notices() {
    if (part_.notices.empty()) return;
    Operations& own = part_.operations;
    Operation wait;
    wait.kind = StepKind::copy;
    wait.lane = {static_cast<std::uint32_t>(own.lanes.size())};
    wait.source = wait.target = own.list.front().source;
    own.lanes.push_back({"notices", std::numeric_limits<std::int32_t>::max(), false});
    wait.after_begin = wait.after_end = static_cast<std::uint32_t>(own.after.size());
    own.list.insert(own.list.end(), part_.notices.size(), wait);
  }

  const Operations& all_;
  const std::uint32_t process_;
  std::vector<std::vector<std::uint32_t>> processes_;  // by operation
  std::vector<std::uint32_t> local_;                   // by operation: its number here
  std::vector<std::vector<std::uint32_t>> after_;      // by own operation
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> notice_of_;
  ProcessPart part_;
};

void add_to(std::vector<RankMessage>& messages, const Transfer& transfer, std::uint32_t peer) {
  const auto same = [&](const RankMessage& message) {
    return message.from == transfer.from && message.to == transfer.to;
  };
  auto found = std::find_if(messages.begin(), messages.end(), same);
  if (found == messages.end())
    found = messages.insert(messages.end(), {peer, transfer.from, transfer.to, 0, {}});
  found->bytes += transfer.move.bytes();
  found->moves.push_back(transfer.move);
}

/// The processes of one host after each other, hosts in order of first appearance.
void group_by_host(const std::vector<std::uint32_t>& host_of, std::vector<std::uint32_t>& way) {
  if (host_of.empty()) return;
  std::vector<std::uint32_t> hosts;
  for (const std::uint32_t process : way)
    if (!contains(hosts, host_of[process])) hosts.push_back(host_of[process]);
  const auto place = [&](std::uint32_t process) {
    return std::find(hosts.begin(), hosts.end(), host_of[process]) - hosts.begin();
  };
  std::stable_sort(way.begin(), way.end(), [&](auto a, auto b) { return place(a) < place(b); });
}

/// The way of a broadcast through the processes; a member of another process than the root's stands for all.
void add_stream(const Operation& operation, const std::vector<std::uint32_t>& way,
                const std::vector<Transfer>& transfers, const std::vector<std::uint32_t>& process_of,
                std::uint32_t process, ProcessWork& work) {
  const auto here = std::find(way.begin(), way.end(), process);
  RankStream stream;
  stream.root = operation.source;
  if (here != way.begin()) stream.previous = *(here - 1);
  if (here + 1 != way.end()) stream.next = *(here + 1);
  std::optional<Rank> example;
  for (const Transfer& transfer : transfers) {
    const std::uint32_t to = process_of[transfer.to.index()];
    if (!stream.previous && to == process) work.local.push_back(transfer);
    if (!stream.previous && to != process && (!example || *example == transfer.to)) {
      example = transfer.to;
      add_to(stream.members, transfer, to);
    }
    if (stream.previous && to == process) add_to(stream.members, transfer, *stream.previous);
  }
  if (stream.members.empty()) return;
  stream.bytes = stream.members.front().bytes;
  work.stream = std::move(stream);
}

}  // namespace

ProcessPart part_of(const Operations& operations, const std::vector<std::uint32_t>& process_of,
                    std::uint32_t process) {
  return PartBuilder(operations, process_of, process).build();
}

ProcessWork work_of(const Program& program, std::uint32_t operation,
                    const std::vector<std::uint32_t>& process_of, std::uint32_t process,
                    const std::vector<std::uint32_t>& host_of) {
  ProcessWork work;
  const Operation& what = program.operations().list[operation];
  const std::vector<Transfer> transfers = program.transfers(operation);
  if (what.kind == StepKind::broadcast) {
    std::vector<std::uint32_t> way = processes_in(program.operations(), what, process_of);
    group_by_host(host_of, way);
    add_stream(what, way, transfers, process_of, process, work);
    return work;
  }
  for (const Transfer& transfer : transfers) {
    const std::uint32_t from = process_of[transfer.from.index()], to = process_of[transfer.to.index()];
    if (from == process && to == process) {
      work.local.push_back(transfer);
    } else if (from == process) {
      add_to(work.sends, transfer, to);
    } else if (to == process) {
      add_to(work.receives, transfer, from);
    }
  }
  return work;
}

std::vector<std::uint32_t> processes_of_ranks(const Program& program, std::uint32_t processes) {
  std::vector<std::uint32_t> result;
  if (processes != program.ranks()) return fold(program, processes).gpu;
  for (std::uint32_t rank = 0; rank < processes; ++rank) result.push_back(rank);
  return result;
}

}  // namespace isthmus::hw
