#pragma once
// From programs to codes (hw/code.hpp), and from wrong words to sentences: what every backend does the same
// way, whether it fills and compares on a host or on a device.
// Words on a host are little-endian, as on every device.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "hw/code.hpp"
#include "hw/executor.hpp"
#include "hw/program.hpp"

namespace isthmus::hw {

class Codes {
 public:
  explicit Codes(const Program& program);

  /// Passes that make the code injective for every tensor of the refit.
  std::uint32_t passes() const { return passes_; }
  /// What a source shard holds in a pass, and what a target shard is to hold. Any pass number will do: it
  /// counts modulo the passes of the tensor's width.
  ShardCode source(const Shard& shard, std::uint32_t pass) const;
  ShardCode target(const Shard& shard, std::uint32_t pass) const;

  /// The mismatch of the element at a row-major position of a rank's target shard.
  Mismatch mismatch(const Shard& shard, Rank rank, std::uint32_t pass, std::uint64_t position,
                    std::uint64_t found) const;

 private:
  ShardCode code(const Shard& shard, std::uint32_t version, std::uint32_t pass) const;

  const Program& program_;
  std::vector<std::uint64_t> first_id_;  // by tensor; one more: the number of all elements
  std::uint32_t passes_ = 1;
};

/// An element whose word is wrong.
struct WrongWord {
  std::uint64_t position = 0, found = 0;
};

/// Host memory of code.elements x code.width bytes.
void fill(const ShardCode& code, std::byte* memory);
void poison(const ShardCode& code, std::byte* memory);
/// Returns how many elements are wrong, and appends the first `most` of them.
std::size_t compare(const ShardCode& code, const std::byte* memory, std::size_t most,
                    std::vector<WrongWord>& wrong);

}  // namespace isthmus::hw
