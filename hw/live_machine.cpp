#include "hw/live_machine.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <limits>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "hw/sysfs.hpp"

namespace isthmus::hw {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view pci_folder = "sys/bus/pci/devices";
constexpr std::string_view node_folder = "sys/devices/system/node";
constexpr std::string_view rdma_folder = "sys/class/infiniband";
constexpr std::string_view net_folder = "sys/class/net";

std::string whole_text(const fs::path& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// The lesser of what both ends of a link can do; empty where neither says so.
std::string lesser_speed(const std::string& device, const std::string& port) {
  const auto rate = [](const std::string& text) {
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    const bool stated = end != text.c_str() && std::string_view(end).starts_with(" GT/s");
    return stated ? value : std::numeric_limits<double>::infinity();
  };
  const std::string& lesser = rate(port) < rate(device) ? port : device;
  return std::min(rate(port), rate(device)) == std::numeric_limits<double>::infinity() ? "" : lesser;
}

std::string lesser_width(const fs::path& device, const fs::path& port) {
  std::int64_t width = 256;
  for (const fs::path& end : {device, port}) {
    const std::int64_t stated = sysfs_number(end / "max_link_width").value_or(0);
    if (stated > 0) width = std::min(width, stated);
  }
  return width > 255 ? "" : std::to_string(width);
}

/// Of a NIC; 0, not known, for what no topology may hold (10 TB/s and more).
std::int64_t plausible_megabits(double stated) {
  return stated > 0 && stated < 8e7 ? static_cast<std::int64_t>(stated) : 0;
}

/// Reads the parts of one machine, each after those it needs.
class MachineReader {
 public:
  explicit MachineReader(const fs::path& root) : sysfs_(root) {}

  LiveMachine read(const NvmlAnswer& nvml) {
    machine_.name = sysfs_text(sysfs_.at("proc/sys/kernel/hostname"));
    if (machine_.name.empty()) machine_.name = "machine";
    machine_.nvml = nvml.refusal;
    read_cpu();
    read_nodes();
    read_gpus(nvml);
    read_rdma();
    read_sockets();
    name_down();
    return std::move(machine_);
  }

 private:
  void find(const char* code, std::string text) { machine_.findings.push_back({code, std::move(text)}); }

  /// NCCL takes CPUID's bits as they stand: families beyond 15 are 15 + 16 x the rest.
  void read_cpu() {
    const std::string info = whole_text(sysfs_.at("proc/cpuinfo"));
    const std::string vendor = first_value(info, "vendor_id");
    machine_.processor = first_value(info, "model name");
    for (std::size_t at = 0; (at = info.find("processor", at)) != std::string::npos; ++at)
      if (at == 0 || info[at - 1] == '\n') ++machine_.processors;
    if (!vendor.empty()) {
      const int family = std::atoi(first_value(info, "cpu family").c_str());
      const int model = std::atoi(first_value(info, "model").c_str());
      machine_.cpu = {
          {"arch", "x86_64"},
          {"vendor", vendor},
          {"familyid", std::to_string(family > 15 ? 15 + (std::min(family, 1000) - 15) * 16 : family)},
          {"modelid", std::to_string(std::clamp(model, 0, 65535))}};
    } else if (!first_value(info, "CPU implementer").empty()) {
      machine_.cpu = {{"arch", "arm64"}};
    } else if (first_value(info, "cpu").starts_with("POWER")) {
      machine_.cpu = {{"arch", "ppc64"}};
    }
  }

  void read_nodes() {
    for (const std::string& name : sysfs_.list(node_folder)) {
      if (!name.starts_with("node") || name.size() < 5 || name.size() > 8) continue;
      const std::string digits = name.substr(4);
      if (digits.find_first_not_of("0123456789") != std::string::npos) continue;
      const fs::path folder = sysfs_.at(node_folder) / name;
      const std::string processors = sysfs_text(folder / "cpulist");
      if (processors.empty()) continue;  // memory alone
      machine_.nodes.push_back({std::stoll(digits), processors, sysfs_text(folder / "cpumap")});
    }
    if (machine_.nodes.empty())
      machine_.nodes.push_back({-1, sysfs_text(sysfs_.at("sys/devices/system/cpu/online")), ""});
  }

  /// The node that a device is near to; where there is one node only, that.
  std::int64_t node_of(std::int64_t stated) const {
    return machine_.nodes.size() == 1 ? machine_.nodes.front().number : std::max<std::int64_t>(stated, -1);
  }

  /// Adds a PCI function and the switches above it.
  void add_pci(fs::path path) {
    while (true) {
      const std::string busid = path.filename().string();
      const auto [place, is_new] = machine_.pci.try_emplace(busid);
      if (!is_new) return;
      PciFunction& function = place->second;
      const fs::path port = path.parent_path();
      for (const char* name : {"class", "vendor", "device", "subsystem_vendor", "subsystem_device"}) {
        const std::string value = sysfs_hexadecimal(path / name);
        if (!value.empty()) function.attributes[name] = value;
      }
      const std::string speed =
          lesser_speed(sysfs_text(path / "max_link_speed"), sysfs_text(port / "max_link_speed"));
      if (!speed.empty()) function.attributes["link_speed"] = speed;
      const std::string width = lesser_width(path, port);
      if (!width.empty()) function.attributes["link_width"] = width;
      function.numa = node_of(numa_above(path));
      const fs::path above = port.parent_path();
      if (!is_busid(port.filename().string()) || !is_busid(above.filename().string())) return;
      function.above = above.filename().string();
      path = above;
    }
  }

  static std::int64_t numa_above(fs::path path) {
    for (; is_busid(path.filename().string()); path = path.parent_path()) {
      const std::int64_t node = sysfs_number(path / "numa_node").value_or(-1);
      if (node >= 0 && node <= 65535) return node;
    }
    return -1;
  }

  /// NVIDIA's and AMD's display controllers and accelerators.
  std::vector<std::string> gpus_on_pci() const {
    std::vector<std::string> found;
    for (const std::string& busid : sysfs_.list(pci_folder)) {
      const fs::path folder = sysfs_.at(pci_folder) / busid;
      const std::string kind = sysfs_hexadecimal(folder / "class"),
                        vendor = sysfs_hexadecimal(folder / "vendor");
      const bool display = kind.starts_with("0x03") || kind.starts_with("0x12");
      if (is_busid(busid) && display && (vendor == "0x10de" || vendor == "0x1002")) found.push_back(busid);
    }
    std::sort(found.begin(), found.end());
    return found;
  }

  void read_gpus(const NvmlAnswer& nvml) {
    std::set<std::string> listed;
    for (const NvmlGpu& gpu : nvml.gpus) {
      if (!is_busid(gpu.busid) || !listed.insert(gpu.busid).second) continue;
      machine_.gpus.push_back({gpu.busid, gpu.name, gpu.sm, gpu.nvlinks});
      if (gpu.sm == 0) machine_.gpus.back().sm.reset();
      add_gpu_place(gpu);
    }
    std::sort(machine_.gpus.begin(), machine_.gpus.end(),
              [](const LiveGpu& a, const LiveGpu& b) { return a.busid < b.busid; });
    for (const std::string& busid : gpus_on_pci()) {
      const fs::path path = pci_path(sysfs_.at(pci_folder) / busid);
      if (listed.contains(busid)) continue;
      if (nvml.refusal.empty()) {
        find("gpu-not-visible", fmt::format("{} is on PCI, but NVML does not list it", busid));
      } else if (!path.empty()) {
        machine_.gpus.push_back({busid, "", {}, {}});
        add_pci(path);
      }
    }
  }

  /// A container may show GPUs to NVML that its sysfs does not have.
  void add_gpu_place(const NvmlGpu& gpu) {
    const fs::path path = pci_path(sysfs_.at(pci_folder) / gpu.busid);
    if (!path.empty()) return add_pci(path);
    PciFunction function;
    function.numa = node_of(-1);
    function.attributes = {{"class", "0x030200"}, {"vendor", "0x10de"}};
    constexpr std::array<const char*, 7> speeds{"", "2.5", "5.0", "8.0", "16.0", "32.0", "64.0"};
    if (gpu.pcie_generation > 0 && gpu.pcie_generation < speeds.size())
      function.attributes["link_speed"] = fmt::format("{} GT/s PCIe", speeds.at(gpu.pcie_generation));
    if (gpu.pcie_width > 0 && gpu.pcie_width <= 32)
      function.attributes["link_width"] = std::to_string(gpu.pcie_width);
    machine_.pci.emplace(gpu.busid, std::move(function));
    find("gpu-not-on-pci",
         fmt::format("NVML lists {}, but sysfs does not: its place is not known", gpu.busid));
  }

  /// Adds the NIC's place; false where it is a function that the host lends to a virtual machine.
  bool place_nic(LiveNic& nic, const fs::path& device) {
    const fs::path path = pci_path(device);
    if (path.empty()) {
      nic.numa = node_of(sysfs_number(device / "numa_node").value_or(-1));
      return true;
    }
    std::error_code ignored;
    if (fs::exists(path / "physfn", ignored)) return false;
    nic.busid = path.filename().string();
    add_pci(path);
    return true;
  }

  /// As NCCL asks: a module for peer memory, or a driver that exports its memory by itself (DMA-BUF).
  bool has_gpudirect() const {
    if (sysfs_.has("sys/module/nvidia_peermem") || sysfs_.has("sys/module/nv_peer_mem")) return true;
    return whole_text(sysfs_.at("proc/driver/nvidia/version")).find("Open Kernel Module") !=
           std::string::npos;
  }

  void read_rdma() {
    const bool gpudirect = has_gpudirect();
    for (const std::string& name : sysfs_.list(rdma_folder)) {
      const fs::path folder = sysfs_.at(rdma_folder) / name;
      for (const std::string& port : sysfs_.list(fmt::format("{}/{}/ports", rdma_folder, name))) {
        const fs::path ports = folder / "ports" / port;
        const std::string label = as_label(name, port);
        if (sysfs_text(ports / "state").find("ACTIVE") == std::string::npos) {
          down_.push_back(label);
          continue;
        }
        LiveNic nic;
        nic.name = label;
        nic.megabits = plausible_megabits(std::atof(sysfs_text(ports / "rate").c_str()) * 1e3);
        nic.port = std::clamp(std::atoi(port.c_str()), 0, 255);
        nic.guid = as_guid(sysfs_text(folder / "sys_image_guid"));
        nic.rdma = true;
        nic.gpudirect = gpudirect;
        if (place_nic(nic, folder / "device"))
          machine_.nics.push_back(std::move(nic));
        else
          ++lent_;
      }
    }
  }

  static std::string as_label(const std::string& name, const std::string& port) {
    return sysfs_value(port == "1" ? name : fmt::format("{}:{}", name, port));
  }

  /// "0c42:a103:00ab:cdef"; without a colon there is none, and all zeros mean none.
  static std::string as_guid(std::string text) {
    std::erase(text, ':');
    const bool of_form =
        text.size() == 16 && text.find_first_not_of("0123456789abcdefABCDEF") == std::string::npos;
    return of_form && text.find_first_not_of('0') != std::string::npos ? "0x" + text : "";
  }

  /// Devices of the machine, not what software makes (lo, bridges), nor the ports of RDMA devices again.
  void read_sockets() {
    std::vector<std::string> unused;
    const bool rdma = !machine_.nics.empty();
    for (const std::string& name : sysfs_.list(net_folder)) {
      const fs::path folder = sysfs_.at(net_folder) / name;
      std::error_code ignored;
      if (!fs::exists(folder / "device", ignored) || fs::exists(folder / "device/infiniband", ignored))
        continue;
      const std::string state = sysfs_text(folder / "operstate");
      if (state != "up" && state != "unknown") {
        down_.push_back(name);
        continue;
      }
      if (rdma) {
        unused.push_back(name);
        continue;
      }
      LiveNic nic;
      nic.name = sysfs_value(name);
      nic.megabits = plausible_megabits(static_cast<double>(sysfs_number(folder / "speed").value_or(-1)));
      if (place_nic(nic, folder / "device"))
        machine_.nics.push_back(std::move(nic));
      else
        ++lent_;
    }
    if (!unused.empty())
      find("nic-not-used", fmt::format("{}: NCCL uses the RDMA ports instead", fmt::join(unused, ", ")));
  }

  void name_down() {
    if (!down_.empty()) find("nic-down", fmt::format("{}: not up, and left out", fmt::join(down_, ", ")));
    if (lent_ > 0)
      find("virtual-function", fmt::format("{} virtual functions of NICs of this host are left out", lent_));
  }

  Sysfs sysfs_;
  LiveMachine machine_;
  std::vector<std::string> down_;
  std::size_t lent_ = 0;
};

}  // namespace

LiveMachine read_machine(const std::filesystem::path& root, const NvmlAnswer& nvml) {
  return MachineReader(root).read(nvml);
}

}  // namespace isthmus::hw
