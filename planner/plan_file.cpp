#include "planner/plan_file.hpp"

#include <charconv>
#include <map>

#include "model/json_file.hpp"
#include "planner/plan_file_form.hpp"
#include "planner/plan_file_parts.hpp"

namespace isthmus {
namespace {

using plan_file::list_of;
using plan_file::name_form;
using plan_file::named;
using plan_file::number;
using plan_file::number_or;

constexpr std::int64_t most_of_32_bits = 0xFFFF'FFFF;

LocalRank local_rank(const JsonValue& value) {
  constexpr std::string_view form =
      "s or t and a rank from 0 to 1048575, such as s0 or t3: of the source side, of the target side";
  if (!value.is_text()) value.refuse(form);
  const std::string text = value.text(form);
  const bool target = text.front() == 't';
  std::uint32_t rank = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data() + 1, end, rank);
  const bool padded = text.size() > 2 && text[1] == '0';
  const bool valid = (target || text.front() == 's') && parsed.ec == std::errc() && parsed.ptr == end;
  if (!valid || padded || rank >= PlanFileLimits::ranks) value.refuse(form);
  return target ? LocalRank::target(rank) : LocalRank::source(rank);
}

class PlanReader {
 public:
  PlanReader(const JsonValue& root, const Refit& refit) : root_(root), refit_(refit) {
    for (std::uint32_t i = 0; i < refit.tensors.size(); ++i)
      tensors_.emplace(refit.tensors[i].tensor.name, i);
  }

  Plan read() {
    plan_.policy = root_.at("policy").text(name_form);
    plan_.version = number_or(root_, "refit", 0);
    if (const auto splits = root_.find("splits")) {
      for (const JsonValue& split : list_of(*splits, PlanFileLimits::splits)) read_split(split);
    }
    for (const JsonValue& lane : list_of(root_.at("lanes"), PlanFileLimits::lanes)) read_lane(lane);
    if (const auto buffers = root_.find("buffers")) {
      for (const JsonValue& buffer : list_of(*buffers, PlanFileLimits::buffers)) read_buffer(buffer);
    }
    for (const JsonValue& pattern : list_of(root_.at("patterns"), PlanFileLimits::patterns))
      read_pattern(pattern);
    for (const JsonValue& instance : list_of(root_.at("instances"), PlanFileLimits::instances))
      read_instance(instance);
    return std::move(plan_);
  }

 private:
  void read_lane(const JsonValue& value) {
    value.allow_only({"name", "window", "coalesce", "split"});
    const auto coalesce = value.find("coalesce");
    const auto window = value.find("window");
    plan_.lanes.push_back({value.at("name").text_or_empty(name_form), window ? number(*window, 1) : 1,
                           coalesce ? coalesce->flag() : false,
                           number_or(value, "split", Split::none, PlanFileLimits::splits - 1)});
  }

  void read_split(const JsonValue& value);

  void read_buffer(const JsonValue& value) {
    value.allow_only({"name", "size"});
    plan_.buffers.push_back(
        {value.at("name").text_or_empty(name_form), {value.at("size").integer(0, PlanFileLimits::size)}});
  }

  void read_pattern(const JsonValue& value);
  Step read_step(const JsonValue& value, Pattern& pattern) const;
  void read_ends(const JsonValue& value, const Pattern& pattern, Step& step) const;
  void read_instance(const JsonValue& value);
  TensorId read_tensor(const JsonValue& value) const;
  void read_schedule(const JsonValue& value, Instance& instance);

