#include "tests/support/refit_info_generator.hpp"

#include <numeric>
#include <ostream>

#include <fmt/format.h>

namespace isthmus::test {
namespace {

using Extents = std::vector<std::int64_t>;

struct Part {
  std::int64_t begin, end;
};

OrderedJson box(const std::vector<Part>& parts) {
  OrderedJson result = OrderedJson::array();
  for (const Part part : parts) result.push_back({part.begin, part.end});
  return result;
}

Part shard(std::int64_t size, std::int64_t count, std::int64_t index) {
  return {size / count * index, size / count * (index + 1)};
}

/// One projection of one layer.
struct Projection {
  std::string name;  // gate_proj, ...
  bool expert = false;
  std::int64_t layer = 0, stage = 0;
  bool is_down() const { return name == "down_proj"; }
};

class Maker {
 public:
  explicit Maker(const RefitInfoShape& shape) : shape_(shape), n_(shape.stage_ranks()) {}

  OrderedJson make() {
    make_maps();
    make_description();
    std::int64_t layer = 0;
    for (std::int64_t stage = 0; stage < shape_.pp; ++stage) {
      for (std::int64_t i = 0; i < shape_.layers[static_cast<std::size_t>(stage)]; ++i, ++layer)
        add_layer(layer, stage);
    }
    return {{"nccl_reshard_refit_info", std::move(info_)}, {"local_maps", std::move(maps_)}};
  }

 private:
  void make_maps() {
    maps_ = OrderedJson::array();
    OrderedJson order = OrderedJson::array();
    for (std::int64_t i = 0; i < shape_.misc; ++i) order.push_back(misc_name(i));
    const auto add = [&](const char* side, std::int64_t rank) {
      maps_.push_back(
          {{"side", side}, {"rank", rank}, {"misc_order", order}, {"entries", OrderedJson::array()}});
    };
    for (std::int64_t rank = 0; rank < shape_.train_ranks(); ++rank) add("train", rank);
    for (std::int64_t rank = 0; rank < shape_.generate_ranks(); ++rank) add("generate", rank);
  }

  static std::string misc_name(std::int64_t i) {
    return i == 0 ? "model.embed_tokens.weight"
                  : fmt::format("model.layers.{}.input_layernorm.weight", i - 1);
  }

  void make_description() {
    info_ = {{"layer_names", OrderedJson::array()},
             {"per_layer_params", OrderedJson::object()},
             {"train_world_size", shape_.train_ranks()},
             {"gen_world_size", shape_.generate_ranks()},
             {"pp_size", shape_.pp},
             {"gen_tp_size", shape_.generate_tp},
             {"misc_meta", OrderedJson::object()}};
    for (std::int64_t i = 0; i < shape_.misc; ++i) {
      const OrderedJson shape{5 + i, shape_.hidden};
      OrderedJson& item = info_["misc_meta"][misc_name(i)];
      if (shape_.spelling % 2 == 0) item = {{"shape", shape}, {"dtype", "torch.bfloat16"}};
      if (shape_.spelling % 2 == 1) item = {shape, "bfloat16"};
    }
  }

  void add_layer(std::int64_t layer, std::int64_t stage) {
    const std::string name = fmt::format("model.layers.{}", layer);
    info_["layer_names"].push_back(name);
    info_["per_layer_params"][name] = OrderedJson::array();
    const bool expert = layer >= shape_.dense_layers;
    for (const char* projection : {"gate_proj", "up_proj", "down_proj"}) {
      if (shape_.gated || std::string(projection) != "gate_proj") add({projection, expert, layer, stage});
    }
  }

