#include "tests/support/nemo_oracle.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "tests/support/published_data.hpp"

namespace isthmus::test {
namespace {

Placement placement_of(const std::string& text, std::size_t dimensions) {
  if (text == "replicate") return {};
  if (text.rfind("shard(", 0) != 0) throw std::runtime_error("placement " + text);
  const int dimension = std::stoi(text.substr(6));
  return {dimension < 0 ? dimension + static_cast<int>(dimensions) : dimension};
}

Layout layout_of(const nlohmann::json& tensor, const nlohmann::json& side, ChunkRule rule) {
  Layout layout;
  layout.shape = tensor.at("shape").get<std::vector<std::int64_t>>();
  layout.dtype = tensor.at("element_bytes") == 4 ? Dtype::f32 : Dtype::bf16;
  layout.mesh = contiguous_mesh(side.at("mesh").get<std::vector<std::int64_t>>(),
                                Rank{side.value("first_rank", std::uint32_t{0})});
  if (side.contains("rank_order")) {
    for (std::size_t i = 0; i < layout.mesh.size(); ++i)
      layout.mesh.ranks[i] = {side["rank_order"].at(i).get<std::uint32_t>()};
  }
  for (const std::string text : side.at("placements"))
    layout.placements.push_back(placement_of(text, layout.shape.size()));
  layout.chunk_rule = rule;
  return layout;
}

}  // namespace

std::vector<nlohmann::json> nemo_oracles(const std::string& mode) {
  std::vector<nlohmann::json> oracles;
  const std::filesystem::path folder = data_folder() / "oracles";
  if (!std::filesystem::is_directory(folder)) return oracles;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    const std::string name = file.path().filename().string();
    if (name.find("." + mode + ".json") == std::string::npos) continue;
    std::ifstream stream(file.path());
    oracles.push_back(nlohmann::json::parse(stream));
  }
  std::sort(oracles.begin(), oracles.end(),
            [](const nlohmann::json& a, const nlohmann::json& b) { return a["case"] < b["case"]; });
  return oracles;
}

RefitCase nemo_case(const nlohmann::json& oracle, ChunkRule rule) {
  const nlohmann::json& input = oracle.at("input");
  TensorSpec spec;
  spec.name = oracle.at("case").get<std::string>();
  spec.source = layout_of(input.at("tensor"), input.at("source"), rule);
  spec.target = layout_of(input.at("tensor"), input.at("destination"), rule);
  RefitCase result{{spec}, 0};
  for (const Layout* layout : {&spec.source, &spec.target})
    for (const Rank rank : layout->mesh.ranks) result.ranks = std::max(result.ranks, rank.index() + 1);
  return result;
}

nlohmann::json box_json(const Region& region) {
  nlohmann::json box = nlohmann::json::array();
  for (std::size_t d = 0; d < region.dimensions; ++d) box.push_back({region.begin[d], region.end[d]});
  return box;
}

nlohmann::json regions_json(const Layout& layout) {
  nlohmann::json regions = nlohmann::json::object();
  for (std::size_t i = 0; i < layout.mesh.size(); ++i)
    regions[std::to_string(layout.mesh.ranks[i].value)] = box_json(layout.region(i));
  return regions;
}

bool is_empty(const nlohmann::json& box) {
  return std::any_of(box.begin(), box.end(), [](const nlohmann::json& side) { return side[0] == side[1]; });
}

bool same_regions(const nlohmann::json& a, const nlohmann::json& b) {
  return a.size() == b.size() && std::all_of(a.items().begin(), a.items().end(), [&b](const auto& entry) {
           const auto other = b.find(entry.key());
           return other != b.end() &&
                  (*other == entry.value() || (is_empty(*other) && is_empty(entry.value())));
         });
}

}  // namespace isthmus::test
