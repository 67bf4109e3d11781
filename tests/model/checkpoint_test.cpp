#include "model/checkpoint.hpp"

#include <unistd.h>

#include <fstream>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <nlohmann/json.hpp>

#include "model/error.hpp"
#include "tests/model/families/dense_case.hpp"

namespace isthmus {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::dense_case_config;

class Checkpoint : public ::testing::Test {
 protected:
  Checkpoint() { fs::create_directories(folder / "model"); }
  ~Checkpoint() override { fs::remove_all(folder); }

  fs::path write(const std::string& name, const std::string& text) const {
    std::ofstream(folder / "model" / name, std::ios::binary) << text;
    return folder / "model" / name;
  }

  fs::path folder = fs::temp_directory_path() / ("isthmus-checkpoint-" + std::to_string(getpid()));
};

std::string length_bytes(std::uint64_t length) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(length >> (8 * i) & 0xFFU);
  return bytes;
}

std::string with_header(const std::string& header, std::size_t data_bytes) {
  return length_bytes(header.size()) + header + std::string(data_bytes, '\0');
}

// A small dense model's tensors: name -> shape and dtype.
json model_tensors() {
  json tensors;
  const Inventory inventory = testing::read_config(dense_case_config("qwen3"));
  for (const TensorPattern& pattern : inventory.patterns) {
    for (const int layer : pattern.layers.empty() ? std::vector<int>{-1} : pattern.layers) {
      std::string name = pattern.name;
      if (layer >= 0) name.replace(name.find("{l}"), 3, std::to_string(layer));
      tensors[name] = {{"shape", pattern.shape}, {"dtype", "BF16"}};
    }
  }
  return tensors;
}

std::string safetensors(json tensors) {
  std::size_t end = 0;
  for (auto& [name, tensor] : tensors.items()) {
    std::size_t bytes = 2;
    for (const std::size_t extent : tensor["shape"]) bytes *= extent;
    tensor["data_offsets"] = {end, end + bytes};
    end += bytes;
  }
  tensors["__metadata__"] = {{"format", "pt"}};
  return with_header(tensors.dump(), end);
}

std::string refusal(const fs::path& path) {
  try {
    read_inventory(path);
    return "accepted";
  } catch (const InputError& error) {
    return error.what();
  }
}

std::vector<TensorPattern> patterns(Inventory inventory) {
  for (TensorPattern& pattern : inventory.patterns) pattern.key_value_heads = 0;
  std::sort(inventory.patterns.begin(), inventory.patterns.end(),
            [](const TensorPattern& a, const TensorPattern& b) { return a.name < b.name; });
  return inventory.patterns;
}

std::vector<TensorPattern> expected_patterns() {
  return patterns(testing::read_config(dense_case_config("qwen3")));
}

TEST_F(Checkpoint, every_form_gives_the_inventory_of_the_configuration) {
  const json tensors = model_tensors();
  const fs::path manifest = write("listed.json", tensors.dump());
  EXPECT_EQ(patterns(read_manifest(manifest)), expected_patterns());
  EXPECT_EQ(patterns(read_inventory(manifest)), expected_patterns());
  EXPECT_EQ(read_inventory(manifest).model, "listed");
  const fs::path config = write("config.json", dense_case_config("qwen3").dump());
  EXPECT_EQ(patterns(read_inventory(config)), expected_patterns());
  EXPECT_EQ(read_inventory(folder / "model").architecture, "qwen3");  // no tensors beside it yet
  const fs::path file = write("model.safetensors", safetensors(tensors));
  for (const fs::path& path : {file, folder / "model", folder / "model" / ""}) {
    EXPECT_EQ(patterns(read_inventory(path)), expected_patterns()) << path;
    EXPECT_EQ(read_inventory(path).model, "model") << path;
    EXPECT_EQ(read_inventory(path).layers, 2) << path;
  }
}

