#include "tests/support/twin_run.hpp"

#include <algorithm>
#include <random>

namespace isthmus::test {

TwinRun::Operation TwinRun::operation_of(const Instance& instance, std::size_t index) const {
  const Pattern& pattern = plan_.patterns[instance.pattern.value];
  const Step& step = pattern.steps[index];
  const auto global = [&instance](LocalRank rank) {
    const std::uint32_t offset = rank.value % LocalRank::target_side;
    const bool target = rank.value >= LocalRank::target_side;
    return (target ? instance.target_base.value : instance.source_base.value) + offset;
  };
  Operation operation;
  operation.lane = instance.lane.value + step.lane;
  const bool scheduled = instance.schedule != Instance::no_schedule;
  operation.group = scheduled ? plan_.schedule[instance.schedule + index] : instance.group + step.group;
  operation.kind = step.kind;
  operation.from = step.from;
  operation.to = step.to;
  if (step.kind == StepKind::broadcast || step.kind == StepKind::all_gather) {
    for (const LocalRank rank : pattern.members[step.members]) operation.ranks.push_back(global(rank));
    operation.root = step.kind == StepKind::broadcast ? global(step.source) : 0;
  } else {
    operation.ranks = {global(step.source), global(step.target)};
  }
  return operation;
}

void TwinRun::make_operations() {
  for (std::size_t i = 0; i < plan_.instances.size(); ++i) {
    const Instance& instance = plan_.instances[i];
    const Pattern& pattern = plan_.patterns[instance.pattern.value];
    std::vector<std::size_t> of_step;
    for (std::size_t s = 0; s < pattern.steps.size(); ++s) {
      Operation made = operation_of(instance, s);
      const auto same = [&](const Operation& other) {
        return made.lane == other.lane && made.group == other.group && made.kind == other.kind &&
               made.from == other.from && made.to == other.to && made.ranks == other.ranks &&
               made.root == other.root;
      };
      auto found = operations_.end();
      if (plan_.lanes[made.lane].coalesce) found = std::find_if(operations_.begin(), operations_.end(), same);
      if (found == operations_.end()) found = operations_.insert(operations_.end(), std::move(made));
      found->pieces.push_back({i, s});
      of_step.push_back(to_size(found - operations_.begin()));
      const Step& step = pattern.steps[s];
      note_size(instance, step);
      for (std::size_t a = step.after_begin; a < step.after_end; ++a)
        found->after.insert(of_step[pattern.after[a]]);
    }
  }
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    Operation& operation = operations_[i];
    for (const std::size_t earlier : operation.after) operations_[earlier].dependents.push_back(i);
    operation.connected = is_connected(operation);
    for (const Piece& piece : operation.pieces)
      operation.elements.push_back(elements_in(plan_.instances[piece.first], step_of(piece)));
  }
  for (const StagingBuffer& buffer : plan_.buffers)
    result_.largest_size = std::max(result_.largest_size, buffer.size.value);
  result_.operations = operations_.size();
}

/// Bytes of what is counted in 32 bits: a message, or a staging buffer.
void TwinRun::note_size(const Instance& instance, const Step& step) {
  if (step.kind == StepKind::broadcast || step.kind == StepKind::all_gather) return;
  std::int64_t bytes = element_size(twin_.refit_.geometry(instance.tensor).source.dtype).value;
  for (std::size_t d = 0; d < step.region.dimensions; ++d) bytes *= step.region.end[d] - step.region.begin[d];
  result_.largest_size = std::max(result_.largest_size, bytes);
}

/// Buffers, walks and operations as before the first start.
void TwinRun::begin() {
  result_ = prepared_;
  shared_.clear();
  brought_.clear();
  priority_.clear();
  for (auto& entry : walks_) entry.second.started = entry.second.done = 0;
  for (Operation& operation : operations_) {
    operation.launched = operation.complete = false;
    operation.in_flight.clear();
  }
  puts_.clear();
  memories_.resize(twin_.memory_size_.size());
  for (std::size_t m = 0; m < memories_.size(); ++m) {
    memories_[m].values.assign(twin_.memory_size_[m], 0);
    memories_[m].writes.assign(twin_.memory_size_[m], 0);
    memories_[m].installed.assign(twin_.memory_size_[m], false);
  }
  staging_.resize(twin_.tensors_.size());
  for (std::size_t t = 0; t < staging_.size(); ++t) {
    const Twin::Tensor& tensor = twin_.tensors_[t];
    staging_[t].resize(twin_.refit_.ranks());
    for (std::uint32_t rank = 0; rank < staging_[t].size(); ++rank) {
      staging_[t][rank].assign(tensor.elements.size(), 0);
      const Twin::Place& at = tensor.source_place[rank];
      for (std::size_t e = 0; e < tensor.source[rank].size(); ++e) {
        if (tensor.source[rank][e]) memories_[at.memory].values[at.of(e)] = held_value(t, rank, e);
      }
    }
  }
}

