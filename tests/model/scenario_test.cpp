#include "model/scenario.hpp"

#include <filesystem>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/support/project_files.hpp"
#include "tests/support/scenario_generator.hpp"
#include "tests/support/scenario_texts.hpp"

namespace isthmus::scenario_test {
namespace {

std::string fault_with(std::string_view part, std::string_view by) {
  return fault_of(replaced(whole_refit, part, by));
}

std::string bare_fault_with(std::string_view part, std::string_view by) {
  return fault_of(replaced(bare_tensor, part, by));
}

TEST(Scenario, whole_refit_is_read_with_defaults) {
  const Scenario scenario = parsed(whole_refit);
  EXPECT_EQ(scenario.name, "small");
  EXPECT_EQ(scenario.model->config, "m.json");
  EXPECT_EQ(scenario.model->precision, WirePrecision::bf16);
  EXPECT_EQ(*scenario.train, (TrainSpec{16, 1, 1, 8, 2, {}, {}, {}}));
  EXPECT_EQ(*scenario.generate, (GenerateSpec{16, 8, 1, {}}));
  EXPECT_EQ(scenario.train_ranks->hosts, (std::vector<int>{0, 1}));
  EXPECT_EQ(scenario.generate_ranks->hosts, (std::vector<int>{3, 2}));
  EXPECT_EQ(scenario.refit, RefitSpec{});
  EXPECT_EQ(scenario.calibration, "wire-only");
  EXPECT_EQ(scenario.published[0], (Published{"N2", "striped", 0.74, 1, "x"}));
  EXPECT_EQ(scenario.published[1], (Published{"N3", "striped", 2.5, 2.5, "y"}));
  EXPECT_TRUE(scenario.tensors.empty());
}

TEST(Scenario, bare_tensor_is_read_with_its_layouts) {
  const Scenario scenario = parsed(bare_tensor);
  EXPECT_EQ(scenario.name, "s");
  ASSERT_EQ(scenario.tensors.size(), 1U);
  const TensorSpec& tensor = scenario.tensors.front();
  EXPECT_EQ(tensor.name, "tensor");
  EXPECT_EQ(tensor.source.mesh, contiguous_mesh({2, 2}, Rank{0}));
  EXPECT_EQ(tensor.source.placements, (std::vector<Placement>{{0}, {Placement::replicated}}));
  EXPECT_EQ(tensor.target.mesh, (Mesh{{3}, {Rank{6}, Rank{4}, Rank{5}}}));
  EXPECT_EQ(tensor.target.chunk_rule, ChunkRule::even);
  EXPECT_EQ(tensor.target.shape, (std::vector<std::int64_t>{8, 6}));
  EXPECT_FALSE(scenario.model);
}

TEST(Scenario, shipped_scenarios_are_read_and_written_back) {
  std::size_t read = 0;
  for (const auto& folder : {project_folder() / "scenarios", project_folder() / "scenarios" / "cases"}) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path().extension() != ".yaml") continue;
      const Scenario scenario = read_scenario(entry.path());
      EXPECT_TRUE(same_content(scenario, parsed(to_yaml(scenario)))) << entry.path().filename();
      ++read;
    }
  }
  EXPECT_GE(read, 5U);
}

TEST(Scenario, host_ranges_keep_their_order) {
  const Scenario scenario = parsed(replaced(whole_refit, "[3, 2]", "[9-11, 8, 0-3]"));
  EXPECT_EQ(scenario.generate_ranks->hosts, (std::vector<int>{9, 10, 11, 8, 0, 1, 2, 3}));
  EXPECT_EQ(parsed(replaced(whole_refit, "[3, 2]", "5")).generate_ranks->hosts, (std::vector<int>{5}));
}

