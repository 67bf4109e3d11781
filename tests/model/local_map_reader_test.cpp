// Local maps (model/local_map_reader.cpp): files, folders, and what cannot be read.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/refit_info.hpp"
#include "tests/support/refit_info_generator.hpp"
#include "tests/support/temporary_folder.hpp"

namespace isthmus {
namespace {

using test::OrderedJson;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

OrderedJson sample() { return test::make_refit_info({})["local_maps"]; }

LocalMaps parsed(const OrderedJson& maps) {
  LocalMaps local;
  parse_local_maps(maps.dump(1), "maps.json", local);
  return local;
}

std::string message(const OrderedJson& maps) {
  try {
    parsed(maps);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(LocalMaps, say_which_box_of_a_tensor_lies_where_in_a_buffer) {
  const LocalMaps local = parsed(sample());
  ASSERT_EQ(local.maps.size(), 2U);
  const LocalMap& map = local.maps[1];
  EXPECT_EQ(map.side, Side::generate);
  EXPECT_EQ(map.rank, 0);
  ASSERT_EQ(map.entries.size(), 3U);
  ASSERT_EQ(map.bases.size(), 2U);  // gate and up share one
  const LocalEntry& up = map.entries[1];
  EXPECT_EQ(up.tensor, "model.layers.0.mlp.up_proj.weight");
  EXPECT_EQ(to_string(up.before), "[0:8, 0:3]");
  EXPECT_EQ(to_string(up.after), "[8:16, 0:3]");
  EXPECT_EQ(map.bases[up.base].name, "model.layers.0.mlp.gate_up_proj.weight");
  EXPECT_THAT(map.bases[up.base].strides, ElementsAre(3, 1));
  EXPECT_EQ(map.at(1).key, "1.entries.1");
  EXPECT_EQ(map.at(1).line, up.line);
}

TEST(LocalMaps, strides_follow_from_the_shape_where_none_are_given) {
  OrderedJson maps = sample();
  for (OrderedJson& entry : maps[1]["entries"]) entry.erase("base_strides");
  EXPECT_EQ(parsed(maps).maps[1].bases, parsed(sample()).maps[1].bases);
}

TEST(LocalMaps, come_from_a_file_a_list_or_a_folder) {
  const TemporaryFolder folder;
  const OrderedJson maps = sample();
  const auto count = [](const std::filesystem::path& path) {
    LocalMaps local;
    read_local_maps(path, local);
    return local.maps.size();
  };
  EXPECT_EQ(count(folder.write("list.json", maps.dump())), 2U);
  EXPECT_EQ(count(folder.write("wrapped.json", OrderedJson{{"local_maps", maps}}.dump())), 2U);
  EXPECT_EQ(count(folder.write("one.json", maps[0].dump())), 1U);
  folder.write("ranks/train-0.json", maps[0].dump());
  folder.write("ranks/generate-0.json", maps[1].dump());
  folder.write("ranks/notes.txt", "not read");
  EXPECT_EQ(count(folder.path() / "ranks"), 2U);
  std::filesystem::create_directory(folder.path() / "empty");
  EXPECT_THROW(count(folder.path() / "empty"), InputError);
  EXPECT_THROW(count(folder.path() / "none.json"), InputError);
}

struct Bad {
  void (*change)(OrderedJson& map);
  std::string says;
};

TEST(LocalMaps, that_cannot_be_read_name_file_line_and_key) {
  const std::vector<Bad> bad{
      {[](OrderedJson& m) { m["side"] = "both"; }, "1.side: found 'both'; allowed: train or generate"},
      {[](OrderedJson& m) { m["rank"] = -1; }, "1.rank: found -1"},
      {[](OrderedJson& m) { m["entry"] = 1; }, "1.entry: found an unknown key; allowed: entries"},
      {[](OrderedJson& m) { m["entries"][0]["extra"] = 1; }, "1.entries.0.extra: found an unknown key"},
      {[](OrderedJson& m) { m["entries"][0].erase("after"); }, "1.entries.0.after: found nothing"},
      {[](OrderedJson& m) {
         m["entries"][0]["before"][0] = {3, 1};
       },
       "found [3, 1]"},
      {[](OrderedJson& m) { m["entries"][0]["before"] = OrderedJson::array(); }, "found no dimension"},
      {[](OrderedJson& m) { m["entries"][0]["after"][0][1] = std::int64_t{1} << 62; }, "entries.0.after.0.1"},
      {[](OrderedJson& m) { m["entries"][0]["base_strides"] = {1}; }, "one per dimension of base_shape"},
      {[](OrderedJson& m) {
         m["entries"][0]["base_strides"] = {std::int64_t{1} << 58, 1};
       },
       "2^60"},
      {[](OrderedJson& m) {
         m["entries"][0]["base_shape"] = {1 << 30, 1 << 30, 4};
       },
       "2^60"},
      {[](OrderedJson& m) {
         m["entries"][0]["scale"] = {{"size", 1}};
       },
       "entries.0.scale.size"},
      {[](OrderedJson& m) { m["ties"] = {1}; }, "1.ties: found a list"},
  };
  for (const Bad& fault : bad) {
    OrderedJson maps = sample();
    fault.change(maps[1]);
    EXPECT_THAT(message(maps), HasSubstr(fault.says));
    EXPECT_THAT(message(maps), HasSubstr("maps.json:"));
  }
}

}  // namespace
}  // namespace isthmus
