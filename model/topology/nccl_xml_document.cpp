#include "model/topology/nccl_xml_document.hpp"

#include <algorithm>
#include <charconv>
#include <set>

#include <fmt/format.h>

#include "model/text.hpp"
#include "model/topology/importers.hpp"

namespace isthmus {
namespace {

// A tag is two or more of '<' or '='; eight for each element that any reader accepts bounds the parser's
// memory to some tens of MB.
constexpr std::ptrdiff_t max_tags = 1 << 19;
constexpr std::ptrdiff_t max_equals = 1 << 20;

bool is_name(std::string_view text) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  };
  return !text.empty() && text.size() <= max_xml_text && std::ranges::all_of(text, is_letter);
}

template <class Number>
std::optional<Number> whole(std::string_view digits, int base) {
  Number number = 0;
  const char* const end = digits.data() + digits.size();
  const auto [after, error] = std::from_chars(digits.data(), end, number, base);
  if (digits.empty() || error != std::errc{} || after != end) return std::nullopt;
  return number;
}

std::string quoted(std::string_view text) { return fmt::format("'{}'", printable(text)); }

}  // namespace

std::optional<std::int64_t> c_integer(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;
  std::optional<std::int64_t> number;
  if (text.starts_with("0x") || text.starts_with("0X"))
    number = text.size() > 2 && text[2] != '-' ? whole<std::int64_t>(text.substr(2), 16) : std::nullopt;
  else
    number = whole<std::int64_t>(text, text.front() == '0' ? 8 : 10);
  if (number && negative) number = -*number;
  return number;
}

std::optional<std::uint64_t> hexadecimal_number(std::string_view text) {
  if (text.starts_with("0x") || text.starts_with("0X")) text.remove_prefix(2);
  return whole<std::uint64_t>(text, 16);
}

NcclXmlDocument::NcclXmlDocument(std::string_view text, const std::string& file, const NcclXmlLimits& limits)
    : text_(text), file_(file) {
  check_size();
  // Neither escapes nor declarations: values are literal, entities are never expanded.
  constexpr unsigned options = pugi::parse_minimal | pugi::parse_wconv_attribute;
  const pugi::xml_parse_result result =
      document_.load_buffer(text.data(), text.size(), options, pugi::encoding_utf8);
  if (result.status == pugi::status_no_document_element)
    throw InputError({file_, 1, ""}, "no element", fmt::format("XML whose root is {}", limits.root));
  if (!result) {
    throw InputError({file_, line_at(result.offset), ""}, fmt::format("no XML: {}", result.description()),
                     "well-formed XML");
  }
  check_root(limits.root);
  check_elements(limits);
}

void NcclXmlDocument::check_size() const {
  if (text_.size() > max_topology_bytes) {
    throw InputError({file_, 0, ""}, fmt::format("{} bytes", text_.size()),
                     fmt::format("at most {}", max_topology_bytes));
  }
  if (text_.find('\0') != std::string_view::npos)
    throw InputError({file_, line_at(static_cast<std::ptrdiff_t>(text_.find('\0'))), ""}, "a zero byte",
                     "text");
  const std::ptrdiff_t tags = std::ranges::count(text_, '<'), equals = std::ranges::count(text_, '=');
  if (tags > max_tags || equals > max_equals) {
    throw InputError({file_, 0, ""}, fmt::format("{} characters '<' and {} '='", tags, equals),
                     fmt::format("at most {} and {}", max_tags, max_equals));
  }
}

void NcclXmlDocument::check_root(std::string_view name) const {
  bool first = true;
  for (const pugi::xml_node element : document_.children()) {
    if (element.type() != pugi::node_element) continue;
    const std::string_view found = element.name();
    if (first && found != name) {
      throw InputError({file_, line_of(element), ""}, fmt::format("root element {}", quoted(found)),
                       fmt::format("a whole file, whose root element is {}", name));
    }
    if (!first) {
      throw InputError({file_, line_of(element), ""}, fmt::format("a second root element, {}", quoted(found)),
                       fmt::format("one {} element", name));
    }
    first = false;
  }
}

