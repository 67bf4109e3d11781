// Lines of measured replays, written and read.

#include <algorithm>
#include <initializer_list>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "model/error.hpp"
#include "model/json_file.hpp"
#include "model/text.hpp"
#include "report/measured.hpp"

namespace isthmus::report {
namespace {

using Json = nlohmann::ordered_json;

class RecordReader {
 public:
  RecordReader(const nlohmann::json& record, std::string file, int line)
      : record_(record), file_(std::move(file)), line_(line) {
    if (!record.is_object()) refuse("", describe(record), "an object");
  }

  void allow_only(std::initializer_list<std::string_view> keys) const {
    for (const auto& [key, value] : record_.items()) {
      if (std::find(keys.begin(), keys.end(), key) == keys.end())
        refuse(printable(key), "an unknown key", fmt::format("{}", fmt::join(keys, ", ")));
    }
  }
  bool has(const std::string& key) const { return record_.contains(key); }
  std::string text(const std::string& key) const {
    const nlohmann::json& value = at(key);
    if (!value.is_string() || value.get<std::string>().empty())
      refuse(key, describe(value), "a text that is not empty");
    return value.get<std::string>();
  }
  double number(const std::string& key) const {
    const nlohmann::json& value = at(key);
    if (!value.is_number() || !(value.get<double>() > 0)) refuse(key, describe(value), "a number above 0");
    return value.get<double>();
  }
  std::int64_t count(const std::string& key) const {
    const nlohmann::json& value = at(key);
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > (std::uint64_t{1} << 62U))
      refuse(key, describe(value), "a whole number from 0 on");
    return value.get<std::int64_t>();
  }
  bool flag(const std::string& key) const {
    const nlohmann::json& value = at(key);
    if (!value.is_boolean()) refuse(key, describe(value), "true or false");
    return value.get<bool>();
  }
  std::vector<std::string> settings(const std::string& key) const {
    std::vector<std::string> result;
    const nlohmann::json& value = at(key);
    if (!value.is_array()) refuse(key, describe(value), "a list of KEY=VALUE");
    for (const nlohmann::json& each : value) {
      if (!each.is_string() || each.get<std::string>().find('=') == std::string::npos)
        refuse(key, describe(each), "KEY=VALUE");
      result.push_back(each.get<std::string>());
    }
    return result;
  }

 private:
  const nlohmann::json& at(const std::string& key) const {
    const auto found = record_.find(key);
    if (found == record_.end()) refuse(key, "nothing", "a value; the key is required here");
    return *found;
  }
  [[noreturn]] void refuse(const std::string& key, const std::string& found,
                           const std::string& allowed) const {
    throw InputError({file_, line_, key}, found, allowed);
  }

  const nlohmann::json& record_;
  std::string file_;
  int line_;
};

MeasuredRow read_row(const RecordReader& record) {
  record.allow_only({"scenario", "set", "scale", "policy", "backend", "device", "date", "gpus", "ranks",
                     "launches", "bytes", "byte_exact", "median_seconds", "fastest_seconds",
                     "slowest_seconds", "repetitions", "graph"});
  MeasuredRow row;
  row.scenario = record.text("scenario");
  row.overrides = record.settings("set");
  row.scale = record.number("scale");
  row.policy = record.text("policy");
  row.backend = record.text("backend");
  row.device = record.text("device");
  row.date = record.text("date");
  row.gpus = record.count("gpus");
  row.ranks = record.count("ranks");
  row.launches = record.count("launches");
  row.bytes = {record.count("bytes")};
  row.byte_exact = record.flag("byte_exact");
  row.median = record.number("median_seconds");
  row.fastest = record.number("fastest_seconds");
  row.slowest = record.number("slowest_seconds");
  row.repetitions = record.count("repetitions");
  row.graph = record.has("graph") && record.flag("graph");
  return row;
}

}  // namespace

std::string record_line(const MeasuredRow& row) {
  Json line{{"scenario", row.scenario},
            {"set", row.overrides},
            {"scale", row.scale},
            {"policy", row.policy},
            {"backend", row.backend},
            {"device", row.device},
            {"date", row.date},
            {"gpus", row.gpus},
            {"ranks", row.ranks},
            {"launches", row.launches},
            {"bytes", row.bytes.value},
            {"byte_exact", row.byte_exact},
            {"median_seconds", row.median},
            {"fastest_seconds", row.fastest},
            {"slowest_seconds", row.slowest},
            {"repetitions", row.repetitions}};
  if (row.graph) line["graph"] = true;
  return line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::vector<MeasuredRow> read_records(const std::filesystem::path& file) {
  const std::string name = printable(file.string(), 4096), text = read_text_file(file);
  std::vector<MeasuredRow> rows;
  int line = 0;
  for (std::size_t at = 0; at < text.size();) {
    ++line;
    const std::size_t end = text.find('\n', at);
    if (end == std::string::npos)
      throw InputError({name, line, ""}, "a last line without its end", "complete lines");
    const std::string record = text.substr(at, end - at);
    // Empty lines before it, so that messages have its number.
    const nlohmann::json json =
        parse_json(std::string(static_cast<std::size_t>(line) - 1, '\n') + record, name);
    rows.push_back(read_row(RecordReader(json, name, line)));
    at = end + 1;
  }
  if (rows.empty()) throw InputError({name, 0, ""}, "no lines", "a line for each policy of a replay");
  return rows;
}

}  // namespace isthmus::report
