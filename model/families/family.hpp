#pragma once
// What all model families share. A family is one function in one file of this folder: it reads its keys of a
// config.json and adds tensor patterns. inventory.cpp lists the families by architecture (model_type).
// Invariant: nothing is guessed. A key that is missing, of the wrong type, or outside its range raises
// InputError with file, key, what was found and what is allowed. `null` counts as missing, as in
// transformers. The limits lie far above any known model; they keep products of sizes within 64 bits.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "model/inventory.hpp"

namespace isthmus::families {

inline constexpr std::int64_t max_size = std::int64_t{1} << 24;   // hidden sizes, vocabulary
inline constexpr std::int64_t max_heads = std::int64_t{1} << 16;  // heads and their sizes
inline constexpr std::int64_t max_experts = std::int64_t{1} << 16;
inline constexpr std::int64_t max_layers = 10'000;
inline constexpr std::int64_t max_small = 1'024;  // kernels, patches, shared experts
inline constexpr std::int64_t max_mtp_layers = 64;

/// One object of a config.json. Lives no longer than the JSON it looks at.
class Config {
 public:
  Config(const nlohmann::json& object, std::string file, std::string prefix = "");

  bool has(std::string_view key) const;
  std::int64_t size(std::string_view key, std::int64_t max = max_size) const;  // 1 ... max
  std::int64_t size_or(std::string_view key, std::int64_t otherwise, std::int64_t max = max_size) const;
  std::int64_t count(std::string_view key, std::int64_t max) const;  // 0 ... max
  std::int64_t count_or(std::string_view key, std::int64_t otherwise, std::int64_t max) const;
  bool flag(std::string_view key) const;
  bool flag_or(std::string_view key, bool otherwise) const;
  std::string text(std::string_view key) const;
  std::vector<std::int64_t> sizes(std::string_view key, std::int64_t min, std::int64_t max) const;
  std::vector<std::string> texts(std::string_view key) const;
  Config object(std::string_view key) const;

  /// Refuses any value but `allowed`; a missing key is fine, the family's default being `allowed`.
  void only(std::string_view key, const nlohmann::json& allowed) const;
  /// Refuses a config whose head shares the embedding's weights. Either this object or `outer` must say so.
  void require_untied(const Config* outer = nullptr) const;

  [[noreturn]] void refuse(std::string_view key, std::string_view found, std::string_view allowed) const;

 private:
  const nlohmann::json* find(std::string_view key) const;  // nullptr when missing or null
  const nlohmann::json& at(std::string_view key, std::string_view allowed) const;
  std::int64_t integer(std::string_view key, std::int64_t min, std::int64_t max) const;

  const nlohmann::json* object_;
  std::string file_;
  std::string prefix_;  // "text_config." in messages
};

using Shape = std::vector<std::int64_t>;

/// Layers that hold the same tensors. `prefix` ends in a dot and contains {l}.
struct Block {
  std::string prefix;
  std::vector<int> layers;
  Home home = Home::layer;
};

/// begin, begin + 1, ..., end - 1
std::vector<int> layer_range(std::int64_t begin, std::int64_t end);

/// Adds patterns to an inventory, whose `layers` must be set. Roles follow from the names. A block without
/// layers adds nothing. Names are given without the block's prefix.
class Patterns {
 public:
  explicit Patterns(Inventory& inventory) : inventory_(inventory) {}

  void once(Home home, std::string name, Shape shape, TensorParallel split = TensorParallel::replicated);
  void each(const Block& block, std::string_view name, Shape shape,
            TensorParallel split = TensorParallel::replicated, Dtype stored = Dtype::bf16);
  /// A k or v projection, or its bias: dimension 0 is `heads` whole heads.
  void key_value(const Block& block, std::string_view name, std::int64_t heads, Shape shape);
  /// One tensor per expert; `name` contains {e}, `split` is that of one expert's tensor.
  void experts(const Block& block, std::string_view name, std::int64_t experts, Shape shape,
               TensorParallel split);
  /// One tensor [experts, ...] per layer; `split` is that of one expert's part, in [out, in] order.
  void fused_experts(const Block& block, std::string_view name, Shape shape, TensorParallel split,
                     bool transposed = false);

 private:
  TensorPattern* add(const Block& block, std::string_view name, Shape shape, TensorParallel split);

  Inventory& inventory_;
};

// The families. Each sets layers, experts and patterns.
void llama(const Config& config, Inventory& inventory);
void qwen3(const Config& config, Inventory& inventory);
void qwen3_moe(const Config& config, Inventory& inventory);
void deepseek_v3(const Config& config, Inventory& inventory);  // and kimi_k2
void glm4_moe(const Config& config, Inventory& inventory);
void qwen3_5_moe(const Config& config, Inventory& inventory);
void qwen3_5_moe_text(const Config& config, Inventory& inventory);
void nemotron_h(const Config& config, Inventory& inventory);
void kimi_k3(const Config& config, Inventory& inventory);
void gpt_oss(const Config& config, Inventory& inventory);

}  // namespace isthmus::families
