#include "model/refit_info_faults.hpp"

#include <chrono>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/support/refit_info_generator.hpp"
#include "tests/support/refit_info_mutants.hpp"

namespace isthmus::refit_info_faults_test {
namespace {

using test::OrderedJson;
using test::RefitInfoMutant;
using test::RefitInfoShape;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

RefitInfoProof proven(const OrderedJson& document) {
  return prove(parse_refit_info(document.dump(), "info.json"));
}

std::string text_of(const InputFault& fault) {
  return fmt::format("{}: found {}; allowed: {}; change: {}", fault.where.key, fault.found, fault.allowed,
                     fault.change);
}

std::string text_of(const std::vector<InputFault>& faults) {
  std::string text;
  for (const InputFault& fault : faults) text += text_of(fault) + "\n";
  return text;
}

/// What a buffer holds: for each element the names and indices written there.
using Content = std::map<std::string, std::vector<std::string>>;

/// All indices of a box, in row-major order.
std::vector<std::vector<std::int64_t>> indices(const OrderedJson& box) {
  std::vector<std::vector<std::int64_t>> result{{}};
  for (const OrderedJson& ends : box) {
    std::vector<std::vector<std::int64_t>> longer;
    for (const auto& index : result) {
      for (auto i = ends[0].get<std::int64_t>(); i < ends[1].get<std::int64_t>(); ++i) {
        longer.push_back(index);
        longer.back().push_back(i);
      }
    }
    result = std::move(longer);
  }
  return result;
}

/// Element by element; nullopt when a box leaves its buffer or extents differ.
std::optional<Content> content_of(const OrderedJson& document) {
  Content content;
  for (const OrderedJson& map : document["local_maps"]) {
    for (const OrderedJson& entry : map["entries"]) {
      const auto shape = entry["base_shape"].get<std::vector<std::int64_t>>();
      std::int64_t size = 1;
      for (const std::int64_t extent : shape) size *= extent;
      auto& elements = content[fmt::format("{} {} {}", map["side"].get<std::string>(), map["rank"].get<int>(),
                                           entry["base"].get<std::string>())];
      elements.resize(static_cast<std::size_t>(size));
      std::vector<std::int64_t> extents_before, extents_after;
      for (const OrderedJson& ends : entry["before"])
        extents_before.push_back(ends[1].get<std::int64_t>() - ends[0].get<std::int64_t>());
      for (const OrderedJson& ends : entry["after"])
        extents_after.push_back(ends[1].get<std::int64_t>() - ends[0].get<std::int64_t>());
      if (extents_before.size() > extents_after.size()) {
        if (extents_before.front() != 1) return std::nullopt;
        extents_before.erase(extents_before.begin());
      }
      if (extents_before != extents_after) return std::nullopt;
      const auto before = indices(entry["before"]), after = indices(entry["after"]);
      for (std::size_t i = 0; i < before.size(); ++i) {
        std::int64_t place = 0;
        for (std::size_t d = 0; d < shape.size(); ++d) {
          if (after[i][d] >= shape[d]) return std::nullopt;
          place = place * shape[d] + after[i][d];
        }
        elements[static_cast<std::size_t>(place)] +=
            fmt::format("{}({});", entry["tensor"].get<std::string>(), fmt::join(before[i], ","));
      }
    }
  }
  return content;
}

/// Names of a tensor without layers and projections that have the same shape, to be confused.
void confuse(OrderedJson& document) {
  OrderedJson& maps = document["local_maps"];
  OrderedJson& map = maps[*rc::gen::inRange<std::size_t>(0, maps.size())];
  OrderedJson& entries = map["entries"];
  if (entries.empty()) return;
  const auto pick = [&]() -> OrderedJson& {
    return entries[*rc::gen::inRange<std::size_t>(0, entries.size())];
  };
  OrderedJson& entry = pick();
  OrderedJson& other = pick();
  const auto shift = [&](const char* key, std::int64_t step, bool begin, bool end) {
    OrderedJson& ends = entry[key][*rc::gen::inRange<std::size_t>(0, entry[key].size())];
    if (begin) ends[0] = std::max<std::int64_t>(0, ends[0].get<std::int64_t>() + step);
    ends[1] = std::max(ends[0].get<std::int64_t>(), ends[1].get<std::int64_t>() + (end ? step : 0));
  };
  const std::int64_t step = *rc::gen::element<std::int64_t>(-2, -1, 1, 2);
  switch (*rc::gen::inRange(0, 7)) {
    case 0: shift("before", step, true, true); break;
    case 1: shift("after", step, true, true); break;
    case 2: shift("before", step, true, false); break;
    case 3: shift("after", step, false, true); break;
    case 4: std::swap(entry["after"], other["after"]); break;
    case 5: std::swap(entry["tensor"], other["tensor"]); break;
    default: {  // the same change on both sides of an entry
      const std::size_t last = entry["before"].size() - 1;
      for (const char* key : {"before", "after"}) {
        OrderedJson& ends = entry[key].back();
        ends[1] = std::max(ends[0].get<std::int64_t>(), ends[1].get<std::int64_t>() - (last > 0 ? 1 : 0));
      }
    }
  }
}

RC_GTEST_PROP(RefitInfoProof, right_samples_have_no_fault, ()) {
  const RefitInfoShape shape = *test::any_refit_info_shape();
  RC_ASSERT(text_of(proven(test::make_refit_info(shape)).faults) == "");
}

TEST(RefitInfoProof, each_planted_fault_is_found_and_named_and_its_twin_accepted) {
  std::map<std::string_view, int> applied, declared;
  const bool passed = rc::check([&] {
    const RefitInfoShape shape = *test::any_refit_info_shape();
    const auto seed = *rc::gen::inRange<std::size_t>(0, 1000);
    const OrderedJson sample = test::make_refit_info(shape);
    for (const RefitInfoMutant& mutant : test::refit_info_mutants()) {
      OrderedJson document = sample;
      if (!mutant.apply(document, shape, seed)) continue;
      ++applied[mutant.name];
      const std::string text = text_of(proven(document).faults);
      if (text.find(mutant.says) == std::string::npos)
        RC_FAIL(fmt::format("{} is reported as: {}", mutant.name, text));
      if (mutant.declare == nullptr || !mutant.declare(document, shape, seed)) continue;
      ++declared[mutant.name];
      const std::string twin = text_of(proven(document).faults);
      if (!twin.empty()) RC_FAIL(fmt::format("the twin of {} is reported as: {}", mutant.name, twin));
    }
  });
  EXPECT_TRUE(passed);
  for (const RefitInfoMutant& mutant : test::refit_info_mutants()) {
    EXPECT_GT(applied[mutant.name], 0) << mutant.name;
    EXPECT_TRUE(mutant.declare == nullptr || declared[mutant.name] > 0) << mutant.name;
  }
}

RC_GTEST_PROP(RefitInfoProof, agrees_with_a_count_of_all_elements, ()) {
  const RefitInfoShape shape = *test::any_refit_info_shape();
  OrderedJson document = test::make_refit_info(shape);
  const std::optional<Content> right = content_of(document);
  RC_ASSERT(right.has_value());
  for (const auto& [base, elements] : *right) {
    for (const std::string& element : elements)
      RC_ASSERT(std::count(element.begin(), element.end(), ';') == 1);
  }
  confuse(document);
  const bool same = content_of(document) == right;
  RC_TAG(same);
  const std::string faults = text_of(proven(document).faults);
  RC_LOG(faults);
  RC_ASSERT(faults.empty() == same);
}

}  // namespace
}  // namespace isthmus::refit_info_faults_test
