#include "tests/model/families/family_testing.hpp"

#include <unistd.h>

#include <atomic>
#include <fstream>
#include <regex>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "model/checkpoint.hpp"
#include "model/error.hpp"

namespace isthmus::testing {
namespace {

struct Written {
  Expected tensor;
  Role role = Role::misc;
  Home home = Home::layer;
};

std::string with(std::string name, const std::string& symbol, std::int64_t value) {
  const std::size_t at = name.find(symbol);
  return at == std::string::npos ? name : name.replace(at, symbol.size(), std::to_string(value));
}

// Every stored tensor of the inventory by its full name.
std::map<std::string, Written> write_out(const Inventory& inventory) {
  std::map<std::string, Written> tensors;
  for (const TensorPattern& pattern : inventory.patterns) {
    const bool by_expert = pattern.name.find("{e}") != std::string::npos;
    EXPECT_EQ(pattern.name.find("{l}") != std::string::npos, !pattern.layers.empty()) << pattern.name;
    const std::vector<int> layers = pattern.layers.empty() ? std::vector<int>{0} : pattern.layers;
    std::int64_t written = 0;
    for (const int layer : layers) {
      for (std::int64_t expert = 0; expert < (by_expert ? pattern.experts : 1); ++expert) {
        const std::string name = with(with(pattern.name, "{l}", layer), "{e}", expert);
        const Written tensor{
            {pattern.shape, pattern.tensor_parallel, pattern.stored}, pattern.role, pattern.home};
        EXPECT_TRUE(tensors.emplace(name, tensor).second) << name << " stands in two patterns";
        ++written;
      }
    }
    EXPECT_EQ(written, pattern.count()) << pattern.name;
  }
  return tensors;
}

// The published rule, on full names.
Role expected_role(const std::string& name, int layers) {
  static const std::regex appended("model\\.layers\\.([0-9]+)\\..*");
  static const std::regex bulk(".*((gate|up|down)_proj\\.weight|experts\\.(gate_up|down)_proj)");
  static const std::regex vision("(model\\.visual|vision_tower|mm_projector)\\..*");
  std::smatch match;
  if (name.rfind("mtp.", 0) == 0) return Role::mtp;
  if (std::regex_match(name, match, appended) && std::stoi(match[1]) >= layers) return Role::mtp;
  if (std::regex_match(name, vision)) return Role::vision;
  if (name.find("shared_expert") != std::string::npos) return Role::misc;
  return std::regex_match(name, bulk) ? Role::bulk : Role::misc;
}

Home expected_home(const std::string& name, Role role) {
  static const std::regex embedding("(.*\\.)?embed(_tokens|dings)\\.weight");
  static const std::regex layer(".*\\.layers\\.[0-9]+\\..*");
  if (role == Role::mtp) return Home::last_stage;
  if (role == Role::vision || std::regex_match(name, embedding)) return Home::first_stage;
  return std::regex_match(name, layer) ? Home::layer : Home::last_stage;
}

// What no manifest can tell is left out: the heads of k and v, and the order of patterns.
std::map<std::string, RefitTensor> refit_by_name(const Inventory& inventory) {
  std::map<std::string, RefitTensor> tensors;
  for (RefitTensor& tensor : refit_tensors(inventory, {true, true}, [](const TensorPattern& pattern) {
         return pattern.role == Role::bulk;
       })) {
    tensor.key_value_heads = 0;
    const std::string name = tensor.name;
    EXPECT_TRUE(tensors.emplace(name, std::move(tensor)).second) << name;
  }
  return tensors;
}

std::string show(const Expected& tensor) {
  return fmt::format("[{}] split {} stored {}", fmt::join(tensor.shape, ", "), static_cast<int>(tensor.split),
                     to_string(tensor.stored));
}

}  // namespace

TemporaryFile::TemporaryFile(const std::string& text, const std::string& extension) {
  static std::atomic<int> files = 0;
  path_ =
      std::filesystem::temp_directory_path() / fmt::format("isthmus-{}-{}{}", getpid(), files++, extension);
  std::ofstream(path_, std::ios::binary) << text;
}

TemporaryFile::~TemporaryFile() { std::filesystem::remove(path_); }

Inventory read_config(const nlohmann::json& config) {
  return read_model_config(TemporaryFile(config.dump()).path());
}

std::string refusal(const nlohmann::json& config) {
  try {
    read_config(config);
    return "accepted";
  } catch (const InputError& error) {
    return error.what();
  }
}

void ModelCase::add(const std::string& name, std::vector<std::int64_t> shape, TensorParallel split,
                    Dtype stored) {
  EXPECT_TRUE(tensors.emplace(name, Expected{std::move(shape), split, stored}).second) << name;
}

std::int64_t Draw::size(std::int64_t low, std::int64_t high) { return *rc::gen::inRange(low, high + 1); }
bool Draw::flag() { return *rc::gen::arbitrary<bool>(); }

std::string difference(const Inventory& inventory, const ModelCase& expected) {
  const std::map<std::string, Written> tensors = write_out(inventory);
  if (inventory.layers != expected.layers)
    return fmt::format("{} layers, not {}", inventory.layers, expected.layers);
  for (const auto& [name, tensor] : expected.tensors) {
    const auto found = tensors.find(name);
    if (found == tensors.end()) return name + " is missing";
    const Written& written = found->second;
    if (!(written.tensor == tensor))
      return fmt::format("{}: {}, not {}", name, show(written.tensor), show(tensor));
    const Role role = expected_role(name, expected.layers);
    if (written.role != role)
      return fmt::format("{}: role {}, not {}", name, to_string(written.role), to_string(role));
    if (written.home != expected_home(name, role)) return name + " stands on another stage";
  }
  for (const auto& [name, tensor] : tensors) {
    if (!expected.tensors.contains(name)) return name + " does not belong to the model";
  }
  return "";
}

nlohmann::json manifest_of(const ModelCase& model) {
  nlohmann::json manifest = nlohmann::json::object();
  for (const auto& [name, tensor] : model.tensors) {
    manifest[name] = {{"shape", tensor.shape}, {"dtype", tensor.stored == Dtype::f32 ? "F32" : "BF16"}};
  }
  return manifest;
}

void expect_family(const std::string& claim, const std::function<ModelCase()>& draw) {
  const bool held = rc::check(claim, [&draw] {
    for (int model = 0; model < 2; ++model) {  // RapidCheck runs 100 cases
      const ModelCase expected = draw();
      const Inventory inventory = read_config(expected.config);
      const Inventory listed = read_manifest(TemporaryFile(manifest_of(expected).dump()).path());
      const std::string context = "\n" + expected.config.dump();
      const std::string found = difference(inventory, expected), by_manifest = difference(listed, expected);
      if (!found.empty()) RC_FAIL(found + context);
      if (!by_manifest.empty()) RC_FAIL("as a manifest: " + by_manifest + context);
      if (refit_by_name(inventory) != refit_by_name(listed)) RC_FAIL("other refit tensors" + context);
    }
  });
  EXPECT_TRUE(held) << claim;
}

}  // namespace isthmus::testing
