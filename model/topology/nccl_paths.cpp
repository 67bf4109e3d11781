#include "model/topology/nccl_paths.hpp"

#include <algorithm>
#include <numeric>

#include "model/topology/nccl_nics.hpp"

namespace isthmus {

namespace {

bool better(const NcclPath& a, const NcclPath& b) {
  if (a.kind != b.kind) return a.kind < b.kind;
  if (a.bandwidth != b.bandwidth) return a.bandwidth > b.bandwidth;
  return a.hops < b.hops;
}

PathKind kind_of_step(const NcclVertex& from, const NcclVertex& to, NcclLinkKind link) {
  switch (link) {
    case NcclLinkKind::nvlink: return PathKind::nvl;
    case NcclLinkKind::c2c: return PathKind::c2c;
    case NcclLinkKind::socket: return PathKind::sys;
    case NcclLinkKind::network: return PathKind::loc;
    case NcclLinkKind::pcie: break;
  }
  if (from.kind == NcclVertexKind::cpu || to.kind == NcclVertexKind::cpu) return PathKind::phb;
  const bool switches = from.kind == NcclVertexKind::pcie && to.kind == NcclVertexKind::pcie;
  return switches ? PathKind::pxb : PathKind::pix;
}

/// Two paths one after the other.
NcclPath joined(const NcclPath& first, const NcclPath& second, PathKind least) {
  if (first.kind == PathKind::dis || second.kind == PathKind::dis) return {};
  return {std::max({first.kind, second.kind, least}), std::min(first.bandwidth, second.bandwidth),
          first.hops + second.hops};
}

class Rules {
 public:
  Rules(NcclPaths& paths, const NcclSettings& settings) : paths_(paths), settings_(settings) {}

  void apply() {
    search();
    for (std::uint32_t gpu = 0; gpu < gpus(); ++gpu) set_p2c(gpu);
    set_pxn();
    for (std::uint32_t gpu = 0; gpu < gpus(); ++gpu) {
      for (std::uint32_t net = 0; net < nets(); ++net) set_gpudirect(gpu, net);
    }
    paths_.gpu_to_gpu_direct.assign(paths_.gpu_to_gpu.size(), false);
    for (std::uint32_t source = 0; source < gpus(); ++source) {
      for (std::uint32_t target = 0; target < gpus(); ++target) set_p2p(source, target);
    }
  }

 private:
  std::uint32_t gpus() const { return static_cast<std::uint32_t>(paths_.system.gpus.size()); }
  std::uint32_t nets() const { return static_cast<std::uint32_t>(paths_.system.nets.size()); }
  NcclNetPath& to_net(std::uint32_t gpu, std::uint32_t net) { return paths_.gpu_to_net[gpu * nets() + net]; }
  const NcclPath& from_cpu(std::uint32_t gpu, std::uint32_t vertex) const {
    return from_cpu_[cpu_of_gpu_[gpu]][vertex];
  }
  bool has_cpu(std::uint32_t gpu) const { return cpu_of_gpu_[gpu] < from_cpu_.size(); }
  bool on_one_host(std::uint32_t a, std::uint32_t b) const {
    return paths_.system.gpus[a].host == paths_.system.gpus[b].host;
  }

  void search();
  void set_p2c(std::uint32_t gpu);
  void set_pxn();
  bool relays(std::uint32_t owner, std::uint32_t gpu, std::uint32_t net) const;
  bool close_enough(std::uint32_t gpu, std::uint32_t net, PathKind kind) const;
  bool reads_gpu_memory(std::uint32_t gpu) const;
  void set_gpudirect(std::uint32_t gpu, std::uint32_t net);
  PathKind p2p_level(std::uint32_t gpu) const;
  void set_p2p(std::uint32_t source, std::uint32_t target);