  void add(const Projection& projection) {
    const std::string prefix = fmt::format("model.layers.{}", projection.layer);
    OrderedJson tensor{{"name", name(projection)},
                       {"global_shape", global_shape(projection)},
                       {"dtype", shape_.spelling % 3 == 0 ? "BF16" : "torch.bfloat16"}};
    const std::int64_t rows = projection.is_down() ? 1 : 0;
    const bool expert = projection.expert;
    mesh(tensor, "src", 0, n_, expert ? shape_.ep : shape_.tp, expert ? "ep" : "tp", expert ? 0 : rows);
    const bool whole_experts = expert && shape_.generate_ep;
    mesh(tensor, "dst", n_, shape_.generate_ranks(), shape_.generate_tp, whole_experts ? "ep" : "tp",
         whole_experts ? 0
         : expert      ? rows + 1
                       : rows);
    if (shape_.pp > 1) tensor["pp_stage"] = projection.stage;
    if (expert) tensor["grouped_expert_proj"] = projection.name;
    info_["per_layer_params"][prefix].push_back(tensor);
    for (std::int64_t rank = 0; rank < n_; ++rank) {
      OrderedJson& entries = maps_[static_cast<std::size_t>(projection.stage * n_ + rank)]["entries"];
      if (expert) add_expert_source(projection, rank, entries);
      if (!expert) add_dense(projection, shape_.tp, rank % shape_.tp, shape_.gated, true, entries);
    }
    for (std::int64_t rank = 0; rank < shape_.generate_ranks(); ++rank) {
      OrderedJson& entries = maps_[static_cast<std::size_t>(shape_.train_ranks() + rank)]["entries"];
      const std::int64_t t = rank % shape_.generate_tp;
      if (expert) add_expert_target(projection, t, entries);
      if (!expert)
        add_dense(projection, shape_.generate_tp, t, shape_.gated && shape_.fused_target, false, entries);
    }
  }

  std::string name(const Projection& projection) const {
    return fmt::format("model.layers.{}.mlp.{}{}.weight", projection.layer,
                       projection.expert ? "experts." : "", projection.name);
  }
  Extents global_shape(const Projection& projection) const {
    const std::int64_t inner = projection.expert ? shape_.expert_inner : shape_.inner;
    Extents shape = projection.is_down() ? Extents{shape_.hidden, inner} : Extents{inner, shape_.hidden};
    if (projection.expert) shape.insert(shape.begin(), shape_.experts);
    return shape;
  }

  OrderedJson placement(std::int64_t dimension) const {
    const bool shard = dimension >= 0;
    switch (shape_.spelling % 4) {
      case 0: return shard ? fmt::format("Shard({})", dimension) : "Replicate()";
      case 1: return shard ? fmt::format("shard({})", dimension) : "replicated";
      case 2: return shard ? OrderedJson{{"shard", dimension}} : OrderedJson(nullptr);
      default:
        return shard ? OrderedJson{{"type", "shard"}, {"dim", dimension}}
                     : OrderedJson{{"type", "replicate"}};
    }
  }

  /// Axes [replicas, parts] without those of size 1.
  void mesh(OrderedJson& tensor, const std::string& side, std::int64_t first, std::int64_t ranks,
            std::int64_t parts, const char* axis, std::int64_t dimension) const {
    OrderedJson shape = OrderedJson::array(), axes = OrderedJson::object(), placements = OrderedJson::array();
    if (ranks > parts || parts == 1) {
      if (ranks > parts) axes["dp"] = 0;
      shape.push_back(ranks / parts);
      placements.push_back(placement(-1));
    }
    if (parts > 1) {
      axes[axis] = shape.size();
      shape.push_back(parts);
      placements.push_back(placement(dimension));
    }
    OrderedJson flat = OrderedJson::array();
    for (std::int64_t rank = 0; rank < ranks; ++rank) flat.push_back(first + rank);
    tensor[side + "_mesh_info"] = {{"shape", shape}, {"ranks", flat}, {"dim_map", axes}};
    if (shape_.spelling % 5 == 4) tensor[side + "_mesh_info"] = nested(flat, shape);
    tensor[side + "_placements"] = placements;
  }

