#pragma once
// What a sweep has computed, in a folder: the file `finished` has a line of JSON for the sweep itself and one
// for each finished candidate, appended whole by a single write. Times are picoseconds, so reading gives back
// what was written to the bit.
// Invariant: a line that was cut off (the last one, by a kill) counts as not written; it is removed before
// anything is appended. A folder of another sweep is refused.

#include <filesystem>
#include <string>

#include "report/sweep.hpp"

namespace isthmus::report {

/// A finished candidate as one line without its end, and back, to the bit.
std::string to_line(std::uint32_t candidate, const SweepOutcome& outcome);
std::string to_line(std::uint32_t candidate, const SweepDetail& detail);
SweepOutcome outcome_of_line(const std::string& line);
SweepDetail detail_of_line(const std::string& line);

class FileJournal : public SweepJournal {
 public:
  /// Reads what is there, or begins. `fingerprint`: SweepCandidates::fingerprint. Raises InputError (key
  /// --resume) for a folder of another sweep, SystemError where the folder cannot be read or written.
  FileJournal(const std::filesystem::path& folder, const SweepCandidates& candidates);
  ~FileJournal() override;
  FileJournal(const FileJournal&) = delete;
  FileJournal& operator=(const FileJournal&) = delete;

  void add(std::uint32_t candidate, const SweepOutcome& outcome) override;
  void add(std::uint32_t candidate, const SweepDetail& detail) override;

 private:
  void read(const std::string& text, const SweepCandidates& candidates);
  void append(const std::string& line) const;

  std::filesystem::path file_;
  int descriptor_ = -1;
};

}  // namespace isthmus::report