void TwinRun::make_priorities(TwinSchedule schedule) {
  for (std::size_t i = 0; i < operations_.size(); ++i) priority_.push_back(i);
  if (schedule.seed == 1) std::reverse(priority_.begin(), priority_.end());
  if (schedule.seed > 1) {
    std::mt19937_64 random(schedule.seed);
    for (std::size_t i = priority_.size(); i > 1; --i) std::swap(priority_[i - 1], priority_[random() % i]);
  }
  if (schedule.starved < operations_.size()) priority_[schedule.starved] = operations_.size();
}

bool TwinRun::may_launch(const Operation& operation) const {
  if (operation.launched || !operation.connected) return false;
  for (const auto& group : operation.groups) {
    if (group.second >= group.first->started) return false;
  }
  return std::all_of(operation.after.begin(), operation.after.end(),
                     [this](std::size_t earlier) { return operations_[earlier].complete; });
}

/// Every rank's list of groups, lane by lane.
void TwinRun::make_walks() {
  std::map<RankLane, std::map<std::uint32_t, std::vector<std::size_t>>> members;
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    const Operation& operation = operations_[i];
    const std::set<std::uint32_t> ranks(operation.ranks.begin(), operation.ranks.end());
    for (const std::uint32_t rank : ranks) members[{rank, operation.lane}][operation.group].push_back(i);
  }
  for (const auto& lane : members) {
    Walk& walk = walks_[lane.first];
    for (const auto& group : lane.second) {
      for (const std::size_t i : group.second) operations_[i].groups.push_back({&walk, walk.groups.size()});
      walk.groups.push_back(group.second);
      result_.largest_group = std::max(result_.largest_group, group.second.size());
    }
  }
}

void TwinRun::start_groups(std::size_t window, Walk& walk) {
  const auto complete = [this](std::size_t i) { return operations_[i].complete; };
  while (walk.done < walk.started) {
    const std::vector<std::size_t>& group = walk.groups[walk.done];
    if (!std::all_of(group.begin(), group.end(), complete)) break;
    ++walk.done;
  }
  for (; walk.started < std::min(walk.groups.size(), walk.done + window); ++walk.started) {
    const std::vector<std::size_t>& group = walk.groups[walk.started];
    ready_.insert(ready_.end(), group.begin(), group.end());
  }
}

void TwinRun::execute() {
  if (!set_up_) {  // some rank waits for others before the first step
    result_.stalled = true;
    return;
  }
  for (auto& entry : walks_) start_groups(plan_.lanes[entry.first.second].window, entry.second);
  std::map<std::size_t, std::size_t> in_flight;  // operations by priority
  while (true) {
    for (const std::size_t i : ready_) {
      if (!may_launch(operations_[i])) continue;
      launch(operations_[i]);
      in_flight[priority_[i]] = i;
    }
    ready_.clear();
    if (in_flight.empty()) break;
    const std::size_t next = in_flight.begin()->second;
    in_flight.erase(in_flight.begin());
    finish(operations_[next]);
    for (const auto& group : operations_[next].groups)
      start_groups(plan_.lanes[operations_[next].lane].window, *group.first);
    const std::vector<std::size_t>& dependents = operations_[next].dependents;
    ready_.insert(ready_.end(), dependents.begin(), dependents.end());
  }
  for (const Operation& operation : operations_) result_.stalled |= !operation.complete;
}

std::vector<std::size_t> TwinRun::elements_in(const Instance& instance, const Step& step) const {
  const std::vector<std::int64_t>& shape = twin_.refit_.tensors[instance.tensor.value].tensor.shape;
  std::vector<std::size_t> inside{0};
  for (std::size_t d = 0; d < shape.size(); ++d) {
    std::vector<std::size_t> longer;
    for (const std::size_t prefix : inside) {
      for (std::int64_t i = step.region.begin[d]; i < step.region.end[d]; ++i)
        longer.push_back(prefix * to_size(shape[d]) + to_size(i));
    }
    inside = std::move(longer);
  }
  return inside;
}

void TwinRun::launch(Operation& operation) {
  operation.launched = true;
  note_puts(operation, true);
  for (std::size_t p = 0; p < operation.pieces.size(); ++p)
    operation.in_flight.push_back(values_of(operation, p));
}

std::vector<std::uint64_t> TwinRun::values_of(const Operation& operation, std::size_t piece) {
  const std::size_t instance = operation.pieces[piece].first;
  const std::uint32_t reader =
      operation.kind == StepKind::broadcast ? operation.root : operation.ranks.front();
  std::vector<std::uint64_t> values;
  for (const std::size_t element : operation.elements[piece]) {
    values.push_back(operation.kind == StepKind::all_gather
                         ? gather(instance, operation, element)
                         : read(instance, reader, operation.from, element));
  }
  if (operation.kind == StepKind::quantize) quantise(operation, piece, values);
  return values;
}

/// What staging has become meanwhile, an operation may still have read.
void TwinRun::read_again(Operation& operation) {
  if (operation.from != Buffer::staging) return;
  for (std::size_t p = 0; p < operation.pieces.size(); ++p) {
    const std::size_t tensor = plan_.instances[operation.pieces[p].first].tensor.value;
    const std::vector<std::uint64_t> values = values_of(operation, p);
    for (std::size_t e = 0; e < values.size(); ++e) {
      if (values[e] != id_of(tensor, operation.elements[p][e])) operation.in_flight[p][e] = values[e];
    }
  }
}

