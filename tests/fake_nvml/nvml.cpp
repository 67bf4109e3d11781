// A library with NVML's interface, as far as hw/nvml.cpp uses it, that tells what the file says which the
// environment variable ISTHMUS_FAKE_NVML names. Lines:
//   init CODE                                            what nvmlInit_v2 returns
//   gpu DOMAIN BUS DEVICE MAJOR MINOR GENERATION WIDTH NAME   a GPU (numbers decimal)
//   link ACTIVE PEERS KIND DOMAIN BUS DEVICE   its next NVLink; KIND or BUS -1: does not tell
// Every function fails before nvmlInit_v2 and after nvmlShutdown.

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace {

struct FakeLink {
  int active = 0, peers = 0, kind = 0, domain = 0, bus = 0, device = 0;
};
struct FakeGpu {
  unsigned domain = 0, bus = 0, device = 0;
  int major = 0, minor = 0;
  unsigned generation = 0, width = 0;
  std::string name;
  std::vector<FakeLink> links;
};
struct FakeNvml {
  bool open = false;
  int init = 0;
  std::vector<FakeGpu> gpus;
};

struct PciInfo {
  char legacy_busid[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char busid[32];
};

constexpr int uninitialised = 1, invalid = 2, unsupported = 3;

FakeNvml& state() {
  static FakeNvml nvml;
  return nvml;
}

void read_state() {
  FakeNvml& nvml = state();
  nvml = {};
  const char* const file = std::getenv("ISTHMUS_FAKE_NVML");
  std::ifstream stream(file == nullptr ? "" : file);
  for (std::string line; std::getline(stream, line);) {
    std::istringstream words(line);
    std::string kind;
    words >> kind;
    if (kind == "init") words >> nvml.init;
    if (kind == "gpu") {
      FakeGpu gpu;
      words >> gpu.domain >> gpu.bus >> gpu.device >> gpu.major >> gpu.minor >> gpu.generation >> gpu.width;
      std::getline(words >> std::ws, gpu.name);
      nvml.gpus.push_back(gpu);
    }
    if (kind == "link") {
      FakeLink link;
      words >> link.active >> link.peers >> link.kind >> link.domain >> link.bus >> link.device;
      nvml.gpus.back().links.push_back(link);
    }
  }
}

FakeGpu* gpu_at(void* device) { return state().open ? static_cast<FakeGpu*>(device) : nullptr; }

FakeLink* link_at(void* device, unsigned link) {
  FakeGpu* const gpu = gpu_at(device);
  return gpu == nullptr || link >= gpu->links.size() ? nullptr : &gpu->links[link];
}

void fill(void* place, unsigned domain, unsigned bus, unsigned device) {
  auto* const info = static_cast<PciInfo*>(place);
  std::memset(info, 0, sizeof *info);
  info->domain = domain;
  info->bus = bus;
  info->device = device;
  std::snprintf(info->busid, sizeof info->busid, "%08X:%02X:%02X.0", domain, bus & 0xFFU, device & 0xFFU);
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the names are NVML's.
extern "C" {

int nvmlInit_v2() {
  read_state();
  state().open = state().init == 0;
  return state().init;
}

int nvmlShutdown() {
  if (!state().open) return uninitialised;
  state().open = false;
  return 0;
}

int nvmlDeviceGetCount_v2(unsigned* count) {
  if (!state().open) return uninitialised;
  *count = static_cast<unsigned>(state().gpus.size());
  return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  if (!state().open) return uninitialised;
  if (index >= state().gpus.size()) return invalid;
  *device = &state().gpus[index];
  return 0;
}

int nvmlDeviceGetPciInfo_v3(void* device, void* info) {
  const FakeGpu* const gpu = gpu_at(device);
  if (gpu == nullptr) return uninitialised;
  fill(info, gpu->domain, gpu->bus, gpu->device);
  return 0;
}

int nvmlDeviceGetName(void* device, char* name, unsigned length) {
  const FakeGpu* const gpu = gpu_at(device);
  if (gpu == nullptr) return uninitialised;
  std::snprintf(name, length, "%s", gpu->name.c_str());
  return 0;
}

int nvmlDeviceGetCudaComputeCapability(void* device, int* major, int* minor) {
  const FakeGpu* const gpu = gpu_at(device);
  if (gpu == nullptr) return uninitialised;
  *major = gpu->major;
  *minor = gpu->minor;
  return 0;
}

int nvmlDeviceGetMaxPcieLinkGeneration(void* device, unsigned* generation) {
  const FakeGpu* const gpu = gpu_at(device);
  if (gpu == nullptr || gpu->generation == 0) return unsupported;
  *generation = gpu->generation;
  return 0;
}

int nvmlDeviceGetMaxPcieLinkWidth(void* device, unsigned* width) {
  const FakeGpu* const gpu = gpu_at(device);
  if (gpu == nullptr || gpu->width == 0) return unsupported;
  *width = gpu->width;
  return 0;
}

int nvmlDeviceGetNvLinkState(void* device, unsigned link, int* active) {
  const FakeLink* const found = link_at(device, link);
  if (found == nullptr) return invalid;
  *active = found->active;
  return 0;
}

int nvmlDeviceGetNvLinkCapability(void* device, unsigned link, int capability, unsigned* result) {
  const FakeLink* const found = link_at(device, link);
  if (found == nullptr) return invalid;
  *result = capability == 0 ? static_cast<unsigned>(found->peers) : 1;
  return 0;
}

int nvmlDeviceGetNvLinkRemoteDeviceType(void* device, unsigned link, int* kind) {
  const FakeLink* const found = link_at(device, link);
  if (found == nullptr || found->kind < 0) return unsupported;
  *kind = found->kind;
  return 0;
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(void* device, unsigned link, void* info) {
  const FakeLink* const found = link_at(device, link);
  if (found == nullptr || found->bus < 0) return unsupported;
  fill(info, static_cast<unsigned>(found->domain), static_cast<unsigned>(found->bus),
       static_cast<unsigned>(found->device));
  return 0;
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
