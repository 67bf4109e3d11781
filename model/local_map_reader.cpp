// The local maps of model/refit_info.hpp. Unlike the description they are a format of this project: unknown
// keys are refused.
#include <algorithm>
#include <map>
#include <unordered_map>

#include <fmt/format.h>

#include "model/json_file.hpp"
#include "model/refit_info.hpp"
#include "model/refit_info_values.hpp"
#include "model/scenario_reader.hpp"
#include "model/text.hpp"

namespace isthmus {

void add_local_maps(const JsonValue& value, LocalMaps& into);

namespace {

constexpr std::size_t max_ties = 10'000;

class Reader {
 public:
  explicit Reader(LocalMaps& into) : into_(into) {
    for (const LocalMap& map : into.maps) entries_ += map.entries.size();
    for (std::size_t i = 0; i < into.misc_orders.size(); ++i) orders_.emplace(into.misc_orders[i], i);
  }

  void add(const JsonValue& value) {
    if (!value.is_list()) {
      add_map(value);
      return;
    }
    for (const JsonValue& item : value.items(to_size(2 * max_gpus), "a list of local maps")) add_map(item);
  }

 private:
  void add_map(const JsonValue& value) {
    value.allow_only({"side", "rank", "entries", "misc_order", "ties"});
    LocalMap map;
    map.where = value.where();
    map.side = read_side(value.at("side"));
    map.rank = value.at("rank").integer(0, max_gpus - 1);
    base_of_name_.clear();
    for (const JsonValue& item : value.at("entries").items(max_local_entries, "a list of entries")) {
      if (++entries_ > max_local_entries)
        item.refuse("too many entries", fmt::format("at most {} in all maps", max_local_entries));
      map.entries.push_back(read_entry(item, map.bases));
    }
    const auto order = value.find("misc_order");
    if (order && !order->is_null()) map.misc_order = read_order(*order);
    const auto ties = value.find("ties");
    if (ties && !ties->is_null()) {
      if (!ties->is_object()) ties->refuse("an object: name -> the name that fills it");
      for (const JsonValue& tie : ties->items(max_ties, "ties"))
        map.ties.push_back({printable(tie.key(), 4096), tie.text("the name of a tensor")});
    }
    into_.maps.push_back(std::move(map));
  }

  static Side read_side(const JsonValue& value) {
    constexpr std::string_view form = "train or generate";
    const std::string text = value.text(form);
    if (text == "train" || text == "training" || text == "source") return Side::train;
    if (text != "generate" && text != "generation" && text != "target") value.refuse(form);
    return Side::generate;
  }

  LocalEntry read_entry(const JsonValue& value, std::vector<LocalBase>& bases) {
    value.allow_only(
        {"tensor", "base", "base_shape", "base_strides", "before", "after", "storage", "dtype", "scale"});
    LocalEntry entry;
    entry.line = value.line();
    entry.tensor = value.at("tensor").text("a tensor's name");
    entry.before = read_box(value.at("before"));
    entry.after = read_box(value.at("after"));
    entry.base = intern(read_base(value), bases);
    return entry;
  }

  static LocalBase read_base(const JsonValue& value) {
    LocalBase base;
    base.name = value.at("base").text("the name of a live buffer");
    base.shape = read_extents(value.at("base_shape"), 0, 1);
    const auto strides = value.find("base_strides");
    base.strides =
        strides && !strides->is_null() ? read_strides(*strides, base.shape) : row_major(base.shape);
    const auto storage = value.find("storage");
    if (storage && !storage->is_null()) base.storage = storage->text("how the backend keeps the values");
    const auto dtype = value.find("dtype");
    if (dtype && !dtype->is_null()) base.dtype = read_dtype_name(*dtype);
    const auto scale = value.find("scale");
    if (scale && !scale->is_null()) {
      scale->allow_only({"name", "shape", "dtype"});
      base.scale = ScaleBuffer{read_extents(scale->at("shape"), 0, 1), std::nullopt};
      if (const auto kind = scale->find("dtype")) base.scale->dtype = read_dtype_name(*kind);
    }
    return base;
  }