/// What the members of a gather add up to: a wrong value wins over the right one.
std::uint64_t TwinRun::gather(std::size_t index, const Operation& operation, std::size_t element) {
  const Instance& instance = plan_.instances[index];
  const bool shared = operation.from == Buffer::staging && instance.buffer != Instance::own_memory;
  std::uint64_t value = 0;
  bool wrong = false;
  for (const std::uint32_t rank : operation.ranks) {
    if (shared && brought_[{index, rank}].count(element) == 0) continue;  // not a part of this member
    const std::uint64_t found = read(index, rank, operation.from, element);
    if (found == 0 && !shared) continue;
    if (!wrong) value = found;
    wrong |= found != id_of(instance.tensor.value, element);
  }
  return value;
}

void TwinRun::finish(Operation& operation) {
  operation.complete = true;
  note_puts(operation, false);
  read_again(operation);
  for (std::size_t p = 0; p < operation.pieces.size(); ++p) {
    const bool processes = operation.kind == StepKind::load && operation.from == Buffer::target;
    if (processes) install(operation, p);
    if (processes) continue;
    const std::vector<std::size_t>& elements = operation.elements[p];
    const bool collective = operation.kind == StepKind::broadcast || operation.kind == StepKind::all_gather;
    const bool in_place = operation.kind == StepKind::all_gather && operation.from == Buffer::target &&
                          operation.to == Buffer::target;
    for (std::size_t r = collective ? 0 : 1; r < operation.ranks.size(); ++r) {
      const bool root = operation.kind == StepKind::broadcast && operation.ranks[r] == operation.root;
      if (root && operation.to == Buffer::target) continue;
      std::vector<bool> own;
      if (in_place) own = own_part(operation.pieces[p], operation.ranks[r]);
      for (std::size_t e = 0; e < elements.size(); ++e) {
        if (in_place && own[elements[e]]) continue;
        write(operation.pieces[p].first, operation.ranks[r], operation.to, elements[e],
              operation.in_flight[p][e]);
      }
    }
    if (operation.kind == StepKind::load) install(operation, p);
  }
}

/// By element: in-place gathers leave alone what the steps that they wait for brought to the member.
std::vector<bool> TwinRun::own_part(const Piece& piece, std::uint32_t rank) const {
  const Instance& instance = plan_.instances[piece.first];
  const Pattern& pattern = plan_.patterns[instance.pattern.value];
  const Step& step = step_of(piece);
  std::vector<bool> own(twin_.tensors_[instance.tensor.value].elements.size());
  for (std::size_t a = step.after_begin; a < step.after_end; ++a) {
    const std::size_t earlier = pattern.after[a];
    const Operation brought = operation_of(instance, earlier);
    if (brought.to != Buffer::target) continue;
    const bool collective = brought.kind == StepKind::broadcast || brought.kind == StepKind::all_gather;
    const bool among =
        std::count(brought.ranks.begin() + (collective ? 0 : 1), brought.ranks.end(), rank) > 0;
    const bool root = brought.kind == StepKind::broadcast && brought.root == rank;
    if (!among || root) continue;
    for (const std::size_t element : elements_in(instance, pattern.steps[earlier])) own[element] = true;
  }
  return own;
}

std::uint64_t TwinRun::read(std::size_t instance, std::uint32_t rank, Buffer from, std::size_t element) {
  if (from == Buffer::staging && plan_.instances[instance].buffer != Instance::own_memory)
    return read_shared(instance, rank, element);
  const std::size_t tensor = plan_.instances[instance].tensor.value;
  if (from == Buffer::staging) return staging_[tensor][rank][element];
  const Twin::Place& at = place(tensor, rank, from);
  const std::size_t position = at.of(element);
  const std::uint64_t value = position == Twin::nowhere ? 0 : memories_[at.memory].values[position];
  const bool stale = from == Buffer::source && plan_.instances[instance].version != plan_.version;
  return stale && value != 0 ? value + other_version : value;
}

void TwinRun::write(std::size_t index, std::uint32_t rank, Buffer to, std::size_t element,
                    std::uint64_t value) {
  const Instance& instance = plan_.instances[index];
  if (to == Buffer::staging && instance.buffer != Instance::own_memory)
    return write_shared(index, rank, element, value);
  if (to == Buffer::staging) {
    staging_[instance.tensor.value][rank][element] = value;
    return;
  }
  const std::vector<bool>& held = twin_.tensors_[instance.tensor.value].target[rank];
  result_.outside += held.empty() || !held[element];
  const Twin::Place& at = place(instance.tensor.value, rank, to);
  const std::size_t position = at.of(element);
  if (position == Twin::nowhere) return;
  Memory& memory = memories_[at.memory];
  memory.values[position] = value;
  memory.installed[position] = false;
  ++memory.writes[position];
}

}  // namespace isthmus::test
