#include "model/topology/nccl_xml_forms.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "model/text.hpp"
#include "model/topology/nccl_xml_items.hpp"

namespace isthmus {
namespace {

enum class Form : std::uint8_t { integer, hexadecimal, decimal, busid, affinity };

struct Rule {
  std::string_view element, name;
  Form form = Form::integer;
  std::int64_t min = 0, max = 0;
};

constexpr std::int64_t most = 0x7FFFFFFF;  // NCCL keeps them in an int

constexpr std::array rules{
    Rule{"system", "version", Form::integer, 1, 2},
    Rule{"cpu", "numaid", Form::integer, -1, 65535},
    Rule{"cpu", "host_hash", Form::hexadecimal},
    Rule{"cpu", "affinity", Form::affinity},
    Rule{"cpu", "familyid", Form::integer, -1, 65535},
    Rule{"cpu", "modelid", Form::integer, -1, 65535},
    Rule{"pci", "busid", Form::busid},
    Rule{"pci", "class", Form::hexadecimal},
    Rule{"pci", "vendor", Form::hexadecimal},
    Rule{"pci", "device", Form::hexadecimal},
    Rule{"pci", "subsystem_vendor", Form::hexadecimal},
    Rule{"pci", "subsystem_device", Form::hexadecimal},
    Rule{"pci", "link_width", Form::integer, 0, 255},
    Rule{"pcilink", "target", Form::busid},
    Rule{"gpu", "dev", Form::integer, -1, 65535},
    Rule{"gpu", "sm", Form::integer, 0, 65535},
    Rule{"gpu", "rank", Form::integer, -1, most},
    Rule{"gpu", "gdr", Form::integer, -1, 1},
    Rule{"gpu", "mlopart", Form::integer, -1, 255},
    Rule{"nvlink", "target", Form::busid},
    Rule{"nvlink", "count", Form::integer, 0, 1024},
    Rule{"nvlink", "tclass", Form::hexadecimal},
    Rule{"xgmi", "target", Form::busid},
    Rule{"xgmi", "count", Form::integer, 0, 1024},
    Rule{"xgmi", "tclass", Form::hexadecimal},
    Rule{"c2c", "bw", Form::integer, 0, 10'000'000},
    Rule{"c2c", "count", Form::integer, 0, 1024},
    Rule{"net", "dev", Form::integer, -1, 65535},
    Rule{"net", "speed", Form::integer, -most, 100'000'000},
    Rule{"net", "port", Form::integer, -1, 65535},
    Rule{"net", "guid", Form::hexadecimal},
    Rule{"net", "latency", Form::decimal, 0, 1'000'000'000},
    Rule{"net", "maxconn", Form::integer, -1, most},
    Rule{"net", "gdr", Form::integer, -1, 1},
    Rule{"net", "coll", Form::integer, -1, 1},
    Rule{"net", "net", Form::integer, -1, 1},
    Rule{"net", "gin", Form::integer, -1, 1},
    Rule{"net", "rma", Form::integer, -1, 1},
    Rule{"net", "rail", Form::integer, -1, most},
    Rule{"net", "plane", Form::integer, -1, most},
};

bool is_affinity(std::string_view words) {
  while (!words.empty()) {
    const std::size_t comma = std::min(words.find(','), words.size());
    const std::string_view word = words.substr(0, comma);
    if (word.size() > 8 || !hexadecimal_number(word) || word.find_first_of("xX") != word.npos) return false;
    if (comma + 1 == words.size()) return false;
    words.remove_prefix(std::min(comma + 1, words.size()));
  }
  return true;
}

void check(const NcclXmlDocument& document, pugi::xml_node element, const Rule& rule) {
  const std::string_view value = NcclXmlDocument::text(element, rule.name).value_or("");
  const auto refuse = [&](std::string_view allowed) {
    document.refuse(element, rule.name, fmt::format("'{}'", printable(value)), allowed);
  };
  if (rule.form == Form::integer) document.integer(element, rule.name, rule.min, rule.max);
  if (rule.form == Form::hexadecimal) document.hexadecimal(element, rule.name);
  if (rule.form == Form::decimal) document.decimal(element, rule.name, static_cast<double>(rule.max));
  if (rule.form == Form::affinity && !is_affinity(value))
    refuse("32-bit hexadecimal words with commas between them");
  if (rule.form == Form::busid && !is_hidden_switch(value) && !busid_number(value))
    refuse("a busid of at most 16 hexadecimal digits, as 0000:1b:00.0");
}

}  // namespace

void check_forms(const NcclXmlDocument& document, pugi::xml_node element) {
  const std::string_view name = element.name();
  for (const Rule& rule : rules)
    if (rule.element == name && element.attribute(std::string(rule.name).c_str()))
      check(document, element, rule);
}

}  // namespace isthmus
