#include "report/page.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "model/error.hpp"

namespace isthmus::report {
namespace {

using testing::HasSubstr;
using testing::Not;

/// What stands in the element of this id.
std::string element_text(const std::string& page, const std::string& id) {
  const std::string begin = "id=\"" + id + "\">";
  const std::size_t from = page.find(begin) + begin.size();
  return page.substr(from, page.find("</script>", from) - from);
}

PageAssets with_library() {
  PageAssets assets = page_assets();
  if (assets.library.empty()) assets.library = "/* D3 */";
  return assets;
}

const std::string comparison = "{\n  \"scenario\": \"</script><b>\",\n  \"policies\": []\n}\n";

TEST(Page, adds_its_data_to_the_json_of_the_command) {
  const nlohmann::json joined = nlohmann::json::parse(with_page_data(comparison, "{\"policy\":\"p2p\"}"));
  EXPECT_EQ(joined["scenario"], "</script><b>");
  EXPECT_EQ(joined["report"]["policy"], "p2p");
}

TEST(Page, holds_the_same_json_whatever_stands_in_names) {
  const std::string data = with_page_data(comparison, R"({"x":"@script@ <!-- & \" é"})");
  const std::string page = page_document({"a</script>&b", "<t>", data, ""}, with_library());
  EXPECT_EQ(nlohmann::json::parse(element_text(page, "data")), nlohmann::json::parse(data));
  EXPECT_EQ(element_text(page, "explanation"), "null");
  EXPECT_THAT(page, HasSubstr("<h1>a&lt;/script>&amp;b</h1>"));
  EXPECT_THAT(page, HasSubstr("<pre>&lt;t></pre>"));
}

TEST(Page, asks_for_nothing_else) {
  const std::string page = page_document({"a", "b", "{\n}\n", "{}"}, with_library());
  EXPECT_THAT(page, HasSubstr("content=\"default-src 'none';"));
  EXPECT_THAT(page, Not(HasSubstr("<script src")));
  EXPECT_THAT(page, Not(HasSubstr("<img")));
  EXPECT_THAT(page, Not(HasSubstr("@import")));
  EXPECT_THAT(page, HasSubstr("Redistributions in binary form"));
  EXPECT_EQ(element_text(page, "explanation"), "{}");
}

TEST(Page, says_what_is_missing_in_a_program_without_d3) {
  PageAssets assets = with_library();
  assets.library = "";
  try {
    page_document({"a", "b", "{\n}\n", ""}, assets);
    FAIL() << "a page without D3";
  } catch (const SystemError& error) {
    EXPECT_THAT(error.what(), HasSubstr("node-d3"));
  }
}

}  // namespace
}  // namespace isthmus::report
