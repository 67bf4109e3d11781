#include "report/sweep_journal.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <iterator>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "model/error.hpp"
#include "model/text.hpp"

namespace isthmus::report {
namespace {

using Json = nlohmann::ordered_json;

[[noreturn]] void fail(const std::filesystem::path& file, int code) {
  throw SystemError(fmt::format("{}: the file could not be written: {}", printable(file.string()),
                                std::generic_category().message(code)));
}

std::string content_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

SweepDetail detail_of(const Json& line) {
  SweepDetail detail;
  for (const Json& end : line.at("ends")) detail.ends.push_back({end.get<std::int64_t>()});
  detail.bound = {line.at("bound").get<std::int64_t>()};
  detail.binding = line.at("binding").get<std::string>();
  return detail;
}

SweepOutcome outcome_of(const Json& line) {
  if (line.contains("refused")) return {line.at("refused").get<std::string>(), {}, {}};
  return {"", {line.at("time").get<std::int64_t>()}, {line.at("staging").get<std::int64_t>()}};
}

}  // namespace

FileJournal::FileJournal(const std::filesystem::path& folder, const SweepCandidates& candidates)
    : file_(folder / "finished") {
  std::error_code code;
  std::filesystem::create_directories(folder, code);
  if (code) fail(folder, code.value());
  std::string text = content_of(file_);
  text.resize(text.rfind('\n') + 1);  // npos + 1 is 0
  if (!text.empty()) read(text, candidates);
  descriptor_ = ::open(file_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail(file_, errno);
  if (::ftruncate(descriptor_, static_cast<off_t>(text.size())) != 0) fail(file_, errno);
  if (text.empty()) append(Json{{"sweep", candidates.fingerprint}}.dump());
}

FileJournal::~FileJournal() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void FileJournal::read(const std::string& text, const SweepCandidates& candidates) {
  int number = 0;
  const auto refuse = [&](std::string_view found) {
    throw InputError({printable(file_.string(), 4096), number, "--resume"}, found,
                     "a folder that this sweep began, with the same files and settings, or a new one");
  };
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    ++number;
    try {
      const Json line = Json::parse(text.substr(begin, end - begin));
      if (number == 1) {
        if (line.at("sweep") != candidates.fingerprint) refuse("another sweep's results");
      } else {
        const auto candidate = line.at("candidate").get<std::uint32_t>();
        if (candidate >= candidates.list.size()) refuse("a candidate that is not there");
        if (line.contains("ends")) {
          details[candidate] = detail_of(line);
        } else {
          outcomes[candidate] = outcome_of(line);
        }
      }
    } catch (const nlohmann::json::exception&) {
      refuse("a line that no sweep wrote");
    }
    begin = end + 1;
  }
}

void FileJournal::append(const std::string& line) const {
  const std::string text = line + "\n";
  const ssize_t written = ::write(descriptor_, text.data(), text.size());
  if (written != static_cast<ssize_t>(text.size())) fail(file_, written < 0 ? errno : ENOSPC);
}

void FileJournal::add(std::uint32_t candidate, const SweepOutcome& outcome) {
  append(to_line(candidate, outcome));
}

void FileJournal::add(std::uint32_t candidate, const SweepDetail& detail) {
  append(to_line(candidate, detail));
}

std::string to_line(std::uint32_t candidate, const SweepOutcome& outcome) {
  Json line{{"candidate", candidate}};
  if (!outcome.refused.empty()) {
    line["refused"] = outcome.refused;
  } else {
    line["time"] = outcome.time.value;
    line["staging"] = outcome.staging.value;
  }
  return line.dump();
}

std::string to_line(std::uint32_t candidate, const SweepDetail& detail) {
  Json line{{"candidate", candidate}, {"ends", Json::array()}};
  for (const Duration end : detail.ends) line["ends"].push_back(end.value);
  line["bound"] = detail.bound.value;
  line["binding"] = detail.binding;
  return line.dump();
}

SweepOutcome outcome_of_line(const std::string& line) { return outcome_of(Json::parse(line)); }

SweepDetail detail_of_line(const std::string& line) { return detail_of(Json::parse(line)); }

}  // namespace isthmus::report