// Without recursion: the depth is not known to be bounded before this.
void NcclXmlDocument::check_elements(const NcclXmlLimits& limits) const {
  std::size_t elements = 0, depth = 1;
  pugi::xml_node at = root();
  while (at) {
    if (at.type() == pugi::node_element) {
      if (++elements > limits.max_elements) {
        throw InputError({file_, line_of(at), ""}, fmt::format("more than {} elements", limits.max_elements),
                         fmt::format("at most {}", limits.max_elements));
      }
      if (depth > max_xml_depth) {
        throw InputError({file_, line_of(at), ""}, "elements inside each other " + std::to_string(depth),
                         fmt::format("at most {} levels", max_xml_depth));
      }
      check_element(at);
    }
    if (at.first_child()) {
      at = at.first_child();
      ++depth;
      continue;
    }
    while (at != root() && !at.next_sibling()) {
      at = at.parent();
      --depth;
    }
    at = at == root() ? pugi::xml_node() : at.next_sibling();
  }
}

void NcclXmlDocument::check_element(pugi::xml_node element) const {
  if (!is_name(element.name())) refuse(element, "", quoted(element.name()), "a name of letters and digits");
  std::set<std::string_view> names;
  for (const pugi::xml_attribute attribute : element.attributes()) {
    const std::string_view name = attribute.name(), value = attribute.value();
    if (!is_name(name)) refuse(element, name, quoted(name), "an attribute's name of letters and digits");
    if (names.size() == max_xml_attributes)
      refuse(element, name, "one more attribute", fmt::format("at most {}", max_xml_attributes));
    if (!names.insert(name).second) refuse(element, name, "a second value", "each attribute once");
    if (value.size() > max_xml_text)
      refuse(element, name, fmt::format("{} characters", value.size()),
             fmt::format("at most {}", max_xml_text));
    if (first_unprintable(value) != value.size())
      refuse(element, name, quoted(value), "printable characters");
  }
}

int NcclXmlDocument::line_at(std::ptrdiff_t offset) const {
  const auto end = std::clamp<std::ptrdiff_t>(offset, 0, static_cast<std::ptrdiff_t>(text_.size()));
  return 1 + static_cast<int>(std::count(text_.begin(), text_.begin() + end, '\n'));
}

int NcclXmlDocument::line_of(pugi::xml_node element) const { return line_at(element.offset_debug()); }

Location NcclXmlDocument::where(pugi::xml_node element, std::string_view name) const {
  std::ptrdiff_t offset = element.offset_debug();
  const pugi::xml_attribute attribute = element.attribute(std::string(name).c_str());
  if (attribute)
    offset += attribute.name() - element.name();  // both point into the parser's copy of the text
  const std::string key = name.empty() ? element.name() : fmt::format("{}.{}", element.name(), name);
  return {file_, line_at(offset), key};
}

void NcclXmlDocument::refuse(pugi::xml_node element, std::string_view name, std::string_view found,
                             std::string_view allowed) const {
  throw InputError(where(element, name), found, allowed);
}

std::optional<std::string_view> NcclXmlDocument::text(pugi::xml_node element, std::string_view name) {
  const pugi::xml_attribute attribute = element.attribute(std::string(name).c_str());
  if (!attribute) return std::nullopt;
  return attribute.value();
}

std::optional<std::int64_t> NcclXmlDocument::integer(pugi::xml_node element, std::string_view name,
                                                     std::int64_t min, std::int64_t max) const {
  const std::string_view value = text(element, name).value_or("");
  if (value.empty()) return std::nullopt;
  const std::optional<std::int64_t> number = c_integer(value);
  if (!number || *number < min || *number > max)
    refuse(element, name, quoted(value), fmt::format("a whole number from {} to {}", min, max));
  return number;
}

std::optional<std::uint64_t> NcclXmlDocument::hexadecimal(pugi::xml_node element,
                                                          std::string_view name) const {
  const std::string_view value = text(element, name).value_or("");
  if (value.empty()) return std::nullopt;
  const std::optional<std::uint64_t> number = hexadecimal_number(value);
  if (!number) refuse(element, name, quoted(value), "a hexadecimal number of at most 64 bits");
  return number;
}

std::optional<double> NcclXmlDocument::decimal(pugi::xml_node element, std::string_view name,
                                               double max) const {
  const std::string_view value = text(element, name).value_or("");
  if (value.empty()) return std::nullopt;
  double number = 0;
  const char* const end = value.data() + value.size();
  const auto [after, error] = std::from_chars(value.data(), end, number, std::chars_format::fixed);
  const bool digit = value.front() >= '0' && value.front() <= '9';  // neither "nan" nor "-0"
  if (!digit || error != std::errc{} || after != end || number > max)
    refuse(element, name, quoted(value), fmt::format("a decimal number from 0 to {}", max));
  return number;
}

}  // namespace isthmus
