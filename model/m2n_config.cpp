#include "model/m2n_config.hpp"

#include <fmt/format.h>

#include "model/scenario_reader.hpp"
#include "model/text.hpp"

namespace isthmus {
namespace {

constexpr int gpus_per_host = 8;

/// One side of the file. Missing sizes count as 1.
class Sizes {
 public:
  explicit Sizes(YamlValue side) : side_(std::move(side)) {
    side_.allow_only(
        {"_comment", "num_gpus", "tp_size", "cp_size", "ep_size", "pp_size", "fsdp_size", "dp_size"});
  }

  int at(std::string_view key) const {
    const auto value = key == "num_gpus" ? side_.at(key) : side_.find(key);
    return value ? static_cast<int>(value->integer(1, max_gpus)) : 1;
  }
  Location where(std::string_view key) const {
    if (const auto value = side_.find(key)) return value->where();
    Location place = side_.where();
    place.key += fmt::format(".{}", key);
    return place;
  }
  /// A kind of parallelism that a scenario cannot express.
  void require_one(std::string_view key, std::string_view why, std::vector<InputFault>& faults) const {
    if (at(key) == 1) return;
    faults.push_back({where(key), fmt::format("{}", at(key)), fmt::format("1 ({})", why), "1"});
  }

 private:
  YamlValue side_;
};

std::map<std::string, Location> names_of(const Sizes& train, const Sizes& generate) {
  std::map<std::string, Location> names;
  for (const auto& [ours, theirs] : std::map<std::string, std::string>{{"gpus", "num_gpus"},
                                                                       {"tp", "tp_size"},
                                                                       {"cp", "cp_size"},
                                                                       {"ep", "ep_size"},
                                                                       {"pp", "pp_size"},
                                                                       {"dp", "dp_size"}}) {
    names["train." + ours] = train.where(theirs);
    names["generate." + ours] = generate.where(theirs);
  }
  return names;
}

void list_notes(const TrainSpec& train, int dp, Input& input) {
  const std::int64_t grid = std::int64_t{train.tp} * train.cp * train.pp;
  if (train.gpus % grid != 0 || train.gpus / grid == dp) return;
  input.notes.push_back(
      fmt::format("train.dp_size is {}, but the grid gives {}: it is not used", dp, train.gpus / grid));
}

}  // namespace

Input read_m2n_config(YamlDocument document, const std::filesystem::path& file,
                      const std::vector<Override>& overrides,
                      const std::optional<std::filesystem::path>& model) {
  const std::vector<Override> of_scenario = apply_overrides(overrides, document);
  const YamlValue root = document.root();
  root.allow_only({"_comment", "train", "generation"});
  const Sizes train(root.at("train")), generate(root.at("generation"));
  Input input;
  input.kind = InputKind::m2n_config;
  Scenario& draft = input.scenario;
  draft.file = file;
  draft.name = printable(file.stem().string());
  draft.train = TrainSpec{train.at("num_gpus"), train.at("tp_size"), train.at("cp_size"),
                          train.at("ep_size"),  train.at("pp_size"), 1,
                          std::nullopt,         std::nullopt,        LayerSplit::proportional};
  draft.generate = GenerateSpec{generate.at("num_gpus"), generate.at("tp_size"), generate.at("ep_size"),
                                generate.at("dp_size")};
  draft.model = ModelSpec{"config.json", WirePrecision::bf16, false, false, std::nullopt, false};
  draft.train->vocabulary_multiple = draft.generate->vocabulary_multiple = 1;
  draft.fabric.hosts = (draft.train->gpus + gpus_per_host - 1) / gpus_per_host +
                       (draft.generate->gpus + gpus_per_host - 1) / gpus_per_host;
  draft.fabric.nic_bandwidth = Bandwidth{50'000'000'000};
  draft.refit.bulk.kind = BulkRule::Kind::all;
  draft.calibration = "h100-ib400";
  train.require_one("fsdp_size", "how M2N places such shards is not known; a scenario has train.fsdp",
                    input.obstacles);
  generate.require_one("fsdp_size", "as on the training side", input.obstacles);
  generate.require_one("cp_size", "generation ranks are engines of tp", input.obstacles);
  generate.require_one("pp_size", "as in M2N's benchmark; a scenario has generate.pp", input.obstacles);
  list_notes(*draft.train, train.at("dp_size"), input);
  input.has_model = model.has_value();
  if (!model) return input;
  input.scenario = complete_scenario(draft, *model, of_scenario, names_of(train, generate));
  input.assumptions = common_assumptions(input.scenario);
  input.assumptions.push_back("all tensors are resharded; hosts of 8 GPUs, training first");
  return input;
}

}  // namespace isthmus
