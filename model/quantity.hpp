#pragma once
// Quantities as people write them, with their unit: "400 Gbit/s", "50 GB/s", "1.7 GB", "2 GiB", "25 us".
// A rate counts one direction. Decimal prefixes are powers of 1000 (GB), binary ones of 1024 (GiB); bit and
// byte are told apart by "bit" and "B". The value is exact; one that is no whole number of bytes, bytes per
// second or picoseconds is rounded to the nearest ("1.3 GiB").
// Invariant: a quantity of the wrong kind is refused ("450 GB" is no rate), never guessed.

#include <optional>
#include <string>
#include <string_view>

#include "model/units.hpp"

namespace isthmus {

/// What the text must be, for messages: "found '450 GB'; allowed: a rate above zero with its unit, such as
/// ...".
inline constexpr std::string_view rate_form =
    "a rate above zero with its unit, such as 400 Gbit/s or 50 GB/s";
inline constexpr std::string_view size_form = "a size above zero with its unit, such as 1.7 GB or 2 GiB";
inline constexpr std::string_view time_form = "a time with its unit, such as 25 us or 0.2 ms";

/// nullopt when the text is not exactly one positive quantity of that kind. Digits, at most one point, no
/// sign and no exponent; the unit follows with or without space.
std::optional<Bandwidth> parse_bandwidth(std::string_view text);
std::optional<Bytes> parse_bytes(std::string_view text);
std::optional<Duration> parse_duration(std::string_view text);  // 0 allowed

/// Exact texts that parse back to the same value: "50 GB/s", "1700 MB", "2 GiB", "25 us".
std::string to_string(Bandwidth bandwidth);
std::string to_string(Bytes bytes);
std::string to_string(Duration duration);

}  // namespace isthmus
