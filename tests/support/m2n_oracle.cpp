#include "tests/support/m2n_oracle.hpp"

#include <algorithm>
#include <fstream>

#include <nlohmann/json.hpp>

#include "tests/support/published_data.hpp"
#include "tests/support/refit_generator.hpp"

namespace isthmus::test {
namespace {

using Json = nlohmann::json;

Placement placement_of(const std::string& text) {
  return text == "replicate" ? Placement{} : Placement{std::stoi(text.substr(6))};
}

Layout layout_of(const Json& side, const Json& tensor) {
  Layout layout;
  layout.shape = tensor.at("shape").get<std::vector<std::int64_t>>();
  for (const Dtype dtype : {Dtype::u8, Dtype::bf16, Dtype::f32, Dtype::f64})
    if (element_size(dtype).value == tensor.at("element_bytes")) layout.dtype = dtype;
  layout.mesh = contiguous_mesh(side.at("mesh").get<std::vector<std::int64_t>>(),
                                Rank{side.at("first_rank").get<std::uint32_t>()});
  for (const Json& placement : side.at("placements")) layout.placements.push_back(placement_of(placement));
  layout.chunk_rule = ChunkRule::ceil;
  return layout;
}

Region box_of(const Json& box) {
  Region region;
  region.dimensions = box.size();
  for (std::size_t d = 0; d < box.size(); ++d) {
    region.begin.at(d) = box[d][0];
    region.end.at(d) = box[d][1];
  }
  return region;
}

void read_leaders(const Json& output, M2nPicture& picture) {
  if (!output.contains("leaders")) return;
  for (const Json& item : output.at("leaders")) {
    M2nLeader leader{item.at("fed_by"), {}, {}, -1};
    for (const std::int64_t rank : item.at("source_ranks_of_data")) leader.source_ranks.insert(rank);
    for (const std::int64_t rank : item.at("followers")) leader.followers.insert(rank);
    if (!item.at("chain_next").is_null()) leader.chain_next = item.at("chain_next");
    picture.leaders.emplace(item.at("rank").get<std::int64_t>(), leader);
  }
}

M2nPicture read_picture(const Json& output) {
  M2nPicture picture;
  for (const Json& item : output.at("transfers")) {
    const std::string phase = item.at("phase");
    const Json receivers = item.contains("dsts") ? item.at("dsts") : Json::array({item.at("dst")});
    for (const std::int64_t receiver : receivers) {
      const M2nMove move{phase, item.at("src"), receiver, box_of(item.at("box"))};
      picture.moves.insert(move);
      if (phase == "inject") picture.runs[move] = item.at("contiguous_runs");
    }
  }
  for (const auto& [rank, bytes] : output.at("received_bytes_by_rank").items())
    picture.received[std::stoll(rank)] = bytes;
  for (const auto& [rank, bytes] : output.at("sent_bytes_by_rank").items())
    picture.sent[std::stoll(rank)] = bytes;
  for (const std::int64_t rank : output.at("idle_source_ranks")) picture.idle_sources.insert(rank);
  picture.network_bytes = output.at("network_bytes");
  picture.nvlink_bytes = output.at("nvlink_bytes");
  picture.network_copies = output.at("network_copies");
  read_leaders(output, picture);
  return picture;
}

std::int64_t global(const Instance& instance, LocalRank rank) { return global_rank(instance, rank).value; }

bool on_target(LocalRank rank) { return (rank.value & LocalRank::target_side) != 0; }

/// Dimensions at which M2N stops folding an overlap into one run: those that a side shards. A replicated
/// side counts as sharded once on dimension 0.
std::set<std::size_t> stops_of(const TensorSpec& tensor) {
  std::set<std::size_t> stops;
  for (const Layout* layout : {&tensor.source, &tensor.target}) {
    std::size_t stop = 0;
    for (const Placement placement : layout->placements)
      if (placement != Placement{}) stop = to_size(placement.dimension);
    stops.insert(stop);
  }
  return stops;
}

std::int64_t runs_of(const Region& box, const TensorSpec& tensor) {
  const std::set<std::size_t> stops = stops_of(tensor);
  std::size_t dimension = box.dimensions;
  while (dimension-- > 0) {
    const bool covered_fully =
        box.begin.at(dimension) == 0 && box.end.at(dimension) == tensor.source.shape[dimension];
    if (stops.contains(dimension) || !covered_fully) break;
  }
  std::int64_t runs = 1;
  for (std::size_t d = 0; d < dimension && dimension < box.dimensions; ++d)
    runs *= box.end.at(d) - box.begin.at(d);
  return runs;
}

/// Draws the picture of a plan.
class M2nPainter {
 public:
  M2nPainter(const Refit& refit, const Plan& plan, const M2nOracle& record)
      : plan_(plan), record_(record), geometry_(refit.geometries.front()) {}

  M2nPicture paint() {
    const Instance& instance = plan_.instances.front();
    for (const Step& step : plan_.pattern(instance).steps)
      if (step.kind == StepKind::send || step.kind == StepKind::put) collect(instance, step);
    for (const auto& [move, volume] : volumes_)
      if (volume == std::get<3>(move).volume()) picture_.moves.insert(move);
    for (const M2nMove& move : order_) account(move);
    for (const Rank rank : record_.tensor.source.mesh.ranks)
      if (picture_.sent[rank.value] == 0) picture_.idle_sources.insert(rank.value);
    const auto bytes = static_cast<double>(geometry_.source.bytes().value);
    picture_.network_copies = static_cast<double>(picture_.network_bytes) / bytes;
    return std::move(picture_);
  }

