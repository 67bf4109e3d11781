#include "model/topology/nccl_xml_document.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "model/topology/importers.hpp"

namespace isthmus::nccl_xml_document_test {
namespace {

using ::testing::HasSubstr;

std::string message(std::string_view text, std::size_t max_elements = 100) {
  try {
    const NcclXmlDocument document(text, "a.xml", {"system", max_elements});
    return "accepted";
  } catch (const InputError& error) {
    return error.what();
  }
}

std::string nested(std::size_t depth) {
  std::string text;
  for (std::size_t i = 1; i < depth; ++i) text += "<a>";
  text = "<system>" + text;
  for (std::size_t i = 1; i < depth; ++i) text += "</a>";
  return text + "</system>";
}

RC_GTEST_PROP(NcclXmlDocument, whole_numbers_are_read_as_c_reads_them, (std::int64_t number)) {
  RC_PRE(number != std::numeric_limits<std::int64_t>::min());
  const std::uint64_t size = static_cast<std::uint64_t>(number < 0 ? -number : number);
  const char* sign = number < 0 ? "-" : "";
  RC_ASSERT(c_integer(fmt::format("{}{}", sign, size)) == number);
  RC_ASSERT(c_integer(fmt::format("{}0x{:x}", sign, size)) == number);
  RC_ASSERT(c_integer(fmt::format("{}0{:o}", sign, size)) == number);
}

TEST(NcclXmlDocument, what_is_no_whole_number_is_none) {
  for (const char* text : {"", " 1", "1 ", "1,5", "1.0", "1e3", "0x", "0x-1", "08", "--1", "+-1", "1h", "x",
                           "9223372036854775808", "0x10000000000000000"})
    EXPECT_EQ(c_integer(text), std::nullopt) << text;
  EXPECT_EQ(c_integer("010"), 8);
  EXPECT_EQ(c_integer("+7"), 7);
  EXPECT_EQ(hexadecimal_number("10"), 16U);
  EXPECT_EQ(hexadecimal_number("0xffffffffffffffff"), 0xffffffffffffffffU);
  EXPECT_EQ(hexadecimal_number("0x1ffffffffffffffff"), std::nullopt);
  EXPECT_EQ(hexadecimal_number("-1"), std::nullopt);
}

TEST(NcclXmlDocument, numbers_are_refused_with_line_and_attribute) {
  const NcclXmlDocument document("\n<system a='12x'\n  b='1,5' c='2e3'\n  d='0.25' e='' f='nan'/>", "a.xml",
                                 {"system", 1});
  const auto message_of = [&](const char* name, bool decimal) {
    try {
      if (decimal)
        document.decimal(document.root(), name, 100);
      else
        document.integer(document.root(), name, 0, 20);
      return std::string("accepted");
    } catch (const InputError& error) {
      return std::string(error.what());
    }
  };
  EXPECT_EQ(message_of("a", false), "a.xml:2: system.a: found '12x'; allowed: a whole number from 0 to 20");
  EXPECT_THAT(message_of("b", true), HasSubstr("a.xml:3: system.b: found '1,5'"));
  EXPECT_THAT(message_of("c", true), HasSubstr("a.xml:3: system.c: found '2e3'"));
  EXPECT_THAT(message_of("f", true), HasSubstr("a.xml:4: system.f"));
  EXPECT_EQ(document.decimal(document.root(), "d", 100), 0.25);
  EXPECT_EQ(document.integer(document.root(), "e", 0, 1), std::nullopt);
  EXPECT_EQ(document.integer(document.root(), "missing", 0, 1), std::nullopt);
}

TEST(NcclXmlDocument, comments_declarations_and_blank_lines_are_passed_over) {
  EXPECT_EQ(
      message("\n<?xml version='1.0'?><!-- a --><system><!-- b --><a/> <!-- c --></system><!-- d -->\n"),
      "accepted");
}

TEST(NcclXmlDocument, entities_are_never_expanded) {
  std::string bomb = "<!DOCTYPE system [<!ENTITY a0 'aaaaaaaaaa'>";
  for (int i = 1; i < 10; ++i)
    bomb += fmt::format("<!ENTITY a{} '&a{};&a{};&a{};&a{};&a{};'>", i, i - 1, i - 1, i - 1, i - 1, i - 1);
  const NcclXmlDocument document(bomb + "]><system name='&a9;&lt;'/>", "a.xml", {"system", 1});
  EXPECT_EQ(NcclXmlDocument::text(document.root(), "name"), "&a9;&lt;");
}

TEST(NcclXmlDocument, the_root_is_the_expected_one_and_alone) {
  EXPECT_EQ(message("<pci busid='1'/>"),
            "a.xml:1: found root element 'pci'; allowed: a whole file, whose "
            "root element is system");
  EXPECT_THAT(message("<system/>\n<system/>"), HasSubstr("a.xml:2: found a second root element"));
  EXPECT_THAT(message(""), HasSubstr("allowed: XML whose root is system"));
  EXPECT_THAT(message("text"), HasSubstr("allowed: XML whose root is system"));
  EXPECT_EQ(message("<system/>"), "accepted");
}

TEST(NcclXmlDocument, broken_xml_is_refused_with_its_line) {
  EXPECT_THAT(message("<system>\n<a>\n</system>"), HasSubstr("a.xml:3: found no XML"));
  EXPECT_THAT(message("<system>\n<a/>"), HasSubstr("found no XML"));
  EXPECT_THAT(message(std::string_view("<system>\n\0</system>", 18)),
              HasSubstr("a.xml:2: found a zero byte"));
  EXPECT_THAT(message("<system a='1' a='2'/>"), HasSubstr("system.a: found a second value"));
  EXPECT_THAT(message("<system a='\x01'/>"), HasSubstr("printable"));
  EXPECT_THAT(message("<system a='" + std::string(256, 'x') + "'/>"), HasSubstr("256 characters"));
  EXPECT_EQ(message("<system a='" + std::string(255, 'x') + "'/>"), "accepted");
}

TEST(NcclXmlDocument, attributes_and_elements_are_bounded) {
  std::string sixteen = "<system";
  for (int i = 0; i < 16; ++i) sixteen += fmt::format(" a{}=''", i);
  EXPECT_EQ(message(sixteen + "/>"), "accepted");
  EXPECT_THAT(message(sixteen + " b=''/>"),
              HasSubstr("system.b: found one more attribute; allowed: at most 16"));
  EXPECT_EQ(message("<system><a/><a/></system>", 3), "accepted");
  EXPECT_THAT(message("<system><a/>\n<a/></system>", 2), HasSubstr("a.xml:2: found more than 2 elements"));
}

TEST(NcclXmlDocument, depth_is_bounded_without_recursion) {
  EXPECT_EQ(message(nested(max_xml_depth)), "accepted");
  EXPECT_THAT(message(nested(max_xml_depth + 1)), HasSubstr("at most 64 levels"));
  EXPECT_THAT(message(nested(200'000), 1'000'000), HasSubstr("at most 64 levels"));
  EXPECT_THAT(message(nested(2'000'000), 10'000'000), HasSubstr("allowed: at most 524288"));
}

TEST(NcclXmlDocument, the_size_is_bounded) {
  EXPECT_THAT(message("<system/>" + std::string(max_topology_bytes, ' ')),
              HasSubstr("allowed: at most 67108864"));
  std::string attributes = "<system";
  for (int i = 0; i < 1'100'000; ++i) attributes += " a=''";
  EXPECT_THAT(message(attributes + "/>"), HasSubstr("'='"));
}

}  // namespace
}  // namespace isthmus::nccl_xml_document_test
