#include "hw/judge.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace isthmus::hw {
namespace {

std::uint32_t width_of(const Layout& layout) {
  return static_cast<std::uint32_t>(element_size(layout.dtype).value);
}

/// Calls visit(position, word) for all elements, in order. The innermost dimension is counted, not divided.
template <class Visit>
void for_each_word(const ShardCode& code, Visit visit) {
  const std::uint64_t row = code.extent[3];
  for (std::uint64_t position = 0; position < code.elements; position += row) {
    const std::uint64_t id = element_id(code, position);
    for (std::uint64_t i = 0; i < row; ++i) visit(position + i, code_of_id(code, id + i * code.stride[3]));
  }
}

template <class Word, class Visit>
void for_each_as(const ShardCode& code, Visit visit) {
  for_each_word(code, [&](std::uint64_t position, std::uint64_t word) {
    visit(position * sizeof(Word), static_cast<Word>(word));
  });
}

/// Calls visit(byte offset, word) with words of the element's width.
template <class Visit>
void for_each_typed(const ShardCode& code, Visit visit) {
  switch (code.width) {
    case 1: return for_each_as<std::uint8_t>(code, visit);
    case 2: return for_each_as<std::uint16_t>(code, visit);
    case 4: return for_each_as<std::uint32_t>(code, visit);
    default: return for_each_as<std::uint64_t>(code, visit);
  }
}

std::vector<std::int64_t> element_at(const Region& box, std::uint64_t position) {
  std::vector<std::int64_t> element(box.dimensions);
  for (std::size_t d = box.dimensions; d-- > 0;) {
    const auto extent = to_size(box.end[d] - box.begin[d]);
    element[d] = box.begin[d] + static_cast<std::int64_t>(position % extent);
    position /= extent;
  }
  return element;
}

Region one_element(const std::vector<std::int64_t>& element) {
  Region region;
  region.dimensions = element.size();
  for (std::size_t d = 0; d < element.size(); ++d) {
    region.begin[d] = element[d];
    region.end[d] = element[d] + 1;
  }
  return region;
}

}  // namespace

Codes::Codes(const Program& program) : program_(program), first_id_{0} {
  const Refit& refit = program.refit();
  for (const RefitEntry& entry : refit.tensors) {
    const auto volume = to_size(whole(refit.geometries[entry.geometry].source.shape).volume());
    first_id_.push_back(first_id_.back() + volume);
  }
  for (const RefitEntry& entry : refit.tensors) {
    const std::uint32_t width = width_of(refit.geometries[entry.geometry].source);
    passes_ = std::max(passes_, code_passes(code_bits(first_id_.back(), width), width));
  }
}

ShardCode Codes::code(const Shard& shard, std::uint32_t version, std::uint32_t pass) const {
  const Layout& layout = program_.refit().geometry(shard.tensor).source;
  ShardCode code;
  code.width = width_of(layout);
  code.bits = code_bits(first_id_.back(), code.width);
  code.pass = pass % code_passes(code.bits, code.width);
  code.shift = version_shift(version);
  code.elements = to_size(shard.region.volume());
  code.first_id = first_id_[shard.tensor.index()];
  std::uint64_t stride = 1;
  for (std::size_t d = shard.region.dimensions, place = max_dimensions; d-- > 0;) {
    --place;
    code.extent[place] = to_size(shard.region.end[d] - shard.region.begin[d]);
    code.stride[place] = stride;
    code.first_id += to_size(shard.region.begin[d]) * stride;
    stride *= to_size(layout.shape[d]);
  }
  return code;
}

ShardCode Codes::source(const Shard& shard, std::uint32_t pass) const {
  return code(shard, program_.source_version(shard.tensor), pass);
}

ShardCode Codes::target(const Shard& shard, std::uint32_t pass) const {
  return code(shard, program_.plan().version, pass);
}

Mismatch Codes::mismatch(const Shard& shard, Rank rank, std::uint32_t pass, std::uint64_t position,
                         std::uint64_t found) const {
  const ShardCode code = target(shard, pass);
  Mismatch result{shard.tensor,
                  element_at(shard.region, position),
                  rank,
                  code.pass,
                  code_word(code, position),
                  found,
                  ""};
  const std::optional<ProgramStep> writer =
      program_.writer_of(shard.tensor, one_element(result.element), rank);
  const std::uint64_t all = ~std::uint64_t{0} >> (64 - 8 * code.width);
  const std::string_view meaning =
      found == (~result.expected & all) ? ", which is what was there before" : "";
  result.message =
      fmt::format("tensor {}, element ({}) on rank {}: found {:0{}x}{}; {:0{}x} should have come by {}",
                  program_.refit().tensors[shard.tensor.index()].tensor.name, fmt::join(result.element, ","),
                  rank.value, found, 2 * code.width, meaning, result.expected, 2 * code.width,
                  writer ? program_.describe(*writer) : "some step; none does");
  return result;
}

void fill(const ShardCode& code, std::byte* memory) {
  for_each_typed(
      code, [memory](std::uint64_t offset, auto word) { std::memcpy(memory + offset, &word, sizeof(word)); });
}

void poison(const ShardCode& code, std::byte* memory) {
  for_each_typed(code, [memory](std::uint64_t offset, auto word) {
    word = static_cast<decltype(word)>(~word);
    std::memcpy(memory + offset, &word, sizeof(word));
  });
}

std::size_t compare(const ShardCode& code, const std::byte* memory, std::size_t most,
                    std::vector<WrongWord>& wrong) {
  std::size_t count = 0;
  for_each_typed(code, [&](std::uint64_t offset, auto word) {
    auto found = word;
    std::memcpy(&found, memory + offset, sizeof(found));
    if (found == word) return;
    if (count++ < most) wrong.push_back({offset / sizeof(word), found});
  });
  return count;
}

}  // namespace isthmus::hw