  static OrderedJson nested(const OrderedJson& flat, const OrderedJson& shape) {
    if (shape.size() == 1) return {{"mesh", flat}};
    OrderedJson rows = OrderedJson::array();
    const auto columns = shape[1].get<std::size_t>();
    for (std::size_t i = 0; i < flat.size(); ++i) {
      if (i % columns == 0) rows.push_back(OrderedJson::array());
      rows.back().push_back(flat[i]);
    }
    return rows;
  }

  static OrderedJson entry(const std::string& tensor, const std::string& base, const Extents& shape,
                           const std::vector<Part>& before, const std::vector<Part>& after) {
    Extents strides(shape.size(), 1);
    for (std::size_t d = shape.size() - 1; d-- > 0;) strides[d] = strides[d + 1] * shape[d + 1];
    return {{"tensor", tensor},        {"base", base},          {"base_shape", shape},
            {"base_strides", strides}, {"before", box(before)}, {"after", box(after)}};
  }

  void add_dense(const Projection& projection, std::int64_t count, std::int64_t index, bool fused, bool train,
                 OrderedJson& entries) const {
    const std::string layer = train ? fmt::format("decoder.layers.{}.mlp.", projection.layer)
                                    : fmt::format("model.layers.{}.mlp.", projection.layer);
    const Part part = shard(shape_.inner, count, index), all{0, shape_.hidden};
    const std::int64_t size = part.end - part.begin;
    if (projection.is_down()) {
      entries.push_back(entry(name(projection), layer + (train ? "linear_fc2.weight" : "down_proj.weight"),
                              {shape_.hidden, size}, {all, part}, {all, {0, size}}));
      return;
    }
    const std::int64_t half = fused && projection.name == "up_proj" ? size : 0;
    const std::string base =
        fused ? (train ? "linear_fc1.weight" : "gate_up_proj.weight") : projection.name + ".weight";
    entries.push_back(entry(name(projection), layer + base, {fused ? 2 * size : size, shape_.hidden},
                            {part, all}, {{half, half + size}, all}));
  }

  void add_expert_source(const Projection& projection, std::int64_t rank, OrderedJson& entries) const {
    const Part mine = shard(shape_.experts, shape_.ep, rank % shape_.ep);
    const Extents shape = global_shape(projection);
    const Part rows{0, shape[1]}, columns{0, shape[2]};
    const std::string layer = fmt::format("decoder.layers.{}.mlp.experts.", projection.layer);
    if (shape_.stacked_source) {
      entries.push_back(entry(name(projection), layer + projection.name + ".stack",
                              {mine.end - mine.begin, shape[1], shape[2]}, {mine, rows, columns},
                              {{0, mine.end - mine.begin}, rows, columns}));
      return;
    }
    const bool fused = shape_.gated && !projection.is_down();
    const std::int64_t half = fused && projection.name == "up_proj" ? shape[1] : 0;
    for (std::int64_t expert = mine.begin; expert < mine.end; ++expert) {
      const std::string base = projection.is_down() ? "linear_fc2" : "linear_fc1";
      entries.push_back(entry(name(projection),
                              fmt::format("{}{}.weight{}", layer, base, expert - mine.begin),
                              {fused ? 2 * shape[1] : shape[1], shape[2]},
                              {{expert, expert + 1}, rows, columns}, {{half, half + shape[1]}, columns}));
    }
  }

