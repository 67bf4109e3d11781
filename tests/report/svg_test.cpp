#include "report/svg.hpp"

#include <gtest/gtest.h>
#include <pugixml.hpp>

namespace isthmus::report {
namespace {

TEST(Svg, is_xml_whatever_the_words) {
  const std::string words = "<a> & \"b\"";
  SvgDrawing drawing(100, 50, words, words);
  drawing.line({0, 0}, {1, 2}, "black", 1, "5 3");
  drawing.bar({1, 2}, 3, 4, "red");
  drawing.dot({5, 6}, 2, "blue", "white", words);
  drawing.text({7, 8}, words, 9, SvgAnchor::end);
  drawing.upright({9, 10}, words + "\x01");
  pugi::xml_document read;
  ASSERT_TRUE(read.load_string(drawing.finish().c_str()));
  const pugi::xml_node svg = read.child("svg");
  EXPECT_EQ(svg.child_value("title"), words);
  EXPECT_EQ(svg.child_value("desc"), words);
  EXPECT_EQ(svg.child("circle").child_value("title"), words);
  EXPECT_EQ(svg.child("line").attribute("stroke-dasharray").as_string(), std::string("5 3"));
  EXPECT_EQ(svg.child("text").attribute("text-anchor").as_string(), std::string("end"));
  EXPECT_EQ(svg.child_value("text"), words);
}

}  // namespace
}  // namespace isthmus::report