  JsonValue root_;
  const Refit& refit_;
  std::map<std::string, std::uint32_t, std::less<>> tensors_;
  Plan plan_;
  std::vector<std::uint64_t> pattern_ranks_;  // ranks of all steps of each pattern
  std::uint64_t expanded_ = 0;
  std::size_t callers_ = 0;
};

void PlanReader::read_split(const JsonValue& value) {
  value.allow_only({"parent", "slot", "callers"});
  Split split;
  split.parent = number_or(value, "parent", Split::none, PlanFileLimits::splits - 1);
  split.slot = number_or(value, "slot", Split::none);
  for (const JsonValue& caller : list_of(value.at("callers"), PlanFileLimits::ranks)) {
    constexpr std::string_view form = "[rank, colour], or [rank] of one without a colour";
    if (!caller.is_list()) caller.refuse(form);
    const std::vector<JsonValue> parts = caller.items(2, form);
    if (parts.empty()) caller.refuse(form);
    const Rank rank{number(parts[0], 0, PlanFileLimits::ranks - 1)};
    split.callers.push_back({rank, parts.size() == 2 ? number(parts[1]) : Split::none});
  }
  callers_ += split.callers.size();
  if (callers_ > PlanFileLimits::callers) {
    value.refuse(fmt::format("more than {} callers of all splits", PlanFileLimits::callers), "fewer of them");
  }
  plan_.splits.push_back(std::move(split));
}

Region read_region(const JsonValue& value) {
  constexpr std::string_view form = "one to four pairs [begin, end] of element indices, one per dimension";
  if (!value.is_list()) value.refuse(form);
  Region region;
  for (const JsonValue& pair : value.items(max_dimensions, form)) {
    if (!pair.is_list()) pair.refuse("a pair [begin, end]");
    const std::vector<JsonValue> ends = pair.items(2, "a pair [begin, end]");
    if (ends.size() != 2) pair.refuse("a pair [begin, end]");
    region.begin[region.dimensions] = ends[0].integer(0, PlanFileLimits::size);
    region.end[region.dimensions] = ends[1].integer(0, PlanFileLimits::size);
    ++region.dimensions;
  }
  if (region.dimensions == 0) value.refuse(form);
  return region;
}

/// The ranks of a step, by the keys that its kind has.
void PlanReader::read_ends(const JsonValue& value, const Pattern& pattern, Step& step) const {
  if (is_collective(step.kind)) {
    if (pattern.members.empty()) value.refuse("a collective", "members: the pattern's lists of ranks");
    const auto lists = static_cast<std::int64_t>(pattern.members.size());
    step.members = number(value.at("members"), 0, lists - 1);
    if (step.kind == StepKind::broadcast) step.source = local_rank(value.at("source"));
    return;
  }
  step.source = local_rank(value.at("source"));
  const auto target = value.find("target");
  step.target = is_local(step.kind) && !target ? step.source : local_rank(value.at("target"));
}

Step PlanReader::read_step(const JsonValue& value, Pattern& pattern) const {
  Step step;
  if (!value.is_object()) value.refuse("a step: an object with kind and region");
  step.kind = named(value.at("kind"), StepKind::send, last_step_kind);
  if (step.kind == StepKind::broadcast) {
    value.allow_only(
        {"kind", "source", "members", "from", "to", "region", "lane", "group", "parts", "after"});
  } else if (step.kind == StepKind::all_gather) {
    value.allow_only({"kind", "members", "from", "to", "region", "lane", "group", "parts", "after"});
  } else {
    value.allow_only({"kind", "source", "target", "from", "to", "region", "lane", "group", "parts", "after"});
  }
  read_ends(value, pattern, step);
  const plan_file::Buffers usual = plan_file::usual_buffers(step.kind);
  const auto from = value.find("from"), to = value.find("to"), after = value.find("after");
  step.from = from ? named(*from, Buffer::source, Buffer::target) : usual.from;
  step.to = to ? named(*to, Buffer::source, Buffer::target) : usual.to;
  step.region = read_region(value.at("region"));
  step.lane = static_cast<std::uint16_t>(number_or(value, "lane", 0, PlanFileLimits::lanes - 1));
  step.group = number_or(value, "group", 0, most_of_32_bits);
  const auto parts = value.find("parts");
  step.parts = parts ? number(*parts) : 1;
  step.after_begin = static_cast<std::uint32_t>(pattern.after.size());
  if (after) {
    for (const JsonValue& earlier : list_of(*after, PlanFileLimits::steps))
      pattern.after.push_back(number(earlier, 0, PlanFileLimits::steps));
  }
  step.after_end = static_cast<std::uint32_t>(pattern.after.size());
  return step;
}

void PlanReader::read_pattern(const JsonValue& value) {
  value.allow_only({"members", "steps"});
  Pattern pattern;
  if (const auto members = value.find("members")) {
    for (const JsonValue& list : list_of(*members, PlanFileLimits::member_lists)) {
      std::vector<LocalRank>& ranks = pattern.members.emplace_back();
      for (const JsonValue& rank : list_of(list, PlanFileLimits::ranks)) ranks.push_back(local_rank(rank));
    }
  }
  std::uint64_t ranks = 0;
  for (const JsonValue& each : list_of(value.at("steps"), PlanFileLimits::steps)) {
    const Step step = read_step(each, pattern);
    ranks += is_collective(step.kind) ? 1 + pattern.members[step.members].size() : 2;
    pattern.steps.push_back(step);
  }
  plan_.patterns.push_back(std::move(pattern));
  pattern_ranks_.push_back(ranks);
}

TensorId PlanReader::read_tensor(const JsonValue& value) const {
  const std::string name = value.text("the name of a tensor");
  const auto known = tensors_.find(name);
  if (known != tensors_.end()) return {known->second};
  std::vector<std::string_view> names;
  for (const auto& [other, index] : tensors_) names.push_back(other);
  names = closest_first(name, std::move(names));
  names.resize(std::min<std::size_t>(names.size(), 5));
  value.refuse(fmt::format("'{}', which is none of the {} tensors that the plan is for", printable(name),
                           refit_.tensors.size()),
               fmt::format("{}", fmt::join(names, ", ")));
}

void PlanReader::read_schedule(const JsonValue& value, Instance& instance) {
  const std::size_t steps = plan_.pattern(instance).steps.size();
  const std::string form =
      fmt::format("a list of {} groups, one for each step of pattern {}", steps, instance.pattern.value);
  if (!value.is_list()) value.refuse(form);
  const std::vector<std::int64_t> groups = value.integers(steps, 0, most_of_32_bits);
  if (groups.size() != steps) value.refuse(fmt::format("a list of {}", groups.size()), form);
  instance.schedule = static_cast<std::uint32_t>(plan_.schedule.size());
  for (const std::int64_t group : groups) plan_.schedule.push_back(static_cast<std::uint32_t>(group));
}

void PlanReader::read_instance(const JsonValue& value) {
  value.allow_only({"tensor", "pattern", "source_base", "target_base", "lane", "group", "buffer", "offset",
                    "refit", "schedule"});
  Instance instance;
  instance.tensor = read_tensor(value.at("tensor"));
  const auto patterns = static_cast<std::int64_t>(plan_.patterns.size());
  if (patterns == 0) value.refuse("an instance", "no instances without patterns");
  instance.pattern = {number(value.at("pattern"), 0, patterns - 1)};
  expanded_ += pattern_ranks_[instance.pattern.index()];
  if (expanded_ > PlanFileLimits::expanded) {
    value.refuse(fmt::format("more than {} ranks of all steps of all instances", PlanFileLimits::expanded),
                 "fewer or shorter instances");
  }
  const RefitEntry& entry = refit_.tensors[instance.tensor.index()];
  constexpr std::int64_t last_rank = PlanFileLimits::ranks - 1;
  instance.source_base = {number_or(value, "source_base", entry.source_base.value, last_rank)};
  instance.target_base = {number_or(value, "target_base", entry.target_base.value, last_rank)};
  instance.lane = {number_or(value, "lane", 0, PlanFileLimits::lanes - 1)};
  instance.group = number_or(value, "group", 0, most_of_32_bits);
  instance.buffer = number_or(value, "buffer", Instance::own_memory, PlanFileLimits::buffers - 1);
  if (const auto offset = value.find("offset")) instance.offset = {offset->integer(0, PlanFileLimits::size)};
  instance.version = number_or(value, "refit", plan_.version);
  if (const auto schedule = value.find("schedule")) read_schedule(*schedule, instance);
  plan_.instances.push_back(instance);
}

void read_head(const JsonValue& root) {
  if (!root.is_object()) root.refuse("a plan: a JSON object (docs/plan-format.md)");
  const JsonValue format = root.at("format");
  const std::string form = fmt::format("{}", plan_format);
  if (!format.is_text() || format.text_or_empty(form) != plan_format) format.refuse(form);
  const JsonValue version = root.at("version");
  if (version.integer(0, 0xFFFF'FFFE) != plan_format_version) {
    version.refuse(fmt::format("{}, which is the one version that this program reads", plan_format_version));
  }
  root.allow_only({"format", "version", "policy", "refit", "scenario", "geometries", "tensors", "splits",
                   "lanes", "buffers", "patterns", "instances"});
}

}  // namespace

PlanFile plan_from_json(std::string_view text, const std::filesystem::path& file) {
  const JsonTree tree(text, file.string());
  const JsonValue root = tree.root();
  read_head(root);
  plan_file::Subject subject = plan_file::read_subject(root, file);
  Plan plan = PlanReader(root, subject.refit).read();
  return {std::move(subject.scenario), std::move(subject.refit), std::move(plan)};
}

PlanFile read_plan(const std::filesystem::path& file) {
  return plan_from_json(read_text(file, max_json_bytes), file);
}

bool is_plan_text(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos || text[begin] != '{') return false;
  const auto holds = [text](std::string_view word) { return text.find(word) != std::string_view::npos; };
  return holds("\"isthmus-plan\"") || (holds("\"patterns\"") && holds("\"instances\""));
}

}  // namespace isthmus
