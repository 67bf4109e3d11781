#include "tests/support/scenario_generator.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

namespace isthmus {
namespace {

namespace gen = rc::gen;

/// A whole number from `least` to `most`; shrinks towards `least`.
template <class T>
T pick(T least, T most) {
  return *gen::inRange<T>(least, static_cast<T>(most + 1));
}

bool flip() { return *gen::arbitrary<bool>(); }

template <class T>
T one_of(const std::vector<T>& values) {
  return values[pick<std::size_t>(0, values.size() - 1)];
}

std::optional<int> maybe_count(int most) { return flip() ? std::optional(pick(1, most)) : std::nullopt; }

/// Lines of text that tempt a YAML writer: quotes, colons, braces, blanks at the ends, words for nothing.
std::string text() {
  static const std::vector<std::string> tempting{
      "x",      "null", "~",    "true",  "12",        "1e3", " both ends ", "a: b", "# no comment", "- item",
      "{a}",    "[a]",  "it's", "\"q\"", "back\\n",   "&a",  "*a",          "!t",   "%d",           "Null",
      "µ √ 漢", "yes",  "0x10", "@at",   "trailing:", "a,b", "?",           "a #b", "..",           "<<"};
  std::string result = one_of(tempting);
  if (flip()) result += one_of(tempting);
  return result;
}

std::string name() {
  return one_of<std::string>(
      {"p2p", "striped", "gather-broadcast", "m2n-node-aware", "balanced", "7b", "v1.2_x"});
}

std::optional<Bandwidth> maybe_rate() {
  if (!flip()) return std::nullopt;
  return Bandwidth{flip() ? pick<std::int64_t>(1, 900) * 1'000'000'000
                          : pick<std::int64_t>(1, 1'000'000'007)};
}

std::vector<std::int64_t> distinct_numbers(std::int64_t end, std::size_t count) {
  std::vector<std::int64_t> numbers(to_size(end));
  std::iota(numbers.begin(), numbers.end(), std::int64_t{0});
  for (std::size_t i = 0; i < count; ++i) std::swap(numbers[i], numbers[pick(i, numbers.size() - 1)]);
  numbers.resize(count);
  return numbers;
}

Mesh mesh() {
  std::vector<std::int64_t> shape;
  const std::size_t axes = pick<std::size_t>(1, 4);
  std::int64_t positions = 1;
  for (std::size_t axis = 0; axis < axes; ++axis) {
    shape.push_back(pick<std::int64_t>(1, 4));
    positions *= shape.back();
  }
  if (!flip()) return contiguous_mesh(shape, Rank{pick<std::uint32_t>(0, 1000)});
  Mesh result{shape, {}};
  for (const std::int64_t rank : distinct_numbers(positions + 5, to_size(positions))) {
    result.ranks.push_back({static_cast<std::uint32_t>(rank)});
  }
  return result;
}

std::vector<int> maybe_numbers(int end) {
  std::vector<int> result;
  if (!flip()) return result;
  for (const std::int64_t number : distinct_numbers(end, pick<std::size_t>(1, 4))) {
    result.push_back(static_cast<int>(number));
  }
  return result;
}

FabricEdit fabric_edit() {
  using Action = FabricEdit::Action;
  using Subject = FabricEdit::Subject;
  const auto [action, subject] = one_of<std::pair<Action, Subject>>({{Action::remove, Subject::nic},
                                                                     {Action::remove, Subject::nvlink},
                                                                     {Action::remove, Subject::nvswitch},
                                                                     {Action::remove, Subject::uplink},
                                                                     {Action::remove, Subject::leaf},
                                                                     {Action::remove, Subject::spine},
                                                                     {Action::degrade, Subject::nic},
                                                                     {Action::degrade, Subject::nvlink},
                                                                     {Action::degrade, Subject::nvswitch},
                                                                     {Action::degrade, Subject::uplink},
                                                                     {Action::degrade, Subject::pcie},
                                                                     {Action::disable, Subject::gpudirect},
                                                                     {Action::disable, Subject::pxn},
                                                                     {Action::disable, Subject::mnnvl},
                                                                     {Action::swap, Subject::nics},
                                                                     {Action::cut, Subject::domain}});
  FabricEdit edit{.action = action, .subject = subject};
  edit.hosts = maybe_numbers(1'000'000);
  edit.gpus = maybe_numbers(8);
  edit.switches = maybe_numbers(1'000'000);
  edit.wires = maybe_count(1'000'000);
  if (flip()) edit.factor = pick(1, 999'999'937) / 1'000'000'007.0;
  edit.bandwidth = maybe_rate();
  edit.size = maybe_count(1'000'000);
  return edit;
}

FabricSpec fabric_part() {
  FabricSpec spec;
  if (pick(0, 3) == 0) {
    spec.preset.clear();
    spec.import_file = text();
  } else {
    spec.preset = std::string(one_of(fabric_presets()).name);
  }
  spec.hosts = pick(1, 1'048'576);
  spec.nic_bandwidth = maybe_rate();
  spec.nvlink_bandwidth = maybe_rate();
  spec.pcie_bandwidth = maybe_rate();
  if (flip())
    spec.network = one_of<NetworkKind>({NetworkKind::superpod, NetworkKind::one_switch, NetworkKind::rails});
  if (flip()) spec.oversubscription = 1 + pick(0, 1'000'000) / 7.0;
  spec.gpus_per_rack = maybe_count(72);
  return spec;
}

FabricSpec fabric() {
  FabricSpec spec = fabric_part();
  if (pick(0, 3) == 0) {
    spec = FabricSpec{};
    spec.preset.clear();
    for (std::size_t n = pick<std::size_t>(1, 4); n > 0; --n) spec.parts.push_back(fabric_part());
    spec.join_bandwidth = Bandwidth{pick<std::int64_t>(1, 1'000'000'000'007)};
  }
  spec.routing.hashed = flip();
  spec.routing.pxn = flip();
  if (flip()) spec.routing.seed = pick<std::uint64_t>(0, std::uint64_t{1} << 62);
  for (std::size_t n = flip() ? pick<std::size_t>(1, 5) : 0; n > 0; --n) spec.edits.push_back(fabric_edit());
  return spec;
}

std::optional<SideRanks> side() {
  if (!flip()) return std::nullopt;
  SideRanks ranks;
  for (const std::int64_t host : distinct_numbers(12, pick<std::size_t>(1, 12))) {
    ranks.hosts.push_back(static_cast<int>(host));
  }
  if (flip()) std::sort(ranks.hosts.begin(), ranks.hosts.end());
  ranks.by_rail = flip();
  return ranks;
}

StageLayers stage_lists() {
  StageLayers stages;
  for (std::size_t n = pick<std::size_t>(1, 4); n > 0; --n) {
    std::vector<int>& layers = stages.emplace_back();
    for (const std::int64_t layer : distinct_numbers(9, pick<std::size_t>(0, 9))) {
      layers.push_back(static_cast<int>(layer));
    }
  }
  return stages;
}

void add_rare_settings(TrainSpec& train, GenerateSpec& generate) {
  train.vpp = pick(1, 8);
  train.fsdp = pick(1, 64);
  train.order = one_of<std::string>({"tp-cp-ep-dp-pp", "dp-tp-pp", "any text: # as it stands"});
  if (flip()) train.stages = stage_lists();
  train.vocabulary_multiple = pick(1, 1024);
  generate.pp = pick(1, 8);
  generate.etp = maybe_count(8);
  generate.redundant_experts = pick(0, 64);
  if (flip()) generate.stages = stage_lists();
  generate.vocabulary_multiple = pick(1, 1024);
}

void add_whole_refit(Scenario& scenario) {
  const std::vector<WirePrecision> precisions{WirePrecision::bf16, WirePrecision::fp8,
                                              WirePrecision::fp8_bf16_attention, WirePrecision::mxfp8};
  scenario.model = ModelSpec{text(), one_of(precisions), flip(), flip(), maybe_count(100)};
  scenario.train = TrainSpec{pick(1, 1'048'576), pick(1, 64),     pick(1, 64),      pick(1, 64),
                             pick(1, 64),        maybe_count(64), maybe_count(100), maybe_count(100)};
  if (flip()) scenario.train->layer_split = LayerSplit::proportional;
  scenario.generate = GenerateSpec{pick(1, 1'048'576), pick(1, 64), pick(1, 64), maybe_count(64)};
  scenario.generate->quantize_mxfp8 = flip();
  if (flip()) scenario.model->repeat_kv_heads = false;
  if (flip()) add_rare_settings(*scenario.train, *scenario.generate);
  scenario.train_ranks = side();
  scenario.generate_ranks = side();
}

RefitSpec refit() {
  RefitSpec spec;
  spec.bulk.kind = one_of<BulkRule::Kind>({BulkRule::Kind::ffn, BulkRule::Kind::all, BulkRule::Kind::match});
  if (spec.bulk.kind == BulkRule::Kind::match) {
    const std::vector<std::string> patterns{"mlp", "\\.experts\\.[0-9]+", "^model\\.(a|b)", "[\"']",
                                            "x: {2}$"};
    for (std::size_t n = pick<std::size_t>(1, 3); n > 0; --n) spec.bulk.patterns.push_back(one_of(patterns));
  }
  spec.streams = pick(1, 1024);
  spec.buffers = pick(1, 1024);
  spec.packet_bytes = {flip() ? pick<std::int64_t>(1, 64) << 30 : pick<std::int64_t>(1, 5'000'000'000)};
  spec.relay = flip() ? Relay::any : Relay::members;
  spec.quantise_at = flip() ? QuantiseAt::source : QuantiseAt::target;
  spec.m2n.plan = flip() ? M2nPlan::ring : M2nPlan::direct;
  if (flip()) spec.m2n.split = flip() ? M2nSplit::on : M2nSplit::off;
  return spec;
}

std::vector<Published> published() {
  std::vector<Published> rows;
  for (std::size_t n = pick<std::size_t>(0, 3); n > 0; --n) {
    Published row;
    row.id = fmt::format("{}{}", n, text());
    row.policy = name();
    if (flip()) row.alternatives = {"m2n-" + name(), "p2p." + name()};
    const bool blind = pick(0, 3) == 0;
    if (!blind) {
      row.seconds_low = pick(1, 1'000'000) / 1000.0;
      row.seconds_high = row.seconds_low + pick(0, 10) / 7.0;
      row.used_for_fit = flip();
    }
    row.source = text();
    if (flip()) row.remark = text();
    if (flip()) row.diagnosis = text();
    row.counted = !blind && (row.remark.empty() || flip());
    rows.push_back(row);
  }
  return rows;
}

Layout layout(const std::vector<std::int64_t>& shape, Dtype dtype) {
  Layout result;
  result.shape = shape;
  result.dtype = dtype;
  result.mesh = mesh();
  for (std::size_t axis = 0; axis < result.mesh.shape.size(); ++axis) {
    result.placements.push_back({pick(Placement::replicated, static_cast<int>(shape.size()) - 1)});
  }
  if (pick(0, 3) == 0) {
    Frame frame{shape, std::vector<std::int64_t>(shape.size(), 0)};
    for (std::size_t d = 0; d < shape.size(); ++d) {
      frame.origin[d] = pick<std::int64_t>(0, 3);
      frame.extent[d] += frame.origin[d] + pick<std::int64_t>(0, 3);
    }
    result.frame = std::move(frame);
  }
  result.chunk_rule = one_of<ChunkRule>({ChunkRule::even, ChunkRule::ceil, ChunkRule::balanced});
  if (!faults(result).empty()) result.chunk_rule = ChunkRule::balanced;
  return result;
}

TensorSpec tensor(const std::string& name) {
  std::vector<std::int64_t> shape;
  for (std::size_t n = pick<std::size_t>(1, max_dimensions); n > 0; --n) {
    shape.push_back(pick<std::int64_t>(1, 24));
  }
  const Dtype dtype = one_of<Dtype>({Dtype::bf16, Dtype::f16, Dtype::f32, Dtype::fp8_e4m3, Dtype::fp8_e5m2,
                                     Dtype::u8, Dtype::i8, Dtype::i32, Dtype::i64, Dtype::f64});
  return {name, layout(shape, dtype), layout(shape, dtype)};
}

FusedView view() {
  FusedView result{text(), pick(0, 3), pick<std::int64_t>(0, 20), pick<std::int64_t>(1, 20)};
  result.stride = pick<std::int64_t>(1, 20);
  result.extent = pick<std::int64_t>(1, 1'000);
  if (flip()) result.storage = text();
  return result;
}

std::vector<std::int64_t> sizes(std::size_t count) {
  std::vector<std::int64_t> result;
  for (std::size_t i = 0; i < count; ++i) result.push_back(pick<std::int64_t>(1, 24));
  return result;
}

/// The target's mesh then cuts the slots.
void add_slots(TensorSpec& spec) {
  if (spec.target.frame || spec.target_view) return;
  for (std::size_t n = pick<std::size_t>(1, 9); n > 0; --n)
    spec.claims.slots.push_back(pick<std::int64_t>(0, spec.target.shape[0]));
  if (spec.target.chunk_rule == ChunkRule::even) spec.target.chunk_rule = ChunkRule::ceil;
}

/// A declaration that can be read; whether it is right is not considered.
void add_claims(TensorSpec& spec) {
  const std::vector<std::int64_t> shape = spec.source.shape;
  const Layout undeclared{shape, spec.source.dtype, {}, {}, ChunkRule::even};
  if (flip()) spec.target_view = view();
  if (flip()) spec.claims.target_shape = sizes(pick<std::size_t>(1, max_dimensions));
  if (flip()) add_slots(spec);
  const int kind = pick(0, 5);
  if (kind == 1) spec.source_view = view();
  if (kind == 2) spec.claims.transformed = true;
  if (kind == 1 || kind == 2) spec.claims.source_shape = sizes(2);
  if (kind == 3) {
    for (std::size_t n = pick<std::size_t>(1, 2); n > 0; --n)
      spec.claims.other_sources.push_back(layout(shape, spec.source.dtype));
    spec.claims.replicas = flip();
  }
  if (kind == 4) spec.source = undeclared;
  if (kind == 4 && flip()) spec.claims.tied_to = text();
  if (kind == 5) {
    spec.target = undeclared;
    spec.target_view.reset();
    spec.claims.target_shape.clear();
    spec.claims.slots.clear();
  }
}

BackgroundLoad background_load() {
  BackgroundLoad load;
  load.on = static_cast<BackgroundLoad::On>(pick(0, 3));
  load.side = static_cast<BackgroundLoad::Side>(pick(0, 2));
  if (flip()) load.hosts = {pick(0, 9), 10};
  if (flip()) load.gpus = {pick(0, 7)};
  const bool sm = load.on == BackgroundLoad::On::sm;
  if (!sm && load.on != BackgroundLoad::On::memory) {
    load.direction = static_cast<BackgroundLoad::Direction>(pick(0, 2));
  }
  if (!sm) load.flows = pick(1, 9);
  if (sm || flip()) {
    load.share = 0.09 * pick(0, 11);
  } else {
    load.rate = Bandwidth{1'000'000'000 * pick<std::int64_t>(1, 50)};
  }
  return load;
}

Disturbances disturbances() {
  Disturbances result;
  for (int n = pick(0, 2); n > 0; --n) result.background.push_back(background_load());
  for (int n = pick(0, 2); n > 0; --n) {
    MachineFault fault;
    fault.at = Duration{pick<std::int64_t>(0, 1'000'000'000)};
    fault.what = {static_cast<FaultSubject::Kind>(pick(0, 3)), 3, 0, {}};
    const bool gpu = fault.what.kind == FaultSubject::Kind::nic || fault.what.kind == FaultSubject::Kind::gpu;
    if (gpu) fault.what.gpu = 5;
    if (flip()) fault.what = {FaultSubject::Kind::link, 0, 0, "NIC out of GPU 3 on host 12"};
    if (flip()) fault.share = 0.125 * pick(0, 8);
    if (flip()) fault.until = fault.at + Duration{pick<std::int64_t>(1, 1'000'000)};
    result.faults.push_back(fault);
  }
  result.failed_steps.policy = static_cast<FailedSteps>(pick(0, 2));
  if (flip()) result.failed_steps.timeout = Duration{pick<std::int64_t>(1, 1'000'000'000)};
  return result;
}

Scenario scenario() {
  Scenario result;
  result.name = text();
  result.fabric = fabric();
  if (flip()) {
    add_whole_refit(result);
  } else {
    const std::size_t count = pick<std::size_t>(1, 3);
    for (std::size_t n = 0; n < count; ++n) {
      result.tensors.push_back(tensor(fmt::format("{}{}", text(), n)));
      if (flip()) add_claims(result.tensors.back());
    }
  }
  result.refit = refit();
  result.calibration = flip() ? name() : "../my calibrations/x.yaml";
  result.published = published();
  if (flip()) result.disturbances = disturbances();
  return result;
}

}  // namespace

rc::Gen<Layout> arbitrary_layout(const std::vector<std::int64_t>& shape, Dtype dtype) {
  return gen::exec([shape, dtype] { return layout(shape, dtype); });
}

rc::Gen<TensorSpec> arbitrary_tensor(const std::string& name) {
  return gen::exec([name] { return tensor(name); });
}

rc::Gen<Scenario> arbitrary_scenario() {
  return gen::exec([] { return scenario(); });
}

void showValue(const Scenario& scenario, std::ostream& stream) { stream << to_yaml(scenario); }

}  // namespace isthmus
