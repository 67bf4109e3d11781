// What stands out among the GPUs and NICs of one type of block.

#include <algorithm>
#include <set>
#include <tuple>

#include "model/topology/block_analysis.hpp"
#include "model/topology/finding_list.hpp"

namespace isthmus {
namespace {

class BlockReview {
 public:
  BlockReview(const BlockFindings& where, FindingList& findings)
      : where_(where), block_(where.block), findings_(findings), analysis_(analyse(where.block)) {}

  void review() {
    if (!block_.nvlink_known && block_.gpus.size() > 1) {
      findings_.add("nvlink-unknown", [&] {
        return fmt::format("how NVLink joins the {} GPUs of block {} is not said{}", block_.gpus.size(),
                           where_.place.block, where_.elsewhere());
      });
    }
    count_hosts();
    for (std::uint32_t gpu = 0; gpu < block_.gpus.size(); ++gpu) review_gpu(gpu);
    review_domains();
    review_chips();
    review_shared_nics();
    review_hosts();
  }

 private:
  struct HostCount {
    std::uint64_t gpus = 0, with_nvlink = 0;
    std::set<std::uint32_t> cards{};
  };

  std::uint32_t host_of(std::uint32_t vertex) const { return *block_.vertices[vertex].host; }
  std::string gpu_name(std::uint32_t gpu) const { return where_.name(block_.gpus[gpu].vertex); }

  void count_hosts() {
    hosts_.resize(block_.hosts);
    for (std::uint32_t gpu = 0; gpu < block_.gpus.size(); ++gpu) {
      HostCount& host = hosts_[host_of(block_.gpus[gpu].vertex)];
      ++host.gpus;
      if (analysis_.gpus[gpu].nvlink_wires > 0) ++host.with_nvlink;
    }
    for (const BlockNic& nic : block_.nics) hosts_[host_of(nic.vertex)].cards.insert(nic.card);
  }

  std::string nic_names(const std::vector<std::uint32_t>& nics) const {
    std::vector<std::pair<std::uint32_t, std::string>> names;
    for (const std::uint32_t nic : nics) {
      const std::uint32_t vertex = block_.nics[nic].vertex;
      names.emplace_back(block_.vertices[vertex].index, where_.name(vertex));
    }
    return joined(std::move(names));
  }

  static std::string joined(std::vector<std::pair<std::uint32_t, std::string>> names) {
    std::sort(names.begin(), names.end());
    std::string text;
    for (std::size_t i = 0; i < names.size(); ++i) {
      const std::string_view separator = i == 0 ? "" : i + 1 == names.size() ? " and " : ", ";
      text += fmt::format("{}{}", separator, names[i].second);
    }
    return text;
  }

  void review_gpu(std::uint32_t gpu);
  void review_domains();
  void review_chips();
  void review_shared_nics();
  void review_hosts();

