#include "tests/tidy/house_rules.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include <gmock/gmock.h>

namespace isthmus::tidy {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const std::string opening = "#pragma once\n// What it is.\n// What holds.\n// Why.\n\n";

std::string lines(std::size_t count, const std::string& line = "\n") {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += line;
  return text;
}

std::vector<std::string> messages(std::string_view path, std::string_view text) {
  std::vector<std::string> result;
  for (const Finding& finding : find_violations(path, text)) result.push_back(finding.message);
  return result;
}

TEST(HouseRules, accept_a_good_header) {
  EXPECT_THAT(
      messages("sim/a.hpp", opening + "#include <vector>\n\n#include \"planner/plan.hpp\"\nint f();\n"),
      IsEmpty());
}

TEST(HouseRules, accept_files_functions_lines_and_comments_of_exactly_the_limit) {
  EXPECT_THAT(messages("model/a.hpp", opening + lines(295)), IsEmpty());
  EXPECT_THAT(messages("model/a.cpp", lines(500)), IsEmpty());
  EXPECT_THAT(messages("model/a.cpp", "int f() {\n" + lines(68) + "}\n"), IsEmpty());
  EXPECT_THAT(messages("model/a.cpp", "// " + std::string(107, 'x') + "\n"), IsEmpty());
  EXPECT_THAT(messages("model/a.hpp", "#pragma once\n" + lines(15, "// x\n")), IsEmpty());
}

TEST(HouseRules, find_files_that_are_too_long) {
  EXPECT_THAT(messages("model/a.hpp", opening + lines(296)),
              ElementsAre("lines of the file: 301, at most 300"));
  EXPECT_THAT(messages("model/a.cpp", lines(501)), ElementsAre("lines of the file: 501, at most 500"));
}

TEST(HouseRules, find_lines_that_are_too_long_and_count_characters_not_bytes) {
  EXPECT_THAT(messages("model/a.cpp", "// " + std::string(108, 'x') + "\n"),
              ElementsAre("characters of the line: 111, at most 110"));
  EXPECT_THAT(messages("model/a.cpp", "// " + lines(107, "\u00b5") + "\n"), IsEmpty());
}

TEST(HouseRules, find_functions_that_are_too_long_wherever_they_stand) {
  const std::string body = " {\n" + lines(69) + "}\n";
  for (const std::string head :
       {"int f()", "template <class T = int> T f(T x = {})", "auto f() -> int", "A::A(int x) : a_{x}, b_{x}",
        "bool operator<(A a, A b)", "TEST(A, b)", "const auto f = [](int x)", "struct A { int f() const",
        "namespace a { class B : public C<int> { B& operator=(const B&) noexcept"}) {
    EXPECT_THAT(messages("model/a.cpp", head + body), ElementsAre("lines of the function: 71, at most 70"))
        << head;
  }
}

TEST(HouseRules, do_not_take_long_types_namespaces_and_tables_for_functions) {
  const std::string body = " {\n" + lines(100) + "}";
  for (const std::string head :
       {"namespace a::b", "struct A", "template <class T> class A : B<T>", "enum class E : int",
        "extern \"C\"", "const int table[] =", "std::array<int, size(a)> table =", "A table"}) {
    EXPECT_THAT(messages("model/a.cpp", head + body + ";\n"), IsEmpty()) << head;
  }
}

TEST(HouseRules, count_braces_only_in_code) {
  const std::string text =
      "int f() {\n  // {\n  /* { */\n  g(\"{\\\"{\", '{', R\"x({)\" {)x\");\n  return 1'000;\n}\n#define A "
      "{\\\n{\n\nint h() {\n}\n";
  EXPECT_THAT(functions(text), ElementsAre(Function{1, 6}, Function{10, 11}));
}

TEST(HouseRules, find_includes_against_the_dependency_rule) {
  const auto including = [](const std::string& header) { return "#include \"" + header + "\"\n"; };
  EXPECT_THAT(messages("model/a.cpp", including("planner/plan.hpp")),
              ElementsAre("model may not include planner/plan.hpp"));
  EXPECT_THAT(messages("sim/deep/a.cpp", including("hw/run.hpp")),
              ElementsAre("sim may not include hw/run.hpp"));
  EXPECT_THAT(messages("hw/a.cpp", including("sim/run.hpp")), ElementsAre("hw may not include sim/run.hpp"));
  EXPECT_THAT(messages("cli/a.cpp", including("tests/b.hpp")),
              ElementsAre("cli may not include tests/b.hpp"));
  EXPECT_THAT(messages("cli/a.cpp", including("hw/run.hpp") + including("model/units.hpp")), IsEmpty());
  EXPECT_THAT(messages("tests/sim/a_test.cpp", including("report/a.hpp")), IsEmpty());
}

TEST(HouseRules, find_includes_that_are_not_named_from_the_root) {
  EXPECT_THAT(messages("tests/a.cpp", "#include \"a.hpp\"\n"),
              ElementsAre("include not named from the project root"));
  EXPECT_THAT(messages("tests/a.cpp", "#include \"../a.hpp\"\n"),
              ElementsAre("include not named from the project root"));
  EXPECT_THAT(messages("tests/a.cpp", "#include \"b/a.cpp\"\n"),
              ElementsAre("include of something else than a header"));
}

TEST(HouseRules, find_graph_templates_in_headers_only) {
  const std::string include = "#include <boost/graph/graph_traits.hpp>\n";
  EXPECT_THAT(messages("model/a.hpp", opening + include), ElementsAre("Boost.Graph in a header"));
  EXPECT_THAT(messages("model/a.cpp", include), IsEmpty());
}

TEST(HouseRules, find_marks_of_unfinished_work_even_in_comments) {
  for (const std::string mark : {"TO"
                                 "DO",
                                 "FIX"
                                 "ME",
                                 "XX"
                                 "X",
                                 "HA"
                                 "CK"}) {
    EXPECT_THAT(messages("model/a.cpp", "// " + mark + ": later\n"), ElementsAre("mark of unfinished work"));
    EXPECT_THAT(messages("model/a.cpp", "int A" + mark + ";\n"), IsEmpty());
  }
}

TEST(HouseRules, find_shared_pointers_and_raw_allocation_in_code_only) {
  EXPECT_THAT(messages("model/a.cpp", "std::shared_ptr<int> a;\n"), ElementsAre("shared pointer"));
  EXPECT_THAT(messages("model/a.cpp", "auto a = new int;\n"), ElementsAre("raw new"));
  EXPECT_THAT(messages("model/a.cpp", "#include <new>\n// a new shared_ptr\nauto a = \"new\"; int renew;\n"),
              IsEmpty());
}

TEST(HouseRules, find_headers_that_do_not_open_as_they_should) {
  EXPECT_THAT(messages("model/a.hpp", "// a\n// b\n// c\n"), ElementsAre("#pragma once is missing"));
  EXPECT_THAT(messages("model/a.hpp", "#pragma once\n// a\n// b\n\n// c\n"),
              ElementsAre("opening comment of less than 3 lines"));
  EXPECT_THAT(messages("model/a.hpp", "#pragma once\n" + lines(16, "// x\n")),
              ElementsAre("lines of the opening comment: 16, at most 15"));
}

TEST(HouseRules, find_the_types_that_a_file_defines_for_the_whole_program) {
  EXPECT_THAT(defined_types("namespace a {\nstruct B;\nstruct C : D {\n};\nnamespace {\nclass E {\n};\n}  // "
                            "namespace\nenum class F : int {\n};\n}  // namespace a\nclass G final {\n"),
              ElementsAre("a::C", "a::F", "G"));
}

TEST(HouseRules, hold_in_every_source_of_the_project) {
  namespace fs = std::filesystem;
  const fs::path root = ISTHMUS_SOURCE_DIR;
  std::ostringstream found;
  int judged = 0;
  std::map<std::string, std::string> home;  // type -> the file that defines it
  for (const std::string folder : {"model", "planner", "sim", "report", "hw", "cli", "tests", "bench"}) {
    if (!fs::exists(root / folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const fs::path extension = entry.path().extension();
      if (extension != ".hpp" && extension != ".cpp" && extension != ".cu" && extension != ".cuh") continue;
      const std::string path = fs::relative(entry.path(), root).generic_string();
      std::ostringstream text;
      text << std::ifstream(entry.path()).rdbuf();
      for (const auto& [line, message] : find_violations(path, text.str())) {
        found << path << ":" << line << ": " << message << "\n";
      }
      for (const std::string& type : defined_types(text.str())) {
        const auto [known, is_new] = home.try_emplace(type, path);
        if (!is_new) found << path << ": " << type << " is defined in " << known->second << " as well\n";
      }
      ++judged;
    }
  }
  EXPECT_GT(judged, 0);
  EXPECT_TRUE(found.str().empty()) << found.str();
}

}  // namespace
}  // namespace isthmus::tidy
