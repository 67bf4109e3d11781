#include "report/validation.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace isthmus::report {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const InputFault& fault) {
  return {{"key", fault.where.key}, {"file", fault.where.file}, {"line", fault.where.line},
          {"found", fault.found},   {"allowed", fault.allowed}, {"change", fault.change}};
}

std::string to_text(const InputFault& fault) {
  std::string text = fault.where.file;
  if (fault.where.line > 0) text += fmt::format(":{}", fault.where.line);
  text += fmt::format(": {}: found {}", fault.where.key, fault.found);
  if (!fault.allowed.empty()) text += fmt::format("; allowed: {}", fault.allowed);
  if (!fault.change.empty()) text += fmt::format("; change to: {}", fault.change);
  return text + "\n";
}

}  // namespace

std::string validation_document(std::string_view name, const Validation& validation, bool json) {
  if (json) {
    Json violations = Json::array();
    for (const InputFault& fault : validation.violations) violations.push_back(to_json(fault));
    const Json document{{"scenario", name},
                        {"valid", validation.valid()},
                        {"violations", std::move(violations)},
                        {"notes", validation.notes}};
    return document.dump(2) + "\n";
  }
  std::string text;
  for (const InputFault& fault : validation.violations) text += to_text(fault);
  for (const std::string& note : validation.notes) text += fmt::format("note: {}\n", note);
  const std::size_t count = validation.violations.size();
  return text + (count == 0 ? fmt::format("{}: valid\n", name)
                            : fmt::format("{}: {} violation{}\n", name, count, count == 1 ? "" : "s"));
}

}  // namespace isthmus::report
