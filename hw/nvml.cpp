#include "hw/nvml.hpp"

#include <dlfcn.h>

#include <array>
#include <memory>

#include <fmt/format.h>

#include "model/text.hpp"

namespace isthmus::hw {
namespace {

// Types and values of nvml.h, as far as they are used. What its functions point at is untyped here: a record
// of ours would be another type than the library's own.
using NvmlDevice = void*;
using NvmlStatus = int;  // 0: success
constexpr unsigned most_nvlinks = 36;
constexpr int peer_capability = 0;  // NVML_NVLINK_CAP_P2P_SUPPORTED
constexpr int switch_device = 2;    // NVML_NVLINK_DEVICE_TYPE_SWITCH

struct NvmlPciInfo {
  std::array<char, 16> legacy_busid;
  unsigned domain, bus, device, device_id, subsystem_id;
  std::array<char, 32> busid;
};

struct LibraryClose {
  void operator()(void* library) const { static_cast<void>(::dlclose(library)); }
};

/// A function of the library, which need not be there.
template <class... Arguments>
class NvmlFunction {
 public:
  NvmlFunction(void* library, const char* name)
      : function_(reinterpret_cast<NvmlStatus (*)(Arguments...)>(::dlsym(library, name))) {}
  explicit operator bool() const { return function_ != nullptr; }
  /// Whether it is there and succeeds.
  bool operator()(Arguments... arguments) const {
    return function_ != nullptr && function_(arguments...) == 0;
  }
  NvmlStatus status(Arguments... arguments) const { return function_(arguments...); }

 private:
  NvmlStatus (*function_)(Arguments...);
};

struct NvmlLibrary {
  void* library;
  NvmlFunction<> init{library, "nvmlInit_v2"}, shutdown{library, "nvmlShutdown"};
  NvmlFunction<unsigned*> count{library, "nvmlDeviceGetCount_v2"};
  NvmlFunction<unsigned, NvmlDevice*> handle{library, "nvmlDeviceGetHandleByIndex_v2"};
  NvmlFunction<NvmlDevice, void*> place{library, "nvmlDeviceGetPciInfo_v3"};
  NvmlFunction<NvmlDevice, char*, unsigned> name{library, "nvmlDeviceGetName"};
  NvmlFunction<NvmlDevice, int*, int*> capability{library, "nvmlDeviceGetCudaComputeCapability"};
  NvmlFunction<NvmlDevice, unsigned*> generation{library, "nvmlDeviceGetMaxPcieLinkGeneration"};
  NvmlFunction<NvmlDevice, unsigned*> width{library, "nvmlDeviceGetMaxPcieLinkWidth"};
  NvmlFunction<NvmlDevice, unsigned, int*> link_state{library, "nvmlDeviceGetNvLinkState"};
  NvmlFunction<NvmlDevice, unsigned, int, unsigned*> link_capability{library,
                                                                     "nvmlDeviceGetNvLinkCapability"};
  NvmlFunction<NvmlDevice, unsigned, void*> link_end{library, "nvmlDeviceGetNvLinkRemotePciInfo_v2"};
  NvmlFunction<NvmlDevice, unsigned, int*> link_device{library, "nvmlDeviceGetNvLinkRemoteDeviceType"};
};

std::string busid_of(const NvmlPciInfo& place) {
  if (place.domain >= 0xFFFFFFF) return hidden_chip;
  return fmt::format("{:04x}:{:02x}:{:02x}.0", place.domain, place.bus & 0xFFU, place.device & 0xFFU);
}

void add_nvlink(std::vector<NvmlLink>& links, const std::string& target, bool to_chip) {
  for (NvmlLink& link : links) {
    if (link.target != target) continue;
    ++link.count;
    return;
  }
  links.push_back({target, to_chip, 1});
}

std::vector<NvmlLink> nvlinks_of(const NvmlLibrary& nvml, NvmlDevice device) {
  std::vector<NvmlLink> links;
  for (unsigned link = 0; link < most_nvlinks; ++link) {
    int active = 0, kind = -1;
    unsigned peers = 0;
    NvmlPciInfo end{};
    if (!nvml.link_state(device, link, &active) || active != 1) continue;
    if (!nvml.link_capability(device, link, peer_capability, &peers) || peers == 0) continue;
    const bool chip = nvml.link_device(device, link, &kind) && kind == switch_device;
    const bool placed = nvml.link_end(device, link, &end);
    if (!placed && !chip) continue;
    const std::string target = placed ? busid_of(end) : hidden_chip;
    add_nvlink(links, target, chip || target == hidden_chip);
  }
  return links;
}

NvmlGpu gpu_of(const NvmlLibrary& nvml, NvmlDevice device, const NvmlPciInfo& place) {
  NvmlGpu gpu;
  gpu.busid = busid_of(place);
  std::array<char, 96> name{};
  if (nvml.name(device, name.data(), static_cast<unsigned>(name.size() - 1)))
    gpu.name = printable(name.data());
  int major = 0, minor = 0;
  if (nvml.capability(device, &major, &minor) && major > 0 && minor >= 0)
    gpu.sm = static_cast<std::uint32_t>(major * 10 + minor);
  unsigned generation = 0, width = 0;
  if (nvml.generation(device, &generation)) gpu.pcie_generation = generation;
  if (nvml.width(device, &width)) gpu.pcie_width = width;
  gpu.nvlinks = nvlinks_of(nvml, device);
  return gpu;
}

/// Between initialisation and shutdown.
NvmlAnswer list_gpus(const NvmlLibrary& nvml, const std::string& library) {
  NvmlAnswer answer;
  unsigned count = 0;
  if (!nvml.count(&count)) {
    answer.refusal = library + ": nvmlDeviceGetCount_v2 failed";
    return answer;
  }
  for (unsigned index = 0; index < count; ++index) {
    NvmlDevice device = nullptr;
    NvmlPciInfo place{};
    if (nvml.handle(index, &device) && nvml.place(device, &place)) {
      answer.gpus.push_back(gpu_of(nvml, device, place));
    } else {
      return {fmt::format("{}: GPU {} of {} does not tell its address", library, index, count), {}};
    }
  }
  return answer;
}

}  // namespace

NvmlAnswer ask_nvml(const std::string& library) {
  const std::unique_ptr<void, LibraryClose> loaded(::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL));
  if (!loaded) {
    const char* const why = ::dlerror();
    return {printable(why == nullptr ? library + ": cannot be loaded" : std::string(why), 160), {}};
  }
  const NvmlLibrary nvml{loaded.get()};
  if (!nvml.init || !nvml.shutdown) return {library + ": not a library of NVML's interface", {}};
  if (const NvmlStatus status = nvml.init.status(); status != 0)
    return {fmt::format("{}: nvmlInit_v2 failed with code {}", library, status), {}};
  NvmlAnswer answer = list_gpus(nvml, library);
  static_cast<void>(nvml.shutdown());
  return answer;
}

}  // namespace isthmus::hw