TEST_F(Checkpoint, shards_are_joined_with_and_without_an_index) {
  std::vector<json> shards(3, json::object());
  json index;
  std::size_t next = 0;
  const json tensors = model_tensors();
  for (const auto& [name, tensor] : tensors.items()) {
    shards[next % 3][name] = tensor;
    index["weight_map"][name] = "model-" + std::to_string(next++ % 3) + ".safetensors";
  }
  for (std::size_t i = 0; i < 3; ++i) {
    write("model-" + std::to_string(i) + ".safetensors", safetensors(shards[i]));
  }
  EXPECT_EQ(patterns(read_checkpoint(folder / "model")), expected_patterns());
  const fs::path path = write("model.safetensors.index.json", index.dump());
  write("consolidated.safetensors", "not named by the index");
  EXPECT_EQ(patterns(read_checkpoint(folder / "model")), expected_patterns());
  EXPECT_EQ(patterns(read_checkpoint(path)), expected_patterns());
  EXPECT_EQ(patterns(read_inventory(path)), expected_patterns());
}

TEST_F(Checkpoint, an_index_that_does_not_fit_its_shards_is_refused) {
  write("a.safetensors", safetensors({{"x", {{"shape", {2}}, {"dtype", "BF16"}}}}));
  const auto refused = [&](const json& map, const std::string& message) {
    const fs::path path = write("model.safetensors.index.json", json({{"weight_map", map}}).dump());
    EXPECT_NE(refusal(path).find(message), std::string::npos) << refusal(path);
  };
  refused({{"x", "a.safetensors"}, {"y", "a.safetensors"}},
          "y: the index puts the tensor here, the shard lacks it");
  refused({{"w", "a.safetensors"}}, "w: the index puts the tensor here");
  refused({{"y", "a.safetensors"}}, "x: the shard holds the tensor, the index does not put it here");
  refused({{"x", "b.safetensors"}}, "cannot be read");
  refused({{"x", "../model/a.safetensors"}}, "weight_map.x: found \"../model/a.safetensors\"");
  refused({{"x", "/etc/passwd"}}, "weight_map.x");
  refused({{"x", 3}}, "weight_map.x: found 3");
  refused(json::object(), "weight_map: found nothing");
  refused({1}, "weight_map: found nothing");
}

TEST_F(Checkpoint, folders_without_a_single_checkpoint_are_refused) {
  EXPECT_NE(refusal(folder / "model").find("no .safetensors files"), std::string::npos);
  EXPECT_NE(refusal(folder / "absent").find("cannot be read"), std::string::npos);
  write("a.safetensors", safetensors({{"x", {{"shape", {2}}, {"dtype", "BF16"}}}}));
  write("b.safetensors", safetensors({{"x", {{"shape", {2}}, {"dtype", "BF16"}}}}));
  EXPECT_NE(refusal(folder / "model").find("x: the tensor stands there twice"), std::string::npos);
  write("a.safetensors.index.json", "{}");
  write("b.safetensors.index.json", "{}");
  EXPECT_NE(refusal(folder / "model").find("2 index files"), std::string::npos);
}

