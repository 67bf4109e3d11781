#include "model/engine_views.hpp"

#include <map>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/support/project_files.hpp"

namespace isthmus {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const std::string layer = "model.layers.0.";

Refit refit_of(const std::string& scenario, const std::vector<Override>& overrides) {
  return resolve(read_scenario(project_folder() / "scenarios" / (scenario + ".yaml"), overrides));
}

/// Two layers of Qwen3-32B (64 heads of 128 rows, 8 key/value heads, inner size 25600).
Refit dense(int train_tp, int generate_tp) {
  return refit_of("qwen3-32b-h100", {{"model.layers", "2"},
                                     {"train", fmt::format("{{gpus: {0}, tp: {0}}}", train_tp)},
                                     {"generate", fmt::format("{{gpus: {0}, tp: {0}}}", generate_tp)},
                                     {"ranks", fmt::format("{{train: {{hosts: 0-{}}}}}", (train_tp - 1) / 8)},
                                     {"fabric.hosts", "16"}});
}

TensorId find(const Refit& refit, const std::string& name) {
  for (std::uint32_t i = 0; i < refit.tensors.size(); ++i) {
    if (refit.tensors[i].tensor.name == name) return {i};
  }
  ADD_FAILURE() << name;
  return {0};
}

std::vector<LocalView> views_of(const Refit& refit, const std::string& name, Engine engine, std::size_t at) {
  return EngineViews(refit).of(find(refit, layer + name), engine, at);
}

FusedView view_of(const Refit& refit, const std::string& name, Engine engine, std::size_t at) {
  const std::vector<LocalView> views = views_of(refit, name, engine, at);
  EXPECT_THAT(views, SizeIs(1)) << name;
  return views.empty() ? FusedView{} : views.front().view;
}

TEST(EngineViews, of_gate_and_up_are_halves_on_both_sides) {
  const Refit refit = dense(4, 8);
  const std::string fc1 = layer + "mlp.linear_fc1.weight", merged = layer + "mlp.gate_up_proj.weight";
  EXPECT_EQ(view_of(refit, "mlp.gate_proj.weight", Engine::megatron, 1),
            (FusedView{fc1, 0, 0, 6400, 6400, 12800}));
  EXPECT_EQ(view_of(refit, "mlp.up_proj.weight", Engine::megatron, 1),
            (FusedView{fc1, 0, 6400, 6400, 6400, 12800}));
  EXPECT_EQ(view_of(refit, "mlp.up_proj.weight", Engine::vllm, 7),
            (FusedView{merged, 0, 3200, 3200, 3200, 6400}));
  EXPECT_EQ(view_of(refit, "mlp.down_proj.weight", Engine::vllm, 7),
            (FusedView{layer + "mlp.down_proj.weight", 0, 0, 5120, 5120, 5120}));
}

TEST(EngineViews, of_training_attention_alternate_per_key_value_group) {
  const Refit refit = dense(4, 8);  // 2 of 8 groups a rank; a group is 8 heads of q, one of k, one of v
  const std::string base = layer + "self_attn.linear_qkv.weight";
  EXPECT_EQ(view_of(refit, "self_attn.q_proj.weight", Engine::megatron, 3),
            (FusedView{base, 0, 0, 1024, 1280, 2560}));
  EXPECT_EQ(view_of(refit, "self_attn.k_proj.weight", Engine::megatron, 3),
            (FusedView{base, 0, 1024, 128, 1280, 2560}));
  EXPECT_EQ(view_of(refit, "self_attn.v_proj.weight", Engine::megatron, 3),
            (FusedView{base, 0, 1152, 128, 1280, 2560}));
}

TEST(EngineViews, of_generation_attention_follow_each_other) {
  const Refit refit = dense(4, 8);
  const std::string base = layer + "self_attn.qkv_proj.weight";
  EXPECT_EQ(view_of(refit, "self_attn.q_proj.weight", Engine::vllm, 5),
            (FusedView{base, 0, 0, 1024, 1024, 1280}));
  EXPECT_EQ(view_of(refit, "self_attn.k_proj.weight", Engine::vllm, 5),
            (FusedView{base, 0, 1024, 128, 128, 1280}));
  EXPECT_EQ(view_of(refit, "self_attn.v_proj.weight", Engine::vllm, 5),
            (FusedView{base, 0, 1152, 128, 128, 1280}));
}

TEST(EngineViews, of_generation_attention_hold_whole_heads_that_more_ranks_repeat) {
  // 16 ranks, 8 heads: ranks 2 h and 2 h + 1 hold head h of k and v.
  Refit refit = dense(4, 8);
  for (const std::string name : {"q_proj", "k_proj", "v_proj"}) {
    RefitEntry& entry = refit.tensors[find(refit, layer + "self_attn." + name + ".weight").index()];
    Geometry geometry = refit.geometries[entry.geometry];
    const bool query = name == "q_proj";
    geometry.target.mesh = contiguous_mesh({8, 2}, Rank{0});
    geometry.target.placements = {{0}, {query ? 0 : Placement::replicated}};
    entry.geometry = static_cast<std::uint32_t>(refit.geometries.size());
    refit.geometries.push_back(geometry);
  }
  for (const std::size_t rank : {6U, 7U}) {
    EXPECT_EQ(view_of(refit, "self_attn.v_proj.weight", Engine::vllm, rank),
              (FusedView{layer + "self_attn.qkv_proj.weight", 0, 640, 128, 128, 768}));
  }
}

TEST(EngineViews, give_no_strided_block_where_there_is_none) {
  const auto attention = [](const Refit& refit) {
    return views_of(refit, "self_attn.q_proj.weight", Engine::megatron, 0);
  };
  EXPECT_THAT(attention(dense(8, 8)), SizeIs(1));
  EXPECT_THAT(attention(dense(16, 8)), IsEmpty());  // half a group a rank
  Refit unknown = dense(8, 8);
  for (RefitEntry& entry : unknown.tensors) entry.tensor.key_value_heads = 0;
  EXPECT_THAT(attention(unknown), IsEmpty());
  Refit gated = dense(8, 8);  // q with an output gate has twice the columns of o
  gated.tensors[find(gated, layer + "self_attn.o_proj.weight").index()].tensor.shape[1] /= 2;
  EXPECT_THAT(attention(gated), IsEmpty());
}

TEST(EngineViews, of_what_fsdp_cuts_stand_alone) {
  const Refit refit =
      refit_of("qwen3-32b-h100",
               {{"model.layers", "2"}, {"train", "{gpus: 8, fsdp: 8}"}, {"generate", "{gpus: 8, tp: 8}"}});
  EXPECT_EQ(view_of(refit, "mlp.up_proj.weight", Engine::megatron, 1),
            (FusedView{layer + "mlp.up_proj.weight", 0, 0, 3200, 3200, 3200}));
}

/// One layer of Qwen3-30B-A3B: 128 experts of inner size 768.
Refit experts(const std::string& train, const std::string& generate) {
  return refit_of("qwen3-30b-a3b-h100", {{"model.layers", "1"},
                                         {"train", train},
                                         {"generate", generate},
                                         {"ranks", "{train: {hosts: 0-1}}"},
                                         {"fabric.hosts", "16"}});
}

TEST(EngineViews, of_experts_are_halves_of_each_expert_and_of_the_stack) {
  const Refit refit = experts("{gpus: 16, ep: 16, etp: 1}", "{gpus: 8, tp: 8}");
  const std::vector<LocalView> up = views_of(refit, "mlp.experts.up_proj.weight", Engine::megatron, 2);
  ASSERT_THAT(up, SizeIs(8));
  EXPECT_EQ(up[3].view,
            (FusedView{layer + "mlp.experts.linear_fc1.weight of expert 19", 0, 768, 768, 768, 1536}));
  EXPECT_THAT(up[3].extents, ElementsAre(768, 2048));
  EXPECT_EQ(view_of(refit, "mlp.experts.up_proj.weight", Engine::vllm, 5),
            (FusedView{layer + "mlp.experts.w13_weight", 1, 96, 96, 96, 192}));
  EXPECT_EQ(view_of(refit, "mlp.experts.down_proj.weight", Engine::vllm, 5),
            (FusedView{layer + "mlp.experts.w2_weight", 0, 0, 128, 128, 128}));
}

/// The faults of all bases on all ranks of one side; counts the bases that several tensors share.
std::vector<std::string> faults_of(const Refit& refit, Engine engine, std::size_t& shared) {
  std::map<std::pair<std::uint32_t, std::string>, std::vector<LocalView>> bases;
  const EngineViews views(refit);
  for (std::uint32_t i = 0; i < refit.tensors.size(); ++i) {
    const Geometry& geometry = refit.geometry({i});
    const bool source = engine == Engine::megatron;
    const Mesh& mesh = source ? geometry.source.mesh : geometry.target.mesh;
    const Rank base = source ? refit.tensors[i].source_base : refit.tensors[i].target_base;
    for (std::size_t at = 0; at < mesh.size(); ++at) {
      for (LocalView& local : views.of({i}, engine, at))
        bases[{base.value + mesh.ranks[at].value, local.view.base}].push_back(std::move(local));
    }
  }
  std::vector<std::string> found;
  for (const auto& [key, list] : bases) {
    if (list.size() > 1) ++shared;
    for (const std::string& fault : fused_faults(list)) found.push_back(fault);
  }
  return found;
}

RC_GTEST_PROP(EngineViews, of_every_rank_tile_every_base_exactly_once, ()) {
  const auto power = [](int most) { return 1 << *rc::gen::inRange(0, most + 1); };
  const int tp = power(3), pp = power(1), dp = power(2), gen_tp = power(3), engines = power(1);
  const std::string generate = fmt::format("{{gpus: {}, tp: {}, ep: {}}}", gen_tp * engines, gen_tp,
                                           *rc::gen::arbitrary<bool>() ? gen_tp : 1);
  const bool moe = *rc::gen::arbitrary<bool>();
  const int ep = moe ? std::min(power(4), tp * dp) : 1;
  const std::string train =
      fmt::format("{{gpus: {}, tp: {}, ep: {}, etp: 1, pp: {}}}", tp * pp * dp, tp, ep, pp);
  std::vector<Override> settings{{"model.layers", fmt::format("{}", pp)},
                                 {"train", train},
                                 {"generate", moe ? generate : fmt::format("{{gpus: {0}, tp: {0}}}", gen_tp)},
                                 {"ranks", fmt::format("{{train: {{hosts: 0-{}}}}}", (tp * pp * dp - 1) / 8)},
                                 {"fabric.hosts", "32"}};
  const std::string model =
      moe ? "qwen3-235b-h100" : *rc::gen::element<std::string>("qwen3-32b-h100", "qwen3-4b-h100");
  const Refit refit = refit_of(model, settings);
  for (const Engine engine : {Engine::megatron, Engine::vllm}) {
    std::size_t shared = 0;
    const std::vector<std::string> found = faults_of(refit, engine, shared);
    RC_LOG() << (found.empty() ? "" : found.front());
    RC_ASSERT(found.empty());
    RC_ASSERT(shared > 0U);
  }
}

}  // namespace
}  // namespace isthmus