TEST(Scenario, rates_and_sizes_carry_their_unit) {
  const Scenario scenario =
      parsed(whole_refit, {{"fabric.nic_bandwidth", "400 Gbit/s"}, {"refit.packet_bytes", "2GiB"}});
  EXPECT_EQ(scenario.fabric.nic_bandwidth, Bandwidth{50'000'000'000});
  EXPECT_EQ(scenario.refit.packet_bytes, Bytes{2'147'483'648});
  EXPECT_EQ(
      fault_with("hosts: 4", "hosts: 4, nic_bandwidth: 450GB"),
      "s.yaml:3: fabric.nic_bandwidth: found '450GB'; allowed: a rate above zero with its unit, such as 400 "
      "Gbit/s or 50 GB/s");
  EXPECT_EQ(fault_with("hosts: 4", "hosts: 4, nvlink_bandwidth: -450 GB/s"),
            "s.yaml:3: fabric.nvlink_bandwidth: found '-450 GB/s'; allowed: a rate above zero with its unit, "
            "such as "
            "400 Gbit/s or 50 GB/s");
  EXPECT_EQ(fault_with("bulk: ffn", "packet_bytes: 1700000000"),
            "s.yaml:11: refit.packet_bytes: found '1700000000'; allowed: a size above zero with its unit, "
            "such as 1.7 "
            "GB or 2 GiB");
}

TEST(Scenario, precisions_are_read_by_name) {
  EXPECT_EQ(parsed(replaced(whole_refit, "m.json", "m.json, dtype: fp8-bf16-attention")).model->precision,
            WirePrecision::fp8_bf16_attention);
  EXPECT_TRUE(
      parsed(replaced(whole_refit, "gpus: 16, tp: 8", "gpus: 16, quantize: mxfp8")).generate->quantize_mxfp8);
  EXPECT_EQ(fault_with("m.json", "m.json, dtype: f16"),
            "s.yaml:2: model.dtype: found 'f16'; allowed: bf16, fp8, fp8-bf16-attention or mxfp8");
  EXPECT_EQ(fault_with("gpus: 16, tp: 8", "gpus: 16, quantize: fp8"),
            "s.yaml:5: generate.quantize: found 'fp8'; allowed: mxfp8");
}

TEST(Scenario, says_where_it_is_quantised) {
  const std::string source = replaced(whole_refit, "bulk: ffn", "quantize_at: source");
  EXPECT_EQ(parsed(source).refit.quantise_at, QuantiseAt::source);
  EXPECT_EQ(parsed(whole_refit).refit.quantise_at, QuantiseAt::target);
  EXPECT_EQ(fault_with("bulk: ffn", "quantize_at: wire"),
            "s.yaml:11: refit.quantize_at: found 'wire'; allowed: target or source");
}

TEST(Scenario, without_gpus_names_both_readings_of_the_printed_sizes) {
  EXPECT_EQ(
      fault_with("gpus: 16, ep: 8, pp: 2", "tp: 4, pp: 8, ep: 16, etp: 1"),
      "s.yaml:4: train: found no gpus; allowed: gpus: a multiple of 128 if experts fold into a stage's ranks "
      "(Megatron-LM), of 512 if the printed sizes multiply");
  EXPECT_EQ(fault_with("gpus: 16, ep: 8, pp: 2", "tp: 4, pp: 2"),
            "s.yaml:4: train.gpus: found nothing; allowed: a value; the key 'gpus' is required here");
}

TEST(Scenario, sizes_whose_product_has_no_bounds_are_not_multiplied) {
  EXPECT_EQ(fault_with("gpus: 16, ep: 8, pp: 2",
                       "tp: 1048576, cp: 1048576, ep: 1048576, etp: 1048573, pp: 1048576"),
            "s.yaml:4: train.gpus: found nothing; allowed: a value; the key 'gpus' is required here");
}

TEST(Scenario, unknown_key_is_a_fault_that_names_the_closest_ones_first) {
  EXPECT_EQ(fault_with("gpus: 16, tp", "gpu: 16, tp"),
            "s.yaml:5: generate.gpu: found an unknown key; allowed: gpus, tp, ep, dp, pp, etp, stages, "
            "quantize, redundant_experts, vocabulary_multiple");
  EXPECT_EQ(fault_with("refit:\n", "refits:\n").substr(0, 65),
            "s.yaml:10: refits: found an unknown key; allowed: refit, ranks, f");
  EXPECT_EQ(fault_with("{hosts: 0-1}", "{host: 0-1}"),
            "s.yaml:7: ranks.train.host: found an unknown key; allowed: hosts, fill");
}

TEST(Scenario, missing_key_is_a_fault) {
  EXPECT_EQ(fault_with("gpus: 16, tp: 8", "tp: 8"),
            "s.yaml:5: generate.gpus: found nothing; allowed: a value; the key 'gpus' is required here");
  EXPECT_EQ(fault_with("fabric: {preset: dgx-h100, hosts: 4}", ""),
            "s.yaml:1: fabric: found nothing; allowed: a value; the key 'fabric' is required here");
  EXPECT_EQ(
      fault_with(", source: y", ""),
      "s.yaml:14: published.1.source: found nothing; allowed: a value; the key 'source' is required here");
}

TEST(Scenario, repeated_key_is_a_fault_at_its_second_line) {
  EXPECT_EQ(fault_of(whole_refit + "name: again\n"),
            "s.yaml:15: name: found the key a second time; allowed: each key once");
  EXPECT_EQ(fault_with("pp: 2", "pp: 2, ep: 8"),
            "s.yaml:4: train.ep: found the key a second time; allowed: each key once");
}

TEST(Scenario, counts_are_plain_whole_numbers_in_range) {
  const std::string allowed = "allowed: a whole number from 1 to 1048576";
  for (const char* bad :
       {"0", "-2", "2.0", "1e1", "0x2", "010", "two", "1048577", "99999999999999999999", "+2", "''"}) {
    const std::string shown = std::string_view(bad) == "''" ? "the text ''" : fmt::format("'{}'", bad);
    EXPECT_EQ(fault_with("pp: 2", fmt::format("pp: {}", bad)),
              fmt::format("s.yaml:4: train.pp: found {}; {}", shown, allowed));
  }
  EXPECT_EQ(fault_with("pp: 2", "pp: \"2\""),
            fmt::format("s.yaml:4: train.pp: found the text '2'; {}", allowed));
  EXPECT_EQ(fault_with("pp: 2", "pp: [2]"), fmt::format("s.yaml:4: train.pp: found a list; {}", allowed));
  EXPECT_EQ(fault_with("pp: 2", "pp: {a: 2}"),
            fmt::format("s.yaml:4: train.pp: found a mapping; {}", allowed));
  EXPECT_EQ(fault_with("pp: 2", "pp: "), fmt::format("s.yaml:4: train.pp: found nothing; {}", allowed));
  EXPECT_EQ(fault_with("hosts: 4", "hosts: 0"),
            fmt::format("s.yaml:3: fabric.hosts: found '0'; {}", allowed));
}

TEST(Scenario, flags_are_true_or_false) {
  EXPECT_TRUE(parsed(whole_refit, {{"model.mtp", "true"}}).model->mtp);
  EXPECT_EQ(fault_with("m.json", "m.json, mtp: yes"),
            "s.yaml:2: model.mtp: found 'yes'; allowed: true or false");
}

TEST(Scenario, host_lists_are_checked) {
  const std::string form = "allowed: a number from 0 to 1048575, or a range first-last within these";
  for (const char* bad : {"31-0", "-1", "0-", "a", "0-1048576", "0 - 1", "1.5"}) {
    EXPECT_EQ(fault_with("hosts: 0-1", fmt::format("hosts: {}", bad)),
              fmt::format("s.yaml:7: ranks.train.hosts: found '{}'; {}", bad, form));
  }
  EXPECT_EQ(fault_with("[3, 2]", "[3, 2-1]"),
            fmt::format("s.yaml:9: ranks.generate.hosts.1: found '2-1'; {}", form));
  EXPECT_EQ(fault_with("[3, 2]", "[3, 2-4]"),
            "s.yaml:9: ranks.generate.hosts: found 3 twice; allowed: each number once");
  EXPECT_EQ(fault_with("[3, 2]", "[]"),
            "s.yaml:9: ranks.generate.hosts: found an empty list; allowed: a list of at least one item");
  EXPECT_EQ(fault_with("[3, 2]", "[0-1048575, 0-1048575]"),
            "s.yaml:9: ranks.generate.hosts.1: found more than 1048576 numbers; allowed: each number once");
}

TEST(Scenario, preset_calibration_and_policy_names_are_checked) {
  EXPECT_EQ(fault_with("dgx-h100", "dgx-h1000").substr(0, 66),
            "s.yaml:3: fabric.preset: found 'dgx-h1000'; allowed: dgx-h100, dgx");
  EXPECT_EQ(fault_of(whole_refit + "calibration: ../x\n"),
            "s.yaml:15: calibration: found '../x'; allowed: a name such as h100-ib400, or a path that ends "
            "in .yaml");
  EXPECT_EQ(fault_with("policy: striped", "policy: the striped one"),
            "s.yaml:13: published.0.policy: found 'the striped one'; allowed: the name of a policy, such as "
            "striped or "
            "gather-broadcast");
}

TEST(Scenario, published_seconds_are_a_number_or_a_range) {
  const std::string form = "allowed: seconds above zero as a number, or [low, high] with low at most high";
  for (const char* bad : {"0", "-1", "2 s", "inf", "nan", "1e400"}) {
    EXPECT_EQ(fault_with("seconds: 2.5", fmt::format("seconds: {}", bad)),
              fmt::format("s.yaml:14: published.1.seconds: found '{}'; {}", bad, form));
  }
  EXPECT_EQ(fault_with("seconds: 2.5", "seconds: [3, 2]"),
            fmt::format("s.yaml:14: published.1.seconds: found [3, 2]; {}", form));
  EXPECT_EQ(fault_with("id: N3", "id: N2"),
            "s.yaml:14: published.1.id: found 'N2' a second time; allowed: each id once");
}

TEST(Scenario, bulk_is_ffn_all_or_patterns) {
  EXPECT_EQ(parsed(whole_refit, {{"refit.bulk", "all"}}).refit.bulk.kind, BulkRule::Kind::all);
  const BulkRule rule = parsed(whole_refit, {{"refit.bulk", "{match: ['mlp\\.', attn]}"}}).refit.bulk;
  EXPECT_EQ(rule, (BulkRule{BulkRule::Kind::match, {"mlp\\.", "attn"}}));
  EXPECT_EQ(fault_with("bulk: ffn", "bulk: moe"),
            "s.yaml:11: refit.bulk: found 'moe'; allowed: ffn, all, or {match: [regular expressions]}");
  EXPECT_EQ(fault_with("bulk: ffn", "bulk: [ffn]").substr(0, 40), "s.yaml:11: refit.bulk: found a list; all");
  EXPECT_EQ(fault_with("bulk: ffn", "bulk:\n    match:\n      - mlp\n      - '('").substr(0, 78),
            "s.yaml:14: refit.bulk.match.1: found an invalid regular expression in '('; all");
}

TEST(Scenario, the_two_forms_exclude_each_other) {
  EXPECT_EQ(
      fault_of(whole_refit + "tensor: {shape: [1], dtype: u8}\n"),
      "s.yaml:2: model: found this key beside bare tensors; allowed: it with model, train and generate only");
  EXPECT_EQ(
      fault_of(bare_tensor + "ranks: {train: {hosts: 0}}\n"),
      "s.yaml:5: ranks: found this key beside bare tensors; allowed: it with model, train and generate only");
  EXPECT_EQ(fault_of(bare_tensor + "tensors: [{}]\n"),
            "s.yaml:1: tensor: found this key beside tensors; allowed: one of the two forms");
  EXPECT_EQ(fault_of("fabric: {preset: dgx-h100, hosts: 1}\n"),
            "s.yaml:1: found neither model nor tensor nor traffic; allowed: model, train, generate; or "
            "tensor, source, "
            "target; or tensors; or traffic");
}

TEST(Scenario, layouts_of_bare_tensors_are_checked) {
  EXPECT_EQ(bare_fault_with("shape: [8, 6]", "shape: [8, -6]"),
            "s.yaml:1: tensor.shape.1: found '-6'; allowed: a whole number from 1 to 1152921504606846976");
  EXPECT_EQ(bare_fault_with("shape: [8, 6]", "shape: [1000000000000, 1000000000000]"),
            "s.yaml:1: tensor.shape: found a tensor above 2^60 bytes; allowed: at most 2^60 bytes");
  EXPECT_EQ(bare_fault_with("bf16", "int3").substr(0, 53),
            "s.yaml:1: tensor.dtype: found 'int3'; allowed: bf16, ");
  EXPECT_EQ(bare_fault_with("shard(0)", "shard(4)"),
            "s.yaml:2: source.placements.0: found 'shard(4)'; allowed: replicated or shard(0), with the "
            "tensor's dimension");
  EXPECT_EQ(bare_fault_with("[shard(0), replicated]", "[shard(0)]"),
            "s.yaml:2: source.placements: found 1 placements; allowed: 2, one per mesh axis");
  EXPECT_EQ(bare_fault_with("[6, 4, 5]", "[6, 4]"),
            "s.yaml:3: target.ranks: found 2 ranks; allowed: 3, one per mesh position");
  EXPECT_EQ(bare_fault_with("[6, 4, 5]", "[6, 4, 4]"),
            "s.yaml:3: target.ranks: found 4 twice; allowed: each number once");
  EXPECT_EQ(bare_fault_with("first_rank: 0", "first_rank: 0, ranks: 0-3"),
            "s.yaml:2: source.ranks: found ranks beside first_rank; allowed: one of them");
  EXPECT_EQ(bare_fault_with("first_rank: 0, ", ""),
            "s.yaml:2: source: found neither first_rank nor ranks; allowed: one of them");
  EXPECT_EQ(bare_fault_with("[shard(1)]", "[shard(1)], chunk_rule: odd"),
            "s.yaml:3: target.chunk_rule: found 'odd'; allowed: even, ceil or balanced");
  EXPECT_EQ(bare_fault_with("mesh: [3]", "mesh: [1048576, 1048576]").substr(0, 63),
            "s.yaml:3: target.mesh: found a mesh of more than 1048576 ranks;");
}

TEST(Scenario, the_first_fault_of_a_layout_is_reported_at_the_layout) {
  const std::string message = bare_fault_with("shape: [8, 6]", "shape: [7, 6]");
  EXPECT_EQ(message.substr(0, 18), "s.yaml:2: source: ") << message;
  EXPECT_NE(message.find("7"), std::string::npos) << message;
}

TEST(Scenario, a_view_is_one_block_from_the_begin_on_unless_it_says_more) {
  const auto view = [](const std::string& text) {
    return *parsed(replaced(bare_tensor, "[shard(1)]", "[shard(1)], view: {" + text + "}"))
                .tensors[0]
                .target_view;
  };
  EXPECT_EQ(view("base: w, extent: 9"), (FusedView{"w", 0, 0, 9, 9, 9, ""}));
  EXPECT_EQ(view("base: w, extent: 9, block: 2"), (FusedView{"w", 0, 0, 2, 2, 9, ""}));
  EXPECT_EQ(view("base: w, dimension: 1, offset: 3, block: 2, stride: 4, extent: 9, storage: block128"),
            (FusedView{"w", 1, 3, 2, 4, 9, "block128"}));
}

TEST(Scenario, views_are_checked) {
  EXPECT_EQ(bare_fault_with("[shard(1)]", "[shard(1)], view: {extent: 9}"),
            "s.yaml:3: target.view.base: found nothing; allowed: a value; the key 'base' is required here");
  EXPECT_EQ(bare_fault_with("[shard(1)]", "[shard(1)], view: {base: w, extent: 0}").substr(0, 40),
            "s.yaml:3: target.view.extent: found '0';");
  EXPECT_NE(bare_fault_with("[shard(1)]", "[shard(1)], view: transformed"), "");  // of a source only
  EXPECT_EQ(
      bare_fault_with("replicated]", "replicated], view: rotated"),
      "s.yaml:2: source.view: found 'rotated'; allowed: transformed, or a mapping with base and extent");
  EXPECT_TRUE(parsed(replaced(bare_tensor, "replicated]", "replicated], view: transformed"))
                  .tensors[0]
                  .claims.transformed);
}

TEST(Scenario, ranks_may_be_ranges_in_any_order) {
  const Scenario scenario = parsed(replaced(bare_tensor, "[6, 4, 5]", "[9, 4-5]"));
  EXPECT_EQ(scenario.tensors[0].target.mesh.ranks, (std::vector<Rank>{Rank{9}, Rank{4}, Rank{5}}));
}

TEST(Scenario, tensors_in_a_list_have_distinct_names) {
  const std::string item =
      "source: {mesh: [1], first_rank: 0, placements: [replicated]}, target: {mesh: [1], first_rank: 1, "
      "placements: [replicated]}}\n";
  const std::string head = "fabric: {preset: dgx-h100, hosts: 1}\ntensors:\n";
  const Scenario scenario = parsed(head + "  - {tensor: {shape: [1], dtype: u8}, " + item +
                                   "  - {tensor: {name: b, shape: [1], dtype: u8}, " + item);
  EXPECT_EQ(scenario.tensors[0].name, "tensor.0");
  EXPECT_EQ(scenario.tensors[1].name, "b");
  EXPECT_EQ(fault_of(head + "  - {tensor: {name: b, shape: [1], dtype: u8}, " + item +
                     "  - {tensor: {name: b, shape: [1], dtype: u8}, " + item),
            "s.yaml:4: tensors.1.tensor.name: found the name 'b' a second time; allowed: each name once");
  EXPECT_EQ(fault_of(head + "  - {tensor: {shape: [1], dtype: u8}, sauce: 1, " + item),
            "s.yaml:3: tensors.0.sauce: found an unknown key; allowed: source, target, tensor");
}

RC_GTEST_PROP(Scenario, reads_back_from_its_own_text, ()) {
  const Scenario scenario = *arbitrary_scenario();
  const std::string text = to_yaml(scenario);
  const Scenario again = parsed(text);
  RC_ASSERT(same_content(scenario, again));
  RC_ASSERT(to_yaml(again) == text);
}

}  // namespace
}  // namespace isthmus::scenario_test
