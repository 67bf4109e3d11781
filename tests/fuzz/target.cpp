#include "tests/fuzz/target.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <system_error>

#include <fmt/format.h>

#include "model/error.hpp"
#include "model/refit.hpp"
#include "model/text.hpp"
#include "model/traffic_rules.hpp"
#include "model/validation.hpp"

namespace isthmus::fuzz {
namespace {

// Above these the parsers still run, but what follows them would take most of the time.
constexpr std::int64_t most_tensors = 5'000;
constexpr int most_hosts = 32;
constexpr std::size_t most_gpus = 256;

constexpr std::string_view small_model = R"({"model_type": "qwen3_moe", "hidden_size": 64,
"num_hidden_layers": 2, "vocab_size": 96, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
"intermediate_size": 128, "moe_intermediate_size": 32, "num_experts": 8, "decoder_sparse_step": 1,
"mlp_only_layers": [], "attention_bias": false, "tie_word_embeddings": false})";

[[noreturn]] void fail(const char* call) { throw std::system_error(errno, std::generic_category(), call); }

std::int64_t volume(const std::vector<std::int64_t>& shape) {
  std::int64_t product = 1;
  for (const std::int64_t extent : shape) product *= extent;
  return product;
}

void check_fault(const InputFault& fault) {
  for (const std::string& text :
       {fault.where.file, fault.where.key, fault.found, fault.allowed, fault.change}) {
    ISTHMUS_ASSERT(first_unprintable(text) == text.size(), "{}", fault.found);
  }
}

bool is_small(const Scenario& scenario) {
  std::size_t gpus = 0;
  if (scenario.train) gpus += to_size(scenario.train->gpus) + to_size(scenario.generate->gpus);
  for (const TensorSpec& tensor : scenario.tensors)
    gpus += tensor.source.mesh.size() + tensor.target.mesh.size();
  if (scenario.traffic) gpus += 4 * traffic_gpus(*scenario.traffic).size();
  return gpus <= most_gpus && scenario.fabric.hosts <= most_hosts;
}

bool has_large_twin(const Scenario& scenario) {
  bool large = false;
  only_input_errors([&] {
    const std::optional<Scenario> twin = healthy_twin(scenario);
    large = twin && !is_small(*twin);
  });
  return large;
}

/// What a prediction of plain traffic needs.
void use_traffic(const Scenario& scenario) {
  raise_first(traffic_faults(scenario));
  traffic_streams(scenario_fabric(scenario), *scenario.traffic);
  if (const std::optional<Scenario> twin = healthy_twin(scenario)) use_traffic(*twin);
}

}  // namespace

std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

void only_input_errors(const std::function<void()>& read) {
  try {
    read();
  } catch (const InputError& error) {
    const std::string_view message = error.what();
    ISTHMUS_ASSERT(!message.empty() && first_unprintable(message) == message.size(),
                   "a message of one line: {}", message);
  }
}

PrivateFolder::PrivateFolder() {
  std::error_code ignored;
  const bool in_memory = std::filesystem::is_directory("/dev/shm", ignored);
  std::string path = in_memory ? "/dev/shm" : std::filesystem::temp_directory_path().string();
  path += "/isthmus-fuzz-XXXXXX";
  if (mkdtemp(path.data()) == nullptr) fail("mkdtemp");
  path_ = path;
}

PrivateFolder::~PrivateFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::filesystem::path PrivateFolder::write(std::string_view name, std::string_view content) const {
  const std::filesystem::path file = path_ / name;
  const int descriptor = open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (descriptor < 0) fail("open");
  const ssize_t written = ::write(descriptor, content.data(), content.size());
  close(descriptor);
  if (written != static_cast<ssize_t>(content.size())) fail("write");
  return file;
}

std::filesystem::path PrivateFolder::write_small_model() const { return write("config.json", small_model); }

void use(const Inventory& inventory) {
  const InventoryTotals sum = totals(inventory);
  ISTHMUS_ASSERT(sum.parameters >= 0 && sum.bulk_fraction() >= 0 && sum.bulk_fraction() <= 1,
                 "{} parameters, {}", sum.parameters, sum.bulk_fraction());
  ISTHMUS_ASSERT(sum.bulk_bytes + sum.misc_bytes == sum.bytes, "{} {} {}", sum.bulk_bytes.value,
                 sum.misc_bytes.value, sum.bytes.value);
  std::int64_t places = 0;
  for (const TensorPattern& pattern : inventory.patterns)
    places += std::max<std::int64_t>(1, static_cast<std::int64_t>(pattern.layers.size()));
  if (places > most_tensors) return;
  const auto is_bulk = [](const TensorPattern& pattern) { return pattern.role == Role::bulk; };
  std::int64_t moved = 0;
  for (const RefitTensor& tensor : refit_tensors(inventory, {false, true}, is_bulk)) {
    ISTHMUS_ASSERT(!tensor.shape.empty() && tensor.shape.size() <= max_dimensions, "{}", tensor.name);
    moved += 2 * volume(tensor.shape);
  }
  ISTHMUS_ASSERT(moved == sum.payload_bytes.value, "{} of {} bytes", moved, sum.payload_bytes.value);
  refit_tensors(inventory, {true, true}, is_bulk);
}

void use(const Input& input) {
  for (const InputFault& fault : input.obstacles) check_fault(fault);
  for (const InputFault& fault : input.nemo_rl) check_fault(fault);
  if (!is_small(input.scenario) || (input.scenario.traffic && has_large_twin(input.scenario))) return;
  std::optional<bool> valid;  // empty: the rules raise where they should list; all files can be read here
  only_input_errors([&] {
    for (const RuleSet rules : {RuleSet::m2n, RuleSet::nemo_rl, RuleSet::general}) {
      const Validation validation = validate(input, rules);
      for (const InputFault& fault : validation.violations) check_fault(fault);
      valid = validation.valid();
    }
  });
  ISTHMUS_ASSERT(valid.has_value(), "{} is judged", input.scenario.name);
  if (!input.has_model || !input.has_layout) return;
  bool resolves = false;
  only_input_errors([&] {
    const Scenario& scenario = require_scenario(input);
    if (scenario.traffic) {
      use_traffic(scenario);
    } else {
      resolve(scenario);
    }
    resolves = true;
  });
  ISTHMUS_ASSERT(*valid == resolves, "valid: {}, resolves: {}", *valid, resolves);
}

}  // namespace isthmus::fuzz
