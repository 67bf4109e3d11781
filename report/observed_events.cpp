#include "report/observed_events.hpp"

#include <cmath>
#include <memory>

#include <fmt/format.h>
#include <sqlite3.h>
#include <nlohmann/json.hpp>

#include "model/error.hpp"
#include "model/text.hpp"
#include "report/tensor_names.hpp"

namespace isthmus::report {
namespace {

using PlainJson = nlohmann::json;

class EventReader {
 public:
  EventReader(std::string file, const Refit& refit) : file_(std::move(file)), names_(refit) {}

  /// Only spans stay in memory: each event is looked at when it is complete, and dropped.
  Observation read(std::string_view text) {
    PlainJson document;
    const auto look = [this](int depth, PlainJson::parse_event_t event, PlainJson& value) {
      const bool whole =
          event == PlainJson::parse_event_t::object_end && (depth == 1 || depth == 2) && value.contains("ph");
      if (whole) add(value);
      return !whole;
    };
    try {
      document = PlainJson::parse(text, look);
    } catch (const PlainJson::exception& error) {
      throw InputError({file_, 0, ""}, printable(error.what(), 160), "trace-event JSON");
    }
    if (document.is_object() && document.contains("otherData")) own_trace(document["otherData"]);
    return std::move(observation_);
  }

 private:
  void add(const PlainJson& event) {
    if (event.value("ph", "") != "X") return;
    const auto number = [&](const char* key) -> std::optional<double> {
      const auto found = event.find(key);
      return found != event.end() && found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
    };
    const std::optional<double> begin = number("ts"), length = number("dur");
    if (!begin || !length || !(*length >= 0) || !event.contains("name") || !event["name"].is_string())
      refuse(event, "a complete event with name, ts and dur");
    ObservedSpan span;
    if (!identify(event, span)) return;
    // Microseconds since 1970 do not fit as picoseconds.
    if (!first_) first_ = *begin;
    const double offset = (*begin - *first_) * 1e6, time = *length * 1e6;
    if (!(std::abs(offset) + time < 4e18)) refuse(event, "spans within a month of each other");
    span.begin = {std::llround(offset)};
    span.end = {std::llround(offset) + std::llround(time)};
    observation_.spans.push_back(std::move(span));
  }

  [[noreturn]] void refuse(const PlainJson& event, std::string_view allowed) const {
    throw InputError({file_, 0, "traceEvents"},
                     printable(event.dump(-1, ' ', true, PlainJson::error_handler_t::replace)), allowed);
  }

  /// Whether the event is of this refit: by the operation that it names, or by a tensor's name.
  bool identify(const PlainJson& event, ObservedSpan& span) {
    const auto arguments = event.find("args");
    if (arguments != event.end() && arguments->is_object() && arguments->contains("operation")) {
      const PlainJson& operation = (*arguments)["operation"];
      if (event.value("cat", "") != "operation" || !operation.is_number_unsigned()) return false;
      span.operation = operation.get<std::uint32_t>();
      return true;
    }
    span.tensor = names_.find_in(event["name"].get_ref<const std::string&>());
    if (!span.tensor) ++observation_.ignored;
    return span.tensor.has_value();
  }

  void own_trace(const PlainJson& data) {
    observation_.form = ObservedForm::profile;
    if (!data.is_object() || !data.contains("policy") || !data.contains("operations")) return;
    observation_.form = ObservedForm::trace;
    observation_.policy = data.value("policy", "");
    observation_.operations =
        data.value("operations", std::size_t{0}) + data.value("dropped_operations", std::size_t{0});
  }

  std::string file_;
  TensorNames names_;
  std::optional<double> first_;  // begin of the first span, in microseconds
  Observation observation_{ObservedForm::profile, "", 0, 0, {}};
};

struct CloseDatabase {
  void operator()(sqlite3* database) const { sqlite3_close(database); }
};
struct EndStatement {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};

}  // namespace

Observation read_events(std::string_view text, const std::string& file, const Refit& refit) {
  return EventReader(file, refit).read(text);
}

Observation read_nsys(const std::filesystem::path& file, const Refit& refit) {
  constexpr const char* ranges =
      "SELECT e.start, e.end, coalesce(e.text, s.value, '') FROM NVTX_EVENTS e LEFT JOIN StringIds s ON "
      "e.textId = s.id "
      "WHERE e.end IS NOT NULL ORDER BY e.start, e.end";
  sqlite3* opened = nullptr;
  const int status = sqlite3_open_v2(file.c_str(), &opened, SQLITE_OPEN_READONLY, nullptr);
  const std::unique_ptr<sqlite3, CloseDatabase> database(opened);
  const auto refuse = [&] {
    throw InputError({file.string(), 0, ""}, printable(sqlite3_errmsg(database.get()), 160),
                     "the SQLite export of Nsight Systems, with NVTX_EVENTS and StringIds");
  };
  if (status != SQLITE_OK) refuse();
  sqlite3_stmt* prepared = nullptr;
  if (sqlite3_prepare_v2(database.get(), ranges, -1, &prepared, nullptr) != SQLITE_OK) refuse();
  const std::unique_ptr<sqlite3_stmt, EndStatement> statement(prepared);
  const TensorNames names(refit);
  Observation observation{ObservedForm::nsys, "", 0, 0, {}};
  std::optional<std::int64_t> first;
  int step = sqlite3_step(prepared);
  for (; step == SQLITE_ROW; step = sqlite3_step(prepared)) {
    const std::int64_t begin = sqlite3_column_int64(prepared, 0), end = sqlite3_column_int64(prepared, 1);
    const auto* text = static_cast<const char*>(sqlite3_column_blob(prepared, 2));
    const auto size = static_cast<std::size_t>(sqlite3_column_bytes(prepared, 2));
    ObservedSpan span;
    span.tensor = names.find_in(text == nullptr ? std::string_view() : std::string_view(text, size));
    if (span.tensor && !first) first = begin;
    const auto fits = [&](std::int64_t time) { return std::abs(static_cast<double>(time - *first)) < 4e15; };
    if (!span.tensor || end < begin || !fits(begin) || !fits(end)) {
      ++observation.ignored;
      continue;
    }
    span.begin = {(begin - *first) * 1000};
    span.end = {(end - *first) * 1000};
    observation.spans.push_back(std::move(span));
  }
  if (step != SQLITE_DONE) refuse();
  return observation;
}

}  // namespace isthmus::report