TEST_F(Checkpoint, a_header_is_believed_only_as_far_as_the_file_bears_it_out) {
  const auto refused = [&](const std::string& bytes, const std::string& message) {
    const fs::path path = write("x.safetensors", bytes);
    EXPECT_NE(refusal(path).find(message), std::string::npos) << refusal(path) << "\nshould say: " << message;
  };
  refused("", "found 0 bytes");
  refused("1234567", "found 7 bytes");
  refused(length_bytes(1), "found a header of 1 bytes; allowed: at most 0");
  refused(length_bytes(~std::uint64_t{0}) + "{}",
          "found a header of 18446744073709551615 bytes; allowed: at most 2");
  refused("version https://git-lfs.github.com/spec/v1\n", "a git-lfs pointer");
  refused(with_header("{", 0), "not JSON");
  refused(with_header("[]", 0), "found a list of 0");
  refused(with_header("{}", 0), "found no tensors");
  refused(with_header("{}", 5), "the end of the file: found bytes 0 to 5 belong to none");
  refused(with_header(R"({"a":{"dtype":"F16","shape":[2],"data_offsets":[0,4]},"a":{}})", 4),
          "a: the key stands twice");

  const auto one = [](const std::string& entry) { return with_header("{\"a\":" + entry + "}", 8); };
  EXPECT_EQ(refusal(write("x.safetensors", one(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})"))),
            "accepted");
  refused(one(R"({"dtype":"F32","shape":[2],"data_offsets":[0,4]})"),
          "a: found 4 bytes for its shape and dtype; allowed: 8");
  refused(one(R"({"dtype":"F32","shape":[2],"data_offsets":[8,0]})"), "a: found bytes 8 to 0");
  refused(one(R"({"dtype":"F32","shape":[2],"data_offsets":[4,12]})"),
          "a: found bytes 4 to 12; allowed: an ascending");
  refused(one(R"({"dtype":"F32","shape":[1],"data_offsets":[4,8]})"), "bytes 0 to 4 belong to none");
  refused(one(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})"), "bytes 4 to 8 belong to none");
  refused(one(R"({"dtype":"F32","shape":[1000000000000000000,1000000000000000000],"data_offsets":[0,8]})"),
          "more than the file has");
  refused(one(R"({"dtype":"F32","shape":[2305843009213693952],"data_offsets":[0,8]})"),
          "a: found shape a list of 1");
  refused(one(R"({"dtype":"F32","shape":[-2],"data_offsets":[0,8]})"), "a: found shape");
  refused(one(R"({"dtype":"F32","shape":2,"data_offsets":[0,8]})"), "a: found shape 2");
  refused(one(R"({"dtype":"Q4","shape":[2],"data_offsets":[0,8]})"), "a: found dtype \"Q4\"");
  refused(one(R"({"dtype":3,"shape":[2],"data_offsets":[0,8]})"), "a: found dtype 3");
  refused(one(R"({"shape":[2],"data_offsets":[0,8]})"), "a: found no dtype");
  refused(one(R"({"dtype":"F32","shape":[2]})"), "a: found no data_offsets");
  refused(one(R"({"dtype":"F32","shape":[2],"data_offsets":[0]})"), "a: found data_offsets a list of 1");
  refused(one("7"), "a: found 7; allowed: an object");
  refused(with_header(R"({"a":{"dtype":"F16","shape":[2],"data_offsets":[0,4]},
                          "b":{"dtype":"F16","shape":[2],"data_offsets":[2,6]}})",
                      6),
          "b: found bytes 2 to 4 belong to two tensors");
}

TEST_F(Checkpoint, manifests_that_are_none_are_refused) {
  EXPECT_NE(refusal(write("a.json", "[]")).find("found a list of 0; allowed: an object"), std::string::npos);
  EXPECT_NE(refusal(write("a.json", "{}")).find("no tensors"), std::string::npos);
  EXPECT_NE(refusal(write("a.json", R"({"x": {"shape": [2]}})")).find("x: found no dtype"),
            std::string::npos);
  EXPECT_NE(refusal(write("a.json", "{\n\n!")).find(":3: not JSON"), std::string::npos);
}

TEST_F(Checkpoint, damaged_files_are_refused_or_read_but_never_harm) {
  const std::string good = safetensors(model_tensors());
  rc::check("damaged", [&] {
    std::string bytes = good;
    const auto header = static_cast<int>(8 + bytes.find("{}"));
    for (int i = *rc::gen::inRange(1, 4); i > 0; --i) {
      bytes[static_cast<std::size_t>(*rc::gen::inRange(0, std::min(header, 1'000)))] =
          *rc::gen::arbitrary<char>();
    }
    bytes.resize(bytes.size() - static_cast<std::size_t>(*rc::gen::inRange(0, 3)));
    RC_ASSERT(!refusal(write("x.safetensors", bytes)).empty());
  });
}

}  // namespace
}  // namespace isthmus