  void add_expert_target(const Projection& projection, std::int64_t t, OrderedJson& entries) const {
    const Extents shape = global_shape(projection);
    const std::int64_t parts = shape_.generate_ep ? 1 : shape_.generate_tp;
    const Part mine =
        shape_.generate_ep ? shard(shape_.experts, shape_.generate_tp, t) : Part{0, shape_.experts};
    const Part inner = shard(shape_.expert_inner, parts, parts == 1 ? 0 : t), all{0, shape_.hidden};
    const std::int64_t size = inner.end - inner.begin, slots = mine.end - mine.begin;
    const bool fused = shape_.gated && shape_.fused_target && !projection.is_down();
    const std::int64_t half = fused && projection.name == "up_proj" ? size : 0;
    const std::string base = fmt::format("model.layers.{}.mlp.experts.{}", projection.layer,
                                         projection.is_down() ? "w2_weight"
                                         : fused              ? "w13_weight"
                                                              : projection.name + "_weight");
    const Extents base_shape = projection.is_down() ? Extents{slots, shape_.hidden, size}
                                                    : Extents{slots, fused ? 2 * size : size, shape_.hidden};
    const std::int64_t step = shape_.expert_slots ? 1 : slots;
    for (std::int64_t slot = 0; slot < slots; slot += step) {
      const Part experts{mine.begin + slot, mine.begin + slot + step}, places{slot, slot + step};
      if (projection.is_down()) {
        entries.push_back(
            entry(name(projection), base, base_shape, {experts, all, inner}, {places, all, {0, size}}));
      } else {
        entries.push_back(entry(name(projection), base, base_shape, {experts, inner, all},
                                {places, {half, half + size}, all}));
      }
    }
  }

  const RefitInfoShape& shape_;
  std::int64_t n_;
  OrderedJson info_, maps_;
};

}  // namespace

std::int64_t RefitInfoShape::stage_ranks() const { return copies * std::lcm(tp, ep); }

std::ostream& operator<<(std::ostream& stream, const RefitInfoShape& shape) {
  return stream << fmt::format(
             "tp {} ep {} copies {} pp {} -> tp {} engines {} ep {}; layers {} dense {} experts {} inner {} "
             "{} "
             "hidden {} gated {} fused {} stacked {} slots {} misc {} spelling {}",
             shape.tp, shape.ep, shape.copies, shape.pp, shape.generate_tp, shape.engines, shape.generate_ep,
             std::accumulate(shape.layers.begin(), shape.layers.end(), std::int64_t{0}), shape.dense_layers,
             shape.experts, shape.inner, shape.expert_inner, shape.hidden, shape.gated, shape.fused_target,
             shape.stacked_source, shape.expert_slots, shape.misc, shape.spelling);
}

OrderedJson make_refit_info(const RefitInfoShape& shape) { return Maker(shape).make(); }

rc::Gen<RefitInfoShape> any_refit_info_shape() {
  return rc::gen::exec([] {
    const auto power = [](std::int64_t most) {
      return std::int64_t{1} << *rc::gen::inRange<std::int64_t>(0, most);
    };
    const auto flag = [] { return *rc::gen::arbitrary<bool>(); };
    RefitInfoShape shape;
    shape.tp = power(2);
    shape.ep = power(3);
    shape.copies = *rc::gen::inRange<std::int64_t>(1, 3);
    shape.pp = *rc::gen::inRange<std::int64_t>(1, 4);
    shape.generate_tp = power(3);
    shape.engines = *rc::gen::inRange<std::int64_t>(1, 3);
    shape.generate_ep = flag();
    shape.layers.clear();
    std::int64_t sum = 0;
    for (std::int64_t stage = 0; stage < shape.pp; ++stage) {
      shape.layers.push_back(*rc::gen::inRange<std::int64_t>(1, 3));
      sum += shape.layers.back();
    }
    shape.dense_layers = *rc::gen::inRange<std::int64_t>(0, sum + 1);
    shape.experts = 4 * *rc::gen::inRange<std::int64_t>(1, 3);
    shape.inner = 4 * *rc::gen::inRange<std::int64_t>(1, 3);
    shape.expert_inner = 4 * *rc::gen::inRange<std::int64_t>(1, 3);
    shape.hidden = *rc::gen::inRange<std::int64_t>(1, 5);
    shape.gated = flag();
    shape.fused_target = flag();
    shape.stacked_source = flag();
    shape.expert_slots = flag();
    shape.misc = *rc::gen::inRange<std::int64_t>(0, 5);
    shape.spelling = *rc::gen::inRange<std::int64_t>(0, 60);
    return shape;
  });
}

}  // namespace isthmus::test
