#include "tests/support/made_sysfs.hpp"

#include <array>
#include <fstream>
#include <random>

#include <fmt/format.h>

namespace isthmus::test {
namespace {

namespace fs = std::filesystem;

void write_line(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file) << text << "\n";
}

void link_to(const fs::path& target, const fs::path& link) {
  fs::create_directories(link.parent_path());
  fs::create_directory_symlink(fs::relative(target, link.parent_path()), link);
}

class SysfsWriter {
 public:
  explicit SysfsWriter(fs::path root) : root_(std::move(root)) {}

  void write(MadeMachine& machine) {
    std::string info;
    for (std::size_t n = 0; n < machine.nodes.size(); ++n) {
      write_node(n);
      info += fmt::format(
          "processor\t: {}\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\n"
          "model name\t: Made CPU\n\n",
          n);
      node_ = n;
      bus_ = 1;
      slot_ = 1;
      const fs::path complex = root_ / fmt::format("sys/devices/pci{:04x}:00", n);
      fs::create_directories(complex);
      for (MadeDevice& device : machine.nodes[n]) write_root(device, complex);
    }
    fs::create_directories(root_ / "proc");
    std::ofstream(root_ / "proc/cpuinfo") << info;
    write_line(root_ / "proc/sys/kernel/hostname", "made");
  }

 private:
  void write_node(std::size_t n) const {
    const fs::path folder = root_ / fmt::format("sys/devices/system/node/node{}", n);
    write_line(folder / "cpulist", std::to_string(n));
    write_line(folder / "cpumap", fmt::format("{:08x}", 1U << n));
  }

  std::string address(int bus, int slot) const {
    return fmt::format("{:04x}:{:02x}:{:02x}.0", node_, bus, slot);
  }

  fs::path write_function(const fs::path& above, const std::string& busid, const char* kind,
                          const char* vendor, int generation, int width) const {
    constexpr std::array<const char*, 7> speeds{"", "2.5", "5.0", "8.0", "16.0", "32.0", "64.0"};
    fs::path path = above / busid;
    write_line(path / "class", kind);
    write_line(path / "vendor", vendor);
    write_line(path / "device", "0x1234");
    write_line(path / "max_link_speed",
               fmt::format("{} GT/s PCIe", speeds.at(static_cast<std::size_t>(generation))));
    write_line(path / "max_link_width", std::to_string(width));
    write_line(path / "numa_node", std::to_string(node_));
    link_to(path, root_ / "sys/bus/pci/devices" / busid);
    return path;
  }

  void write_root(MadeDevice& device, const fs::path& complex) {
    if (!device.root_port) return write_device(device, complex, address(0, slot_++));
    const fs::path port = write_function(complex, address(0, slot_++), "0x060400", "0x8086",
                                         device.port_generation, device.port_width);
    write_device(device, port, address(bus_++, 0));
  }

  void write_device(MadeDevice& device, const fs::path& above, const std::string& busid) {
    device.busid = busid;
    constexpr std::array<const char*, 4> classes{"0x030200", "0x020000", "0x020700", "0x060400"};
    constexpr std::array<const char*, 4> vendors{"0x10de", "0x8086", "0x15b3", "0x1000"};
    const auto kind = static_cast<std::size_t>(device.kind);
    const fs::path path =
        write_function(above, busid, classes.at(kind), vendors.at(kind), device.generation, device.width);
    if (device.kind == MadeKind::socket_nic) write_socket(device, path);
    if (device.kind == MadeKind::rdma_nic) write_rdma(device, path);
    if (device.kind != MadeKind::pci_switch) return;
    const int ports = bus_++;
    int slot = 0;
    for (MadeDevice& child : device.below) {
      const fs::path port = write_function(path, address(ports, slot++), "0x060400", "0x1000",
                                           child.port_generation, child.port_width);
      write_device(child, port, address(bus_++, 0));
    }
  }

  void write_socket(MadeDevice& device, const fs::path& path) {
    device.name = fmt::format("eth{}", sockets_++);
    const fs::path net = path / "net" / device.name;
    write_line(net / "operstate", "up");
    write_line(net / "speed", "25000");
    link_to(path, net / "device");
    link_to(net, root_ / "sys/class/net" / device.name);
  }

  void write_rdma(MadeDevice& device, const fs::path& path) {
    device.name = fmt::format("mlx5_{}", rdma_);
    const fs::path folder = path / "infiniband" / device.name;
    write_line(folder / "sys_image_guid", fmt::format("0c42:a103:0000:{:04x}", ++rdma_));
    write_line(folder / "ports/1/state", "4: ACTIVE");
    write_line(folder / "ports/1/rate", "400 Gb/sec (4X NDR)");
    link_to(path, folder / "device");
    link_to(folder, root_ / "sys/class/infiniband" / device.name);
  }

  fs::path root_;
  std::size_t node_ = 0;
  int bus_ = 1, slot_ = 1, sockets_ = 0, rdma_ = 0;
};

class MachineMaker {
 public:
  explicit MachineMaker(std::uint64_t seed) : random_(seed) {}

  MadeMachine make() {
    MadeMachine machine;
    machine.nodes.resize(1 + pick(3));
    for (std::vector<MadeDevice>& node : machine.nodes)
      for (std::size_t left = pick(4); left > 0; --left) node.push_back(device(2));
    return machine;
  }

 private:
  std::size_t pick(std::size_t below) { return static_cast<std::size_t>(random_() % below); }
  int width() { return 1 << pick(5); }
  int generation() { return 1 + static_cast<int>(pick(6)); }

  MadeDevice device(std::size_t most_levels) {
    MadeDevice made;
    made.kind = static_cast<MadeKind>(pick(most_levels == 0 ? 3 : 4));
    made.generation = generation();
    made.width = width();
    made.port_generation = generation();
    made.port_width = width();
    made.root_port = made.kind == MadeKind::pci_switch || pick(4) > 0;
    if (made.kind != MadeKind::pci_switch) return made;
    for (std::size_t left = 1 + pick(3); left > 0; --left) made.below.push_back(device(most_levels - 1));
    return made;
  }

  std::mt19937_64 random_;
};

void add_places(const std::vector<MadeDevice>& devices, const std::string& above, std::size_t node,
                std::vector<MadePlace>& places) {
  for (const MadeDevice& device : devices) {
    places.push_back({&device, above, node});
    add_places(device.below, device.busid, node, places);
  }
}

}  // namespace

void write_sysfs(MadeMachine& machine, const std::filesystem::path& root) {
  SysfsWriter(root).write(machine);
}

MadeMachine made_machine(std::uint64_t seed) { return MachineMaker(seed).make(); }

std::vector<MadePlace> places_of(const MadeMachine& machine) {
  std::vector<MadePlace> places;
  for (std::size_t n = 0; n < machine.nodes.size(); ++n) add_places(machine.nodes[n], "", n, places);
  return places;
}

}  // namespace isthmus::test
