#include "report/observed_events.hpp"

#include <sqlite3.h>

#include <gtest/gtest.h>

#include "model/error.hpp"
#include "tests/support/refit_generator.hpp"
#include "tests/support/temporary_folder.hpp"

namespace isthmus::report {
namespace {

Refit refit_of_one() {
  TensorSpec spec;
  spec.name = "w";
  spec.source = {{16}, Dtype::u8, contiguous_mesh({1}, Rank{0}), {{}}, ChunkRule::even};
  spec.target = {{16}, Dtype::u8, contiguous_mesh({1}, Rank{1}), {{}}, ChunkRule::even};
  return test::make_refit({{spec}, 2});
}

/// A database made by these statements, read as an export.
Observation exported(const std::string& statements) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "report.sqlite";
  sqlite3* database = nullptr;
  EXPECT_EQ(sqlite3_open(file.c_str(), &database), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(database, statements.c_str(), nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(database);
  return read_observation(file, refit_of_one());
}

constexpr const char* tables =
    "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
    "CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, text TEXT, textId INTEGER);";

TEST(ObservedEvents, of_nsight_systems_are_ranges_named_by_text_or_by_number) {
  const Observation observation =
      exported(std::string(tables) +
               "INSERT INTO StringIds VALUES (7, 'reshard w');"
               "INSERT INTO NVTX_EVENTS VALUES (9000000000000100, 9000000000000400, NULL, 7);"
               "INSERT INTO NVTX_EVENTS VALUES (9000000000000000, 9000000000000300, 'w', NULL);"
               "INSERT INTO NVTX_EVENTS VALUES (50, 60, 'other', NULL);"
               "INSERT INTO NVTX_EVENTS VALUES (70, NULL, 'w', NULL);");
  EXPECT_EQ(observation.form, ObservedForm::nsys);
  EXPECT_EQ(observation.ignored, 1U);
  ASSERT_EQ(observation.spans.size(), 2U);
  EXPECT_EQ(observation.spans[0].begin.value, 0);
  EXPECT_EQ(observation.spans[0].end.value, 300'000);
  EXPECT_EQ(observation.spans[1].begin.value, 100'000);
}

TEST(ObservedEvents, of_another_database_are_refused) {
  EXPECT_THROW(exported("CREATE TABLE runs (id INTEGER);"), InputError);
  EXPECT_THROW(exported(tables), InputError) << "no range names a tensor";
}

}  // namespace
}  // namespace isthmus::report
