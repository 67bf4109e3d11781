#pragma once
// XML text as strict as NCCL's parser wants it: a tag a line, two blanks of indentation, values in double
// quotes (single ones where a value holds double quotes), nothing escaped.
// Invariant: at most 256 elements, 16 attributes each, values of at most 255 printable characters; what goes
// beyond is refused with InputError.

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace isthmus {

class NcclXmlText {
 public:
  using Attributes = std::vector<std::pair<std::string, std::string>>;

  void open(std::string_view element, const Attributes& attributes);
  void close(std::string_view element);
  void leaf(std::string_view element, const Attributes& attributes);
  /// What was written; nothing is left.
  std::string take() { return std::move(text_); }

  /// As NCCL writes them; others follow by name.
  static Attributes in_usual_order(std::map<std::string, std::string> values);

 private:
  void begin(std::string_view element, const Attributes& attributes, std::string_view end);

  std::string text_;
  std::size_t elements_ = 0, depth_ = 0;
};

}  // namespace isthmus