  NcclPaths& paths_;
  const NcclSettings& settings_;
  std::vector<std::vector<NcclPath>> from_cpu_{};  // per CPU, to every vertex
  std::vector<std::size_t> cpu_of_gpu_{};
};

void Rules::search() {
  const NcclSystem& system = paths_.system;
  for (const NcclCpu& cpu : system.cpus) from_cpu_.push_back(search_paths(system, cpu.vertex, settings_));
  for (const NcclGpu& gpu : system.gpus) {
    const std::vector<NcclPath> found = search_paths(system, gpu.vertex, settings_);
    for (const NcclGpu& other : system.gpus) paths_.gpu_to_gpu.push_back(found[other.vertex]);
    for (const NcclNet& net : system.nets) {
      paths_.gpu_to_net.push_back({found[net.vertex], found[net.vertex], std::nullopt, false, false});
    }
    std::size_t nearest = system.cpus.size();
    for (std::size_t cpu = 0; cpu < system.cpus.size(); ++cpu) {
      const NcclPath& path = found[system.cpus[cpu].vertex];
      if (path.kind == PathKind::dis) continue;
      if (nearest == system.cpus.size() || path.hops < found[system.cpus[nearest].vertex].hops) nearest = cpu;
    }
    cpu_of_gpu_.push_back(nearest);
    paths_.gpu_to_cpu.push_back(nearest < system.cpus.size() ? found[system.cpus[nearest].vertex]
                                                             : NcclPath{});
  }
}

void Rules::set_p2c(std::uint32_t gpu) {
  if (!has_cpu(gpu) || paths_.gpu_to_cpu[gpu].kind != PathKind::c2c) return;
  for (const std::uint32_t net : own_nets(paths_, gpu)) {
    NcclNetPath& path = to_net(gpu, net);
    const NcclPath& below = from_cpu(gpu, paths_.system.nets[net].vertex);
    if (below.kind != PathKind::phb || path.send.kind <= PathKind::p2c) continue;
    path.send = joined(paths_.gpu_to_cpu[gpu], below, PathKind::loc);
    path.send.kind = PathKind::p2c;
    path.receive = path.send;
  }
}

bool Rules::reads_gpu_memory(std::uint32_t gpu) const {
  if (paths_.system.gpus[gpu].sm >= 80) return true;
  for (std::uint32_t other = 0; other < gpus(); ++other) {
    if (other != gpu && paths_.between(gpu, other).kind == PathKind::nvl) return true;
  }
  return false;
}

bool Rules::close_enough(std::uint32_t gpu, std::uint32_t net, PathKind kind) const {
  if (!paths_.system.gpus[gpu].gpudirect || !paths_.system.nets[net].gpudirect) return false;
  return kind <= settings_.gpudirect_level.value_or(settings_.gpudirect_c2c ? PathKind::p2c : PathKind::pxb);
}

bool Rules::relays(std::uint32_t owner, std::uint32_t gpu, std::uint32_t net) const {
  const NcclPath &near = paths_.to_net(owner, net).send, &own = paths_.to_net(gpu, net).send;
  if (near.kind > (settings_.pxn_c2c ? PathKind::p2c : PathKind::pxb)) return false;
  if (!close_enough(owner, net, near.kind) || !reads_gpu_memory(owner)) return false;
  if (paths_.between(owner, gpu).kind > PathKind::nvl || !on_one_host(owner, gpu)) return false;
  return near.bandwidth > own.bandwidth || own.kind > PathKind::pxn;
}

/// Owners are those of the paths without PXN, so that no relay leads to another.
void Rules::set_pxn() {
  if (!settings_.pxn) return;
  std::vector<std::optional<std::uint32_t>> owners;
  for (std::uint32_t net = 0; net < nets(); ++net) {
    owners.push_back(owner_of_net(paths_, net, settings_.nic_policy));
  }
  for (std::uint32_t net = 0; net < nets(); ++net) {
    if (!owners[net]) continue;
    const std::uint32_t owner = *owners[net];
    for (std::uint32_t gpu = 0; gpu < gpus(); ++gpu) {
      if (gpu == owner || !relays(owner, gpu, net)) continue;
      NcclNetPath& path = to_net(gpu, net);
      path.send = joined(paths_.between(gpu, owner), to_net(owner, net).send, PathKind::pxn);
      path.relay = owner;
    }
  }
}

void Rules::set_gpudirect(std::uint32_t gpu, std::uint32_t net) {
  NcclNetPath& path = to_net(gpu, net);
  const std::uint32_t sender = path.relay.value_or(gpu);
  const PathKind sending = path.relay ? to_net(sender, net).receive.kind : path.send.kind;
  path.gpudirect_send = close_enough(sender, net, sending) && reads_gpu_memory(sender);
  path.gpudirect_receive = close_enough(gpu, net, path.receive.kind);
  if (!has_cpu(gpu)) return;
  const NcclPath through =
      joined(paths_.gpu_to_cpu[gpu], from_cpu(gpu, paths_.system.nets[net].vertex), PathKind::phb);
  const bool divert_send = !path.gpudirect_send && path.send.kind < PathKind::phb;
  const bool divert_receive = !path.gpudirect_receive && path.receive.kind < PathKind::phb;
  if (divert_send) {
    path.send = through;
    path.relay.reset();
  }
  if (divert_receive) path.receive = through;
}

PathKind Rules::p2p_level(std::uint32_t gpu) const {
  if (settings_.p2p_level) return *settings_.p2p_level;
  const std::uint32_t host = paths_.system.gpus[gpu].host;
  const auto here = [&](const NcclGpu& other) { return other.host == host; };
  const bool few = std::count_if(paths_.system.gpus.begin(), paths_.system.gpus.end(), here) <= 2;
  const bool amd = has_cpu(gpu) && paths_.system.cpus[cpu_of_gpu_[gpu]].amd;
  return few && amd ? PathKind::sys : PathKind::pxb;
}

void Rules::set_p2p(std::uint32_t source, std::uint32_t target) {
  const std::size_t at = std::size_t{source} * gpus() + target;
  NcclPath& path = paths_.gpu_to_gpu[at];
  const PathKind worst = on_one_host(source, target) ? p2p_level(source) : PathKind::nvl;
  paths_.gpu_to_gpu_direct[at] = source == target || path.kind <= worst;
  if (paths_.gpu_to_gpu_direct[at]) return;
  if (!on_one_host(source, target)) {
    path = {PathKind::net, Bandwidth{}, 0};
  } else if (has_cpu(source)) {
    const NcclPath& onwards = from_cpu(source, paths_.system.gpus[target].vertex);
    path = joined(paths_.gpu_to_cpu[source], onwards, PathKind::phb);
  }
}

}  // namespace

std::vector<NcclPath> search_paths(const NcclSystem& system, std::uint32_t base,
                                   const NcclSettings& settings) {
  std::vector<NcclPath> paths(system.vertices.size());
  paths[base] = {PathKind::loc, gigabytes_per_second(5000), 0};
  std::vector<std::uint32_t> current{base};
  while (!current.empty()) {
    std::vector<std::uint32_t> next;
    for (const std::uint32_t at : current) {
      const NcclVertex& from = system.vertices[at];
      const bool through_gpu = at != base && from.kind == NcclVertexKind::gpu;
      for (const NcclLink& link : from.links) {
        const NcclVertex& to = system.vertices[link.to];
        const bool bridge = settings.nvb && link.kind == NcclLinkKind::nvlink && paths[at].hops == 1 &&
                            to.kind == NcclVertexKind::gpu && paths[at].kind == PathKind::nvl;
        if (through_gpu && !bridge) continue;
        const PathKind step = through_gpu ? PathKind::nvb : kind_of_step(from, to, link.kind);
        const NcclPath found{std::max(paths[at].kind, step), std::min(paths[at].bandwidth, link.bandwidth),
                             paths[at].hops + 1};
        if (link.to == base || !better(found, paths[link.to])) continue;
        paths[link.to] = found;
        if (std::find(next.begin(), next.end(), link.to) == next.end()) next.push_back(link.to);
      }
    }
    current = std::move(next);
  }
  return paths;
}

NcclPaths nccl_paths(const Block& block, const NcclSettings& settings,
                     std::span<const std::uint32_t> members) {
  NcclPaths paths{nccl_system(block, members), {}, {}, {}, {}};
  Rules(paths, settings).apply();
  return paths;
}

NcclPaths nccl_paths(const Block& block, const NcclSettings& settings) {
  std::vector<std::uint32_t> members(block.gpus.size());
  std::iota(members.begin(), members.end(), 0u);
  return nccl_paths(block, settings, members);
}

bool network_beats_gpu_path(const NcclPaths& paths, std::uint32_t source, std::uint32_t target) {
  const Bandwidth own = paths.between(source, target).bandwidth;
  const auto has_faster = [&](std::uint32_t gpu) {
    for (std::uint32_t net = 0; net < paths.system.nets.size(); ++net) {
      const NcclPath& path = paths.to_net(gpu, net).send;
      if (path.kind <= PathKind::pxb && path.bandwidth > own) return true;
    }
    return false;
  };
  return has_faster(source) && has_faster(target);
}

bool all_joined_by_nvlink(const NcclPaths& paths) {
  return std::all_of(paths.gpu_to_gpu.begin(), paths.gpu_to_gpu.end(),
                     [](const NcclPath& path) { return path.kind < PathKind::pix; });
}

}  // namespace isthmus
