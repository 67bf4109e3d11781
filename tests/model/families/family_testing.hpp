#pragma once
// What the family tests share: random sizes, a configuration on disk, and the comparison of an inventory,
// written out tensor by tensor, with a list that the test makes by plain loops. Role and home of every tensor
// are checked against a second statement of the rules, on the full names.

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "model/inventory.hpp"

namespace isthmus::testing {

/// A file that exists as long as this object.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& text, const std::string& extension = ".json");
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

Inventory read_config(const nlohmann::json& config);
/// The message with which the configuration is refused; "accepted" if it is not.
std::string refusal(const nlohmann::json& config);

/// What a test expects of one tensor.
struct Expected {
  std::vector<std::int64_t> shape;
  TensorParallel split = TensorParallel::replicated;
  Dtype stored = Dtype::bf16;
  friend bool operator==(const Expected&, const Expected&) = default;
};

struct ModelCase {
  nlohmann::json config;
  int layers = 0;
  std::map<std::string, Expected> tensors;  // by full name

  void add(const std::string& name, std::vector<std::int64_t> shape,
           TensorParallel split = TensorParallel::replicated, Dtype stored = Dtype::bf16);
};

/// Random sizes; shrink towards the lower end.
struct Draw {
  static std::int64_t size(std::int64_t low = 1, std::int64_t high = 6);
  static bool flag();
};

/// The tensors of a model as a manifest.
nlohmann::json manifest_of(const ModelCase& model);

/// Checks 200 random models: the inventory of the configuration is the list, and so is that of the list
/// itself, given as a manifest; both move the same tensors in a refit.
void expect_family(const std::string& claim, const std::function<ModelCase()>& draw);

/// "" when the inventory is what the case lists; otherwise the first difference.
std::string difference(const Inventory& inventory, const ModelCase& expected);

}  // namespace isthmus::testing