 private:
  std::int64_t domain(std::int64_t rank) const { return (rank - record_.anchor) / record_.domain_size; }

  void collect(const Instance& instance, const Step& step) {
    const std::int64_t sender = global(instance, step.source), receiver = global(instance, step.target);
    const bool inject = !on_target(step.source);
    const bool chain = !inject && domain(sender) != domain(receiver);
    const M2nMove move{inject  ? "inject"
                       : chain ? "chain"
                               : "fanout",
                       sender, receiver, overlap_around(step.region, receiver)};
    if (volumes_[move] == 0) order_.push_back(move);
    volumes_[move] += step.region.volume();
  }

  /// The overlap of a source shard with the receiver's shard that the slice is part of.
  Region overlap_around(const Region& slice, std::int64_t receiver) const {
    const Region mine =
        record_.tensor.target.region(to_size(receiver - record_.tensor.target.mesh.ranks[0].value));
    for (const Region& shard : record_.tensor.source.regions())
      if (shard.contains(slice)) return intersect(shard, mine);
    return slice;
  }

  void account(const M2nMove& move) {
    const auto& [phase, sender, receiver, box] = move;
    const std::int64_t bytes = geometry_.source.bytes(box).value;
    const bool fanout = phase == "fanout";
    picture_.received[receiver].at(fanout ? 1 : 0) += bytes;
    (fanout ? picture_.nvlink_bytes : picture_.network_bytes) += bytes;
    if (fanout) {
      picture_.leaders[sender].followers.insert(receiver);
      return;
    }
    if (phase == "inject") picture_.runs[move] = runs_of(box, record_.tensor);
    picture_.sent[sender] += bytes;
    M2nLeader& leader = picture_.leaders[receiver];
    leader.fed_by = phase == "inject" ? "source" : "chain";
    origin_[{receiver, box}] = phase == "inject" ? sender : origin_[{sender, box}];
    leader.source_ranks.insert(origin_[{receiver, box}]);
    if (phase == "chain") picture_.leaders[sender].chain_next = receiver;
  }

  const Plan& plan_;
  const M2nOracle& record_;
  const Geometry& geometry_;
  M2nPicture picture_;
  std::map<M2nMove, std::int64_t> volumes_;
  std::vector<M2nMove> order_;
  std::map<std::pair<std::int64_t, Region>, std::int64_t> origin_;  // whose shard a rank got a box from
};

}  // namespace

std::vector<std::filesystem::path> m2n_oracle_files() {
  std::vector<std::filesystem::path> files;
  const std::filesystem::path folder = data_folder() / "oracles";
  if (!std::filesystem::exists(folder)) return files;
  for (const auto& file : std::filesystem::directory_iterator(folder))
    if (file.path().filename().string().find(".m2n-") != std::string::npos) files.push_back(file.path());
  std::sort(files.begin(), files.end());
  return files;
}

M2nOracle read_m2n_oracle(const std::filesystem::path& file) {
  std::ifstream stream(file);
  const Json json = Json::parse(stream);
  const Json &input = json.at("input"), &output = json.at("output");
  M2nOracle oracle;
  oracle.name = json.at("case");
  oracle.verdict = output.at("verdict");
  oracle.balance_effective = output.value("load_balance_effective", "");
  const bool split = oracle.name.ends_with("-split");
  oracle.choice.balance =
      input.at("load_balance") == "uniform" ? M2nBalance::uniform : M2nBalance::node_aware;
  oracle.choice.spec.plan = input.at("plan") == "ring" ? M2nPlan::ring : M2nPlan::direct;
  oracle.choice.spec.split = split ? M2nSplit::on : M2nSplit::off;
  oracle.tensor.name = "tensor";
  oracle.tensor.source = layout_of(input.at("source"), input.at("tensor"));
  oracle.tensor.target = layout_of(input.at("destination"), input.at("tensor"));
  oracle.ranks = input.at("communicator_ranks");
  oracle.domain_size = input.at("domain_size").at(split ? "destination" : "source");
  if (split) oracle.anchor = oracle.tensor.target.mesh.ranks.front().value;
  if (oracle.verdict == "accepted") oracle.picture = read_picture(output);
  return oracle;
}

Refit m2n_refit(const TensorSpec& tensor, std::int64_t ranks, std::int64_t domain_size, const M2nSpec& spec) {
  Refit refit = make_refit({{tensor}, to_size(ranks)});
  FabricSpec fabric;
  fabric.hosts = static_cast<int>((ranks + domain_size - 1) / domain_size);
  refit.fabric = Fabric(fabric);
  for (std::int64_t rank = 0; rank < ranks; ++rank)
    refit.gpu_of_rank[to_size(rank)] =
        GpuId{static_cast<std::uint32_t>(rank / domain_size * 8 + rank % domain_size % 8)};
  refit.settings.m2n = spec;
  return refit;
}

M2nPicture picture_of(const Refit& refit, const Plan& plan, const M2nOracle& record) {
  return M2nPainter(refit, plan, record).paint();
}

}  // namespace isthmus::test
