#pragma once
// Small system XML files, for tests of the reader and the writer. A file is put together from its elements,
// so that each test shows only the trait that it is about.
// Invariant: all values are well-formed; addresses, names and guids are invented.

#include <string>

namespace isthmus {

inline std::string xml_gpu(int dev, const std::string& busid, const std::string& links, int sm = 90) {
  return "<pci busid=\"" + busid +
         "\" class=\"0x030200\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"><gpu dev=\"" +
         std::to_string(dev) + "\" sm=\"" + std::to_string(sm) + "\" rank=\"" + std::to_string(dev) +
         "\" gdr=\"1\">" + links + "</gpu></pci>\n";
}

inline std::string xml_nic(int dev, const std::string& busid, const std::string& guid,
                           const std::string& speed = "400000") {
  return "<pci busid=\"" + busid +
         "\" class=\"0x020700\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"><nic><net name=\"mlx5_" +
         std::to_string(dev) + "\" dev=\"" + std::to_string(dev) + "\" speed=\"" + speed +
         "\" port=\"1\" guid=\"" + guid + "\" gdr=\"1\"/></nic></pci>\n";
}

inline std::string xml_bridge(const std::string& busid, const std::string& speed, const std::string& width,
                              const std::string& children) {
  return "<pci busid=\"" + busid + "\" class=\"0x060400\" link_speed=\"" + speed + "\" link_width=\"" +
         width + "\">\n" + children + "</pci>\n";
}

inline std::string xml_link(const std::string& target, const std::string& count,
                            const std::string& target_class = "0x068000") {
  return "<nvlink target=\"" + target + "\" count=\"" + count + "\" tclass=\"" + target_class + "\"/>";
}

inline std::string xml_cpu(int numa, const std::string& children) {
  return "<cpu numaid=\"" + std::to_string(numa) +
         "\" arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"143\">\n" + children +
         "</cpu>\n";
}

inline std::string xml_system(const std::string& cpus) {
  return "<system version=\"1\">\n" + cpus + "</system>\n";
}

/// Two GPUs, two NICs, two visible chips; each pair under a switch of its own CPU.
inline std::string xml_small_host() {
  const std::string links = xml_link("0000:1b:00.0", "5") + xml_link("0000:1a:00.0", "4");
  return xml_system(
      xml_cpu(0, xml_bridge("0000:08:00.0", "32.0 GT/s PCIe", "16",
                            xml_gpu(0, "0000:0f:00.0", links) + xml_nic(0, "0000:0c:00.0", "0x1"))) +
      xml_cpu(1, xml_bridge("0000:88:00.0", "32.0 GT/s PCIe", "16",
                            xml_gpu(1, "0000:8f:00.0", links) + xml_nic(1, "0000:8c:00.0", "0x2"))));
}

}  // namespace isthmus
