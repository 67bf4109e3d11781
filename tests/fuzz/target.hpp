#pragma once
// What every fuzz target shares. A target is one file, <name>_target.cpp, that defines
// LLVMFuzzerTestOneInput: it feeds the bytes to one parser and then uses what came out. Preset fuzz drives it
// with libFuzzer; the others replay its corpus (replay.cpp).
// Invariant: whatever the bytes are, nothing but InputError leaves the parser, its message is one printable
// line, and what was read keeps the promises of its header. Anything else ends the process.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "model/input.hpp"
#include "model/inventory.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace isthmus::fuzz {

std::string_view text_of(const std::uint8_t* data, std::size_t size);

/// Calls `read` and swallows its InputError, after a look at the message.
void only_input_errors(const std::function<void()>& read);

/// A folder of this value alone, in memory where the system has /dev/shm; it goes with the value.
class PrivateFolder {
 public:
  PrivateFolder();
  ~PrivateFolder();
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;

  std::filesystem::path write(std::string_view name, std::string_view content) const;
  /// The config.json of a model with two layers, eight experts and four heads.
  std::filesystem::path write_small_model() const;

 private:
  std::filesystem::path path_;
};

/// Totals and refit tensors of an inventory that was accepted: the refit moves exactly the payload.
void use(const Inventory& inventory);

/// All rules on what was read; on small machines also that the valid inputs are those that resolve.
void use(const Input& input);

}  // namespace isthmus::fuzz