  static std::vector<std::int64_t> row_major(const std::vector<std::int64_t>& shape) {
    std::vector<std::int64_t> strides(shape.size(), 1);
    for (std::size_t d = shape.size() - 1; d-- > 0;)
      strides[d] = strides[d + 1] * std::max<std::int64_t>(shape[d + 1], 1);
    return strides;
  }

  /// So that the offset of every element is below 2^60.
  static std::vector<std::int64_t> read_strides(const JsonValue& value,
                                                const std::vector<std::int64_t>& shape) {
    std::vector<std::int64_t> strides = value.integers(max_dimensions, 0, max_tensor_bytes);
    if (strides.size() != shape.size())
      value.refuse(fmt::format("{} strides", strides.size()),
                   fmt::format("{}, one per dimension of base_shape", shape.size()));
    std::int64_t last = 0;  // offset of the last element
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] < 2 || strides[d] == 0) continue;
      if (shape[d] - 1 > (max_tensor_bytes - last) / strides[d])
        value.refuse("a buffer of more than 2^60 elements", "at most 2^60");
      last += (shape[d] - 1) * strides[d];
    }
    return strides;
  }

  std::uint32_t intern(LocalBase base, std::vector<LocalBase>& bases) {
    std::vector<std::uint32_t>& same_name = base_of_name_[base.name];
    for (const std::uint32_t known : same_name) {
      if (bases[known] == base) return known;
    }
    const auto added = static_cast<std::uint32_t>(bases.size());
    if (same_name.size() < 2) {  // a third description adds nothing to the fault that two are
      same_name.push_back(added);
    } else {
      return same_name.back();
    }
    bases.push_back(std::move(base));
    return added;
  }

  /// Ranks walk the misc tensors in the same order, so few orders are kept.
  std::size_t read_order(const JsonValue& value) {
    std::vector<std::string> names;
    for (const JsonValue& item : value.items(max_json_values, "a list of names"))
      names.push_back(item.text("a tensor's name"));
    const auto [known, added] = orders_.emplace(std::move(names), into_.misc_orders.size());
    if (added) into_.misc_orders.push_back(known->first);
    return known->second;
  }

  LocalMaps& into_;
  std::size_t entries_ = 0;
  std::map<std::vector<std::string>, std::size_t> orders_;
  std::unordered_map<std::string, std::vector<std::uint32_t>> base_of_name_;  // of the map being read
};

}  // namespace

void add_local_maps(const JsonValue& value, LocalMaps& into) { Reader(into).add(value); }

Location LocalMap::at(std::size_t entry) const {
  return {where.file, entries[entry].line,
          fmt::format("{}{}entries.{}", where.key, where.key.empty() ? "" : ".", entry)};
}

void parse_local_maps(const std::string& text, const std::filesystem::path& file, LocalMaps& into) {
  const JsonTree tree(text, file.string());
  const JsonValue root = tree.root();
  const auto list = root.find("local_maps");
  if (list) root.allow_only({"local_maps"});
  add_local_maps(list ? *list : root, into);
}

void read_local_maps(const std::filesystem::path& path, LocalMaps& into) {
  std::vector<std::filesystem::path> files;
  std::error_code ignored, failure;
  if (!std::filesystem::is_directory(path, ignored)) {
    files.push_back(path);
  } else {
    std::filesystem::directory_iterator at(path, failure);
    for (; !failure && at != std::filesystem::directory_iterator(); at.increment(failure)) {
      if (at->path().extension() == ".json" && at->is_regular_file(ignored)) files.push_back(at->path());
    }
    const Location where{printable(path.string(), 4096), 0, ""};
    if (failure) throw InputError(where, fmt::format("cannot be read: {}", failure.message()));
    if (files.empty()) throw InputError(where, "a folder without .json files", "one with local maps");
    std::sort(files.begin(), files.end());
  }
  for (const std::filesystem::path& file : files)
    parse_local_maps(read_text(file, max_json_bytes), file, into);
}

}  // namespace isthmus
