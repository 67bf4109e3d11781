#include "model/topology/nccl_xml_text.hpp"

#include <array>

#include <fmt/format.h>

#include "model/text.hpp"
#include "model/topology/nccl_xml_document.hpp"
#include "model/topology/nccl_xml_written.hpp"

namespace isthmus {
namespace {

constexpr std::size_t max_elements = 256;  // of one host, as NCCL reads them

constexpr std::array<std::string_view, 24> usual_order{
    // of cpu and pci
    "host_hash", "numaid", "affinity", "arch", "busid", "class", "vendor", "device", "subsystem_vendor",
    "subsystem_device", "link_speed", "link_width", "familyid", "modelid",
    // of gpu and net
    "name", "dev", "sm", "rank", "speed", "port", "latency", "guid", "maxconn", "gdr"};

std::string quoted(const std::string& value) {
  const bool single = value.find('"') != std::string::npos;
  if ((single && value.find('\'') != std::string::npos) || value.size() > max_xml_text ||
      first_unprintable(value) != value.size())
    refuse_export(fmt::format("the text '{}'", printable(value)), "at most 255 printable characters");
  return single ? fmt::format("'{}'", value) : fmt::format("\"{}\"", value);
}

}  // namespace

void NcclXmlText::begin(std::string_view element, const Attributes& attributes, std::string_view end) {
  if (++elements_ > max_elements)
    refuse_export(fmt::format("more than {} elements", max_elements), "as many as NCCL reads");
  if (attributes.size() > max_xml_attributes)
    refuse_export(fmt::format("{} attributes of a {}", attributes.size(), element), "at most 16");
  text_ += fmt::format("{:{}}<{}", "", 2 * depth_, element);
  for (const auto& [key, value] : attributes) text_ += fmt::format(" {}={}", key, quoted(value));
  text_ += end;
}

void NcclXmlText::open(std::string_view element, const Attributes& attributes) {
  begin(element, attributes, ">\n");
  ++depth_;
}

void NcclXmlText::close(std::string_view element) {
  --depth_;
  text_ += fmt::format("{:{}}</{}>\n", "", 2 * depth_, element);
}

void NcclXmlText::leaf(std::string_view element, const Attributes& attributes) {
  begin(element, attributes, "/>\n");
}

NcclXmlText::Attributes NcclXmlText::in_usual_order(std::map<std::string, std::string> values) {
  Attributes ordered;
  for (const std::string_view key : usual_order)
    if (auto value = values.extract(std::string(key))) ordered.emplace_back(value.key(), value.mapped());
  ordered.insert(ordered.end(), values.begin(), values.end());
  return ordered;
}

}  // namespace isthmus