  const BlockFindings& where_;
  const Block& block_;
  FindingList& findings_;
  BlockAnalysis analysis_;
  std::vector<HostCount> hosts_;
};

void BlockReview::review_gpu(std::uint32_t gpu) {
  const GpuAnalysis& found = analysis_.gpus[gpu];
  const HostCount& host = hosts_[host_of(block_.gpus[gpu].vertex)];
  if (block_.nvlink_known && found.nvlink_wires == 0 && host.with_nvlink > 0) {
    findings_.add("gpu-without-nvlink", [&] {
      return fmt::format("{} has no NVLink, {} other GPUs of its host do: their domain is degraded{}",
                         gpu_name(gpu), host.with_nvlink, where_.elsewhere());
    });
  }
  if (found.nics.empty() && !host.cards.empty()) {
    findings_.add("gpu-without-nic", [&] {
      return fmt::format("no known way leads from {} to a NIC of its host{}", gpu_name(gpu),
                         where_.elsewhere());
    });
  }
  if (found.crosses_socket) {
    findings_.add("nic-on-another-socket", [&] {
      return fmt::format("the NICs of {} are on another socket: {}{}", gpu_name(gpu), nic_names(found.nics),
                         where_.elsewhere());
    });
  }
  if (!block_.gpus[gpu].gpudirect) {
    findings_.add("gpudirect-off", [&] {
      return fmt::format("GPUDirect is off for {}: its network traffic goes through host memory{}",
                         gpu_name(gpu), where_.elsewhere());
    });
  }
}

void BlockReview::review_domains() {
  std::vector<Peers<std::uint64_t>> domains(analysis_.domains);
  for (const GpuAnalysis& gpu : analysis_.gpus)
    if (gpu.nvlink_wires > 0) domains[gpu.domain].add(gpu.nvlink_wires);
  std::vector<std::optional<std::uint64_t>> usual;
  for (const Peers<std::uint64_t>& domain : domains) usual.push_back(domain.usual(2));
  for (std::uint32_t gpu = 0; gpu < analysis_.gpus.size(); ++gpu) {
    const std::uint64_t wires = analysis_.gpus[gpu].nvlink_wires;
    const std::optional<std::uint64_t>& peers = usual[analysis_.gpus[gpu].domain];
    if (wires == 0 || !peers || wires >= *peers) continue;
    findings_.add("gpu-with-fewer-nvlinks", [&] {
      return fmt::format("{} has {} NVLinks, most GPUs of its domain {}{}", gpu_name(gpu), wires, *peers,
                         where_.elsewhere());
    });
  }
}

void BlockReview::review_chips() {
  if (!block_.nvlink_known) return;
  std::vector<bool> wired(block_.vertices.size());
  for (const BlockWire& wire : block_.wires)
    if (wire.kind == WireKind::nvlink) wired[wire.from] = true;
  for (std::uint32_t vertex = 0; vertex < block_.vertices.size(); ++vertex) {
    if (block_.vertices[vertex].kind != VertexKind::nvswitch || wired[vertex]) continue;
    findings_.add("nvswitch-not-connected", [&] {
      return fmt::format("no NVLink ends at {}{}", where_.name(vertex), where_.elsewhere());
    });
  }
}

/// Only on hosts that have a card for every GPU: elsewhere sharing is the plan.
void BlockReview::review_shared_nics() {
  using Choice = std::pair<std::uint32_t, std::vector<std::uint32_t>>;  // host, NICs
  std::map<Choice, std::vector<std::pair<std::uint32_t, std::string>>> users;
  for (std::uint32_t gpu = 0; gpu < block_.gpus.size(); ++gpu) {
    const std::uint32_t vertex = block_.gpus[gpu].vertex;
    if (analysis_.gpus[gpu].nics.empty()) continue;
    users[{host_of(vertex), analysis_.gpus[gpu].nics}].emplace_back(block_.vertices[vertex].index,
                                                                    gpu_name(gpu));
  }
  for (const auto& [choice, gpus] : users) {
    const HostCount& host = hosts_[choice.first];
    std::set<std::uint32_t> cards;
    for (const std::uint32_t nic : choice.second) cards.insert(block_.nics[nic].card);
    if (gpus.size() <= cards.size() || host.gpus > host.cards.size()) continue;
    findings_.add("shared-nearest-nic", [&names = gpus, &nics = choice.second, this] {
      return fmt::format("{} would {} use {}, with other NICs idle{}", joined(names),
                         names.size() == 2 ? "both" : "all", nic_names(nics), where_.elsewhere());
    });
  }
}

void BlockReview::review_hosts() {
  for (std::uint32_t host = 0; host < block_.hosts; ++host) {
    const HostCount& count = hosts_[host];
    if (count.cards.empty() && count.gpus > 0 && where_.several_hosts) {
      findings_.add("host-without-nic", [&] {
        return fmt::format("{} has {} GPUs and no NIC{}", where_.host_name(host), count.gpus,
                           where_.elsewhere());
      });
    }
    if (count.cards.empty() || count.gpus <= count.cards.size()) continue;
    findings_.add("more-gpus-than-nics", [&] {
      return fmt::format("{} has {} GPUs and {} NICs{}", where_.host_name(host), count.gpus,
                         count.cards.size(), where_.elsewhere());
    });
  }
}

}  // namespace

void find_in_block(const BlockFindings& where, FindingList& findings) {
  BlockReview(where, findings).review();
}

}  // namespace isthmus
