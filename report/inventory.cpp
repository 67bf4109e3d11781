#include "report/inventory.hpp"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "model/precision.hpp"

namespace isthmus::report {
namespace {

using Json = nlohmann::ordered_json;

struct Figures {
  std::int64_t parameters = 0;  // of the main model; scales are none
  PrecisionTotals main, payload;
  Bytes unmatched;  // of experts whose names the bulk rule does not know
  std::string first_unmatched;
};

Bytes bytes_of(const TensorPattern& pattern) {
  return element_size(pattern.wire) * (pattern.count() * pattern.elements());
}

Figures figures_of(const Inventory& travelling, const InventoryView& view) {
  Figures figures;
  figures.main = precision_totals(travelling);
  figures.payload = precision_totals(travelling, view.payload);
  for (const TensorPattern& pattern : travelling.patterns) {
    const bool main = pattern.role == Role::bulk || pattern.role == Role::misc;
    if (main && !pattern.scale) figures.parameters += pattern.count() * pattern.elements();
    if (!is_expert_unknown_to_bulk_rule(pattern)) continue;
    if (figures.first_unmatched.empty()) figures.first_unmatched = pattern.name;
    figures.unmatched += bytes_of(pattern);
  }
  return figures;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

/// Calls `write` with the full name of each tensor of the pattern. `name` is the pattern's, perhaps escaped.
template <class Write>
void for_each_name(const TensorPattern& pattern, const std::string& name, Write write) {
  const std::size_t layer = name.find("{l}"), expert = name.find("{e}");
  const bool by_layer = layer != std::string::npos, by_expert = expert != std::string::npos;
  const std::size_t places = by_layer ? pattern.layers.size() : 1;
  const std::int64_t experts = by_expert ? pattern.experts : 1;
  std::string full;
  for (std::size_t i = 0; i < places; ++i) {
    for (std::int64_t e = 0; e < experts; ++e) {
      full = name;
      if (by_expert) full.replace(expert, 3, fmt::format_int(e).str());
      if (by_layer) full.replace(full.find("{l}"), 3, fmt::format_int(pattern.layers[i]).str());
      write(full);
    }
  }
}

Json to_json(const TensorPattern& pattern) {
  return {{"name", pattern.name},
          {"shape", pattern.shape},
          {"dtype", to_string(pattern.stored)},
          {"role", to_string(pattern.role)},
          {"count", pattern.count()},
          {"parameters", pattern.scale ? 0 : pattern.count() * pattern.elements()},
          {"bytes", bytes_of(pattern).value}};
}

/// The list of all tensors as JSON text, one tensor per line.
std::string tensor_list_json(const Inventory& travelling) {
  fmt::memory_buffer text;
  const auto out = std::back_inserter(text);
  std::string_view separator = "\n";
  for (const TensorPattern& pattern : travelling.patterns) {
    const std::string after =
        fmt::format(", \"shape\": {}, \"dtype\": \"{}\", \"role\": \"{}\", \"bytes\": {}}}",
                    shape_text(pattern.shape), to_string(pattern.stored), to_string(pattern.role),
                    element_size(pattern.wire).value * pattern.elements());
    for_each_name(pattern, Json(pattern.name).dump(), [&](const std::string& name) {
      text.append(separator);
      text.append(std::string_view("    {\"name\": "));
      text.append(name);
      text.append(after);
      separator = ",\n";
    });
  }
  fmt::format_to(out, "\n  ]");
  return "[" + fmt::to_string(text);
}

std::string json_document(const Inventory& travelling, const InventoryView& view, const Figures& figures) {
  Json patterns = Json::array();
  for (const TensorPattern& pattern : travelling.patterns) patterns.push_back(to_json(pattern));
  const PrecisionTotals &main = figures.main, &payload = figures.payload;
  const Json document{{"model", travelling.model},
                      {"architecture", travelling.architecture},
                      {"dtype", view.form},
                      {"parameters", figures.parameters},
                      {"bytes", main.bytes.value},
                      {"bulk_bytes", main.bulk_bytes.value},
                      {"misc_bytes", main.misc_bytes.value},
                      {"scale_bytes", main.scale_bytes.value},
                      {"bulk_fraction", main.bulk_fraction()},
                      {"tensor_count", main.tensor_count},
                      {"bulk_tensor_count", main.bulk_tensor_count},
                      {"scale_tensor_count", main.scale_tensor_count},
                      {"payload_mtp", view.payload.mtp},
                      {"payload_vision", view.payload.vision},
                      {"payload_bytes", payload.bytes.value},
                      {"payload_bulk_fraction", payload.bulk_fraction()},
                      {"payload_tensor_count", payload.tensor_count},
                      {"unmatched_expert_bytes", figures.unmatched.value},
                      {"patterns", std::move(patterns)}};
  std::string text = document.dump(2);
  if (!view.tensors) return text + "\n";
  text.resize(text.size() - std::string_view("\n}").size());
  return text + ",\n  \"tensors\": " + tensor_list_json(travelling) + "\n}\n";
}

/// Columns of the table and of the list of tensors.
struct Widths {
  std::size_t name = 4, shape = 5;
};

Widths widths_of(const Inventory& travelling) {
  Widths widths;
  for (const TensorPattern& pattern : travelling.patterns) {
    widths.name = std::max(widths.name, pattern.name.size());
    widths.shape = std::max(widths.shape, shape_text(pattern.shape).size());
  }
  return widths;
}

std::string tensor_list_text(const Inventory& travelling) {
  const Widths widths = widths_of(travelling);
  fmt::memory_buffer text;
  for (const TensorPattern& pattern : travelling.patterns) {
    const std::string after = fmt::format("  {:<{}}  {:<8}  {}\n", shape_text(pattern.shape), widths.shape,
                                          to_string(pattern.stored), to_string(pattern.role));
    for_each_name(pattern, pattern.name, [&](const std::string& name) {
      text.append(name);
      for (std::size_t column = name.size(); column < widths.name; ++column) text.push_back(' ');
      text.append(after);
    });
  }
  text.push_back('\n');
  return fmt::to_string(text);
}

std::string pattern_table(const Inventory& travelling, const Figures& figures) {
  const Widths widths = widths_of(travelling);
  std::string text = fmt::format("{:<{}}  {:<{}}  {:>8}  {:<8}  {:<6}  {:>17}\n", "name", widths.name,
                                 "shape", widths.shape, "count", "dtype", "role", "bytes");
  for (const TensorPattern& pattern : travelling.patterns) {
    text += fmt::format("{:<{}}  {:<{}}  {:>8}  {:<8}  {:<6}  {:>17}\n", pattern.name, widths.name,
                        shape_text(pattern.shape), widths.shape, pattern.count(), to_string(pattern.stored),
                        to_string(pattern.role), bytes_of(pattern).value);
  }
  if (!figures.first_unmatched.empty()) {
    text += fmt::format(
        "note: experts such as {} have none of the names that the bulk rule knows (gate_proj, up_proj, "
        "down_proj): {} bytes are misc\n",
        figures.first_unmatched, figures.unmatched.value);
  }
  return text + "\n";
}

std::string extras_text(PayloadOptions payload) {
  return fmt::format("{} vision, {} MTP", payload.vision ? "with" : "without",
                     payload.mtp ? "with" : "without");
}

std::string totals_text(const Inventory& travelling, const InventoryView& view, const Figures& figures) {
  const PrecisionTotals &main = figures.main, &payload = figures.payload;
  std::string text =
      fmt::format("{} ({}): {} parameters in {} tensors, {} bytes {}: bulk {}, misc {}; bulk {:.2f} %\n",
                  travelling.model, travelling.architecture, figures.parameters, main.tensor_count,
                  main.bytes.value, view.form == "stored" ? "as stored" : "in " + view.form,
                  main.bulk_bytes.value, main.misc_bytes.value, 100 * main.bulk_fraction());
  if (main.scale_tensor_count > 0) {
    text += fmt::format("of which scales: {} bytes in {} tensors\n", main.scale_bytes.value,
                        main.scale_tensor_count);
  }
  return text + fmt::format("payload of a refit ({}): {} bytes, bulk {:.2f} %\n", extras_text(view.payload),
                            payload.bytes.value, 100 * payload.bulk_fraction());
}

}  // namespace

std::string inventory_document(const Inventory& travelling, const InventoryView& view) {
  const Figures figures = figures_of(travelling, view);
  if (view.json) return json_document(travelling, view, figures);
  return (view.tensors ? tensor_list_text(travelling) : pattern_table(travelling, figures)) +
         totals_text(travelling, view, figures);
}

}  // namespace isthmus::report
