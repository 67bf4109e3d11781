#pragma once
// Whatever describes a refit: a scenario of ours, a NeMo RL recipe (YAML with policy and cluster, or with
// defaults), a system configuration of NCCL M2N's model benchmark (JSON with train.num_gpus), or NeMo RL's
// description of a running refit (JSON with per_layer_params; model/refit_info.hpp). The content of the file
// decides, not its name. The latter three say nothing about fabric and calibration, so their scenario rests
// on assumptions, which are listed. Invariant: faults of a foreign file go by that file's own
// keys, with the file and line where the value stands (of a recipe: whichever file of its `defaults` chain
// has the last word).

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/input_fault.hpp"
#include "model/scenario.hpp"
#include "model/yaml.hpp"

namespace isthmus {

enum class InputKind : std::uint8_t { scenario, nemo_rl_recipe, m2n_config, refit_info };

struct Input {
  InputKind kind = InputKind::scenario;
  Scenario scenario;
  bool has_model = true;              // false: no tensors to judge, the scenario cannot be resolved
  bool has_layout = true;             // false: the sizes of the grids are not known, because of an obstacle
  std::vector<InputFault> obstacles;  // what the file asks for and a scenario cannot express
  std::vector<InputFault> nemo_rl;    // recipes: violations of NeMo RL's rules (model/nemo_rl_rules.hpp)
  std::vector<std::string> assumptions;  // what the scenario says and the file does not
  std::vector<std::string> notes;
};

/// Reads any of the four. `model`: a configuration that takes the place of the scenario's, or that a recipe
/// or M2N configuration needs. `local_maps`: of a refit description, a file or folder. Overrides change a
/// scenario; of a foreign file, keys below fabric, refit, calibration, ranks, published and name change the
/// scenario made of it, all others the file itself.
Input read_input(const std::filesystem::path& file, const std::vector<Override>& overrides = {},
                 const std::optional<std::filesystem::path>& model = std::nullopt,
                 const std::optional<std::filesystem::path>& local_maps = std::nullopt);

/// The scenario, to be resolved; raises the first obstacle.
const Scenario& require_scenario(const Input& input);

/// For readers of foreign files. The overrides that are meant for the scenario; the others go into
/// `document`.
std::vector<Override> apply_overrides(const std::vector<Override>& overrides, YamlDocument& document);
/// Makes the draft complete: model and overrides. `names` gives the foreign name and place of scenario keys.
Scenario complete_scenario(const Scenario& draft, const std::filesystem::path& model,
                           const std::vector<Override>& overrides, std::map<std::string, Location> names);
/// "fabric dgx-h100-superpod with 64 hosts ...", "calibration ...": what every foreign file leaves open.
std::vector<std::string> common_assumptions(const Scenario& scenario);

}  // namespace isthmus
