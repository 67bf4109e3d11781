#pragma once
// A parsed XML text of NCCL's, with its attributes as checked values: system files and graph files.
// Invariants: the text is read literally (NCCL knows no entities), comments are gone; the first element is
// the expected root and the only one; the tree is at most max_xml_depth deep and within the given number of
// elements; whatever is refused is an InputError with file, line and attribute. Memory is bounded before
// parsing: by the number of '<' and '=' in the text.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <pugixml.hpp>

#include "model/error.hpp"

namespace isthmus {

inline constexpr std::size_t max_xml_depth = 64;
inline constexpr std::size_t max_xml_text = 255;  // characters of a name or value, as in NCCL
inline constexpr std::size_t max_xml_attributes = 16;

struct NcclXmlLimits {
  std::string_view root;         // "system"
  std::size_t max_elements = 0;  // of the whole text
};

class NcclXmlDocument {
 public:
  NcclXmlDocument(std::string_view text, const std::string& file, const NcclXmlLimits& limits);

  pugi::xml_node root() const { return document_.document_element(); }
  const std::string& file() const { return file_; }

  /// 1-based.
  int line_of(pugi::xml_node element) const;
  /// The place of an attribute, which need not exist: "gpu.dev".
  Location where(pugi::xml_node element, std::string_view name) const;
  [[noreturn]] void refuse(pugi::xml_node element, std::string_view name, std::string_view found,
                           std::string_view allowed) const;

  /// As they stand; nullopt when absent.
  static std::optional<std::string_view> text(pugi::xml_node element, std::string_view name);
  /// C's notation: 0x hexadecimal, leading 0 octal, else decimal. An empty value counts as absent.
  std::optional<std::int64_t> integer(pugi::xml_node element, std::string_view name, std::int64_t min,
                                      std::int64_t max) const;
  /// Hexadecimal with or without 0x.
  std::optional<std::uint64_t> hexadecimal(pugi::xml_node element, std::string_view name) const;
  /// Digits and perhaps a point: no exponent, no comma.
  std::optional<double> decimal(pugi::xml_node element, std::string_view name, double max) const;

 private:
  void check_size() const;
  void check_root(std::string_view name) const;
  void check_elements(const NcclXmlLimits& limits) const;
  void check_element(pugi::xml_node element) const;
  int line_at(std::ptrdiff_t offset) const;

  std::string_view text_;
  std::string file_;
  pugi::xml_document document_;
};

/// C's notation; nullopt unless all of the text is one number of 64 bits.
std::optional<std::int64_t> c_integer(std::string_view text);
std::optional<std::uint64_t> hexadecimal_number(std::string_view text);

}  // namespace isthmus
