// The reader under scenarios and calibrations, judged through scenarios: files, overrides, places of keys.

#include "model/yaml.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/support/scenario_generator.hpp"
#include "tests/support/scenario_texts.hpp"

namespace isthmus::yaml_test {
namespace {

TEST(ScenarioFile, what_is_no_file_or_no_yaml_is_one_line) {
  EXPECT_THROW(read_scenario("no/such/file.yaml"), InputError);
  EXPECT_THROW(read_scenario("."), InputError);
  EXPECT_EQ(fault_of(""), "s.yaml: found an empty file; allowed: a mapping of keys");
  EXPECT_EQ(fault_of("# only a comment\n"), "s.yaml: found an empty file; allowed: a mapping of keys");
  EXPECT_EQ(fault_of("\njust text\n"), "s.yaml:2: found no mapping; allowed: a mapping of keys");
  EXPECT_EQ(fault_of("a: b\nc: [1\nd: e\n").substr(0, 37), "s.yaml:3: found text that is not YAML");
  EXPECT_EQ(fault_of("a: b\nc: \x80\n"),
            "s.yaml:2: found bytes that are not text; allowed: YAML in UTF-8 without control characters");
  EXPECT_EQ(fault_of(std::string("a: b\n\n\0", 7)).substr(0, 37), "s.yaml:3: found bytes that are not te");
  EXPECT_EQ(fault_of("\xFF\xFE"
                     "a")
                .substr(0, 37),
            "s.yaml:1: found bytes that are not te");
}

TEST(ScenarioFile, an_unclosed_quote_or_bracket_is_a_fault) {
  for (const char* text :
       {"a: 'b\n", "a: \"b\n\n  ", "a: 'b\nc: d\n", "a: [b\n", "a: {b: c\n", "a: [[[[[[[[b"}) {
    EXPECT_NE(fault_of(text).find("found "), std::string::npos) << text;
    EXPECT_EQ(fault_of(text).find("unknown key"), std::string::npos) << text;
  }
}

TEST(ScenarioFile, yaml_features_that_hide_content_are_faults) {
  EXPECT_EQ(fault_of("a: &x 1\nb: *x\n"),
            "s.yaml:1: a: found an anchor or alias; allowed: every value written out");
  EXPECT_EQ(fault_of("name: !!str x\n").substr(0, 28), "s.yaml:1: name: found the ta");
  EXPECT_EQ(fault_of("name: x\n---\nname: y\n"), "s.yaml:2: found a second document; allowed: one document");
  EXPECT_EQ(
      fault_of("? [a]\n: b\n"),
      "s.yaml:1: found a list or mapping as key (or a bracket that is not closed); allowed: a text as key");
  EXPECT_EQ(fault_of("~: b\n"), "s.yaml:1: found no key; allowed: a key");
}

TEST(ScenarioFile, absurd_sizes_are_refused_before_they_cost_anything) {
  EXPECT_EQ(fault_of("a: " + std::string(5'000'000, 'x')),
            "s.yaml:1: found more than 4 MiB; allowed: at most 4 MiB");
  EXPECT_NE(fault_of("a: " + std::string(100, '[') + std::string(100, ']'))
                .find("found deep nesting; allowed: at most 32 levels"),
            std::string::npos);
  std::string many = "a: [";
  for (int i = 0; i < 300'000; ++i) many += "1,";
  EXPECT_NE(fault_of(many + "1]").find("found more than 262144 values"), std::string::npos);
}

TEST(ScenarioFile, messages_stay_on_one_line_whatever_the_input_holds) {
  const std::string message = fault_of("\"a\\nb\\x1b[31m\": 1\n");
  EXPECT_EQ(message.substr(0, 37), "s.yaml:1: a?b?[31m: found an unknown ");
  EXPECT_LT(fault_of("name: small\n" + std::string(100'000, 'k') + ": 1\n").size(), 400U);
}

TEST(ScenarioOverride, replaces_and_adds_values) {
  EXPECT_EQ(parsed(whole_refit, {{"train.pp", "4"}}).train->pp, 4);
  EXPECT_EQ(parsed(whole_refit, {{"refit.streams", "16"}}).refit.streams, 16);
  EXPECT_EQ(parsed(bare_tensor, {{"refit.streams", "16"}}).refit.streams, 16);
  EXPECT_EQ(parsed(whole_refit, {{"ranks.generate.hosts", "[2-3]"}}).generate_ranks->hosts,
            (std::vector<int>{2, 3}));
  EXPECT_EQ(parsed(whole_refit, {{"published.1.seconds", "3"}}).published[1].seconds_low, 3);
  EXPECT_EQ(parsed(whole_refit, {{"train.pp", "4"}, {"train.pp", "8"}}).train->pp, 8);
  EXPECT_EQ(parsed(whole_refit, {{"refit", "{bulk: all}"}}).refit.bulk.kind, BulkRule::Kind::all);
}

TEST(ScenarioOverride, faults_name_the_override) {
  EXPECT_EQ(fault_of(whole_refit, {{"train.pp", "0"}}),
            "--set train.pp=0: train.pp: found '0'; allowed: a whole number from 1 to 1048576");
  EXPECT_EQ(fault_of(whole_refit, {{"train.pq", "1"}}).substr(0, 64),
            "--set train.pq=1: train.pq: found an unknown key; allowed: pp, t");
  EXPECT_EQ(fault_of(whole_refit, {{"train.pp.x", "1"}}),
            "--set train.pp.x=1: train.pp.x: found 'x' below a plain value; allowed: a key below a mapping "
            "or list");
  EXPECT_EQ(fault_of(whole_refit, {{"published.2.id", "x"}}),
            "--set published.2.id=x: published.2.id: found '2' in a list of 2 items; allowed: the number of "
            "an item, from 0");
  EXPECT_EQ(fault_of(whole_refit, {{"train.pp", "{a: [1}"}}).substr(0, 72),
            "--set train.pp={a: [1}: train.pp: found text that is not YAML (illegal f");
  EXPECT_EQ(fault_of(whole_refit, {{"train.pp", ""}}).substr(0, 47),
            "--set train.pp=: train.pp: found nothing; allow");
  EXPECT_EQ(fault_of(whole_refit, {{"train..pp", "1"}}).substr(0, 50),
            "--set train..pp=1: train..pp: found no dotted key;");
  EXPECT_EQ(fault_of(whole_refit, {{"a.b", "1"}}).substr(0, 39), "--set a.b=1: a: found an unknown key; a");
}

TEST(ScenarioOverride, what_is_below_an_override_keeps_its_place) {
  const Scenario scenario = parsed(whole_refit, {{"train.pp", "4"}});
  EXPECT_EQ(scenario.at("train.pp").file, "--set train.pp=4");
  EXPECT_EQ(scenario.at("train.ep").file, "s.yaml");
  EXPECT_EQ(scenario.at("train.ep").line, 4);
}

TEST(ScenarioLocations, name_the_key_its_parent_or_the_file) {
  const Scenario scenario = parsed(whole_refit);
  EXPECT_EQ(scenario.at("ranks.generate.hosts").line, 9);
  EXPECT_EQ(scenario.at("published.1.id").line, 14);
  EXPECT_EQ(scenario.at("train.etp").line, 4);
  EXPECT_EQ(scenario.at("train.etp").key, "train.etp");
  EXPECT_EQ(scenario.at("calibration").line, 0);
  EXPECT_EQ(scenario.at("calibration").file, "s.yaml");
}

RC_GTEST_PROP(ScenarioFile, damaged_text_is_read_or_refused_as_bad_input_in_one_line, ()) {
  std::string text = to_yaml(*arbitrary_scenario());
  const auto hits = *rc::gen::inRange<int>(1, 5);
  const std::string marks = "[]{}:,-#&*!|>'\"%@`?~ \n\t0aZ\x01\x80<";
  for (int i = 0; i < hits; ++i) {
    const auto at = *rc::gen::inRange<std::size_t>(0, text.size());
    const char mark = *rc::gen::elementOf(marks);
    if (*rc::gen::arbitrary<bool>()) {
      text[at] = mark;
    } else {
      text.insert(at, 1, mark);
    }
  }
  RC_ASSERT(fault_of(text).find('\n') ==
            std::string::npos);  // anything else than InputError fails the property
}

RC_GTEST_PROP(ScenarioOverride, any_key_and_value_is_read_or_refused_as_bad_input, ()) {
  const std::string key =
      *rc::gen::container<std::string>(rc::gen::elementOf(std::string("trainpgus.0:[ \n\x80")));
  const std::string value =
      *rc::gen::container<std::string>(rc::gen::elementOf(std::string("01a[]{}:,-#&*!'\" \n\x80")));
  RC_ASSERT(fault_of(whole_refit, {{key, value}}).find('\n') == std::string::npos);
}

}  // namespace
}  // namespace isthmus::yaml_test
