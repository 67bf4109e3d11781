#include "model/quantity.hpp"

#include <array>
#include <limits>
#include <span>

#include <fmt/format.h>

namespace isthmus {
namespace {

/// A unit as numerator / denominator of the quantity's own one (B, B/s, ps).
struct Unit {
  std::string_view name;
  std::int64_t numerator = 1;
  std::int64_t denominator = 1;
};

constexpr std::int64_t kilo = 1'000, mega = 1'000'000, giga = 1'000'000'000, tera = 1'000'000'000'000;
constexpr std::int64_t kibi = std::int64_t{1} << 10, mebi = kibi << 10, gibi = mebi << 10, tebi = gibi << 10;

// Largest first: to_string takes the first unit that divides.
constexpr std::array<Unit, 5> decimal_sizes{
    {{"TB", tera}, {"GB", giga}, {"MB", mega}, {"kB", kilo}, {"B", 1}}};
constexpr std::array<Unit, 4> binary_sizes{{{"TiB", tebi}, {"GiB", gibi}, {"MiB", mebi}, {"KiB", kibi}}};
constexpr std::array<Unit, 5> byte_rates{
    {{"TB/s", tera}, {"GB/s", giga}, {"MB/s", mega}, {"kB/s", kilo}, {"B/s", 1}}};
constexpr std::array<Unit, 9> other_rates{{{"TiB/s", tebi},
                                           {"GiB/s", gibi},
                                           {"MiB/s", mebi},
                                           {"KiB/s", kibi},
                                           {"Tbit/s", tera, 8},
                                           {"Gbit/s", giga, 8},
                                           {"Mbit/s", mega, 8},
                                           {"kbit/s", kilo, 8},
                                           {"bit/s", 1, 8}}};
constexpr std::array<Unit, 5> times{{{"s", tera}, {"ms", giga}, {"us", mega}, {"ns", kilo}, {"ps", 1}}};

/// "1.75" as 175 / 100.
struct Decimal {
  std::int64_t digits = 0;
  std::int64_t scale = 1;
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Takes digits, or digits with a point among them, off the front of `text`; at most 18, so nothing
/// overflows.
std::optional<Decimal> take_decimal(std::string_view& text) {
  Decimal number;
  std::size_t taken = 0;
  int digits = 0;
  bool after_point = false;
  for (; taken < text.size(); ++taken) {
    const char c = text[taken];
    if (c == '.' && taken > 0 && !after_point) {
      after_point = true;
      continue;
    }
    if (!is_digit(c)) break;
    if (++digits > 18) return std::nullopt;
    number.digits = number.digits * 10 + (c - '0');
    if (after_point) number.scale *= 10;
  }
  if (taken == 0 || !is_digit(text[taken - 1])) return std::nullopt;
  text.remove_prefix(taken);
  return number;
}

const Unit* find_unit(std::string_view name, std::span<const Unit> units) {
  for (const Unit& unit : units) {
    if (unit.name == name) return &unit;
  }
  return nullptr;
}

/// The value of "number unit", rounded to the nearest whole; nullopt when it is none, or does not fit.
/// A number above zero that rounds to zero is refused as well.
std::optional<std::int64_t> parse(std::string_view text, std::span<const Unit> units,
                                  std::span<const Unit> more_units) {
  const std::optional<Decimal> number = take_decimal(text);
  if (!number) return std::nullopt;
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  const Unit* unit = find_unit(text, units);
  if (!unit) unit = find_unit(text, more_units);
  if (!unit) return std::nullopt;
  // At most 10^18 x 2^40: far below 2^127.
  const Int128 numerator = Int128{number->digits} * unit->numerator;
  const Int128 denominator = Int128{number->scale} * unit->denominator;
  const Int128 value = (numerator + denominator / 2) / denominator;
  if (value > std::numeric_limits<std::int64_t>::max()) return std::nullopt;
  if (value == 0 && number->digits != 0) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

std::optional<std::int64_t> parse_positive(std::string_view text, std::span<const Unit> units,
                                           std::span<const Unit> more_units) {
  const std::optional<std::int64_t> value = parse(text, units, more_units);
  return value && *value > 0 ? value : std::nullopt;
}

std::string in_largest_unit(std::int64_t value, std::span<const Unit> units) {
  for (const Unit& unit : units) {
    if (value % unit.numerator == 0) return fmt::format("{} {}", value / unit.numerator, unit.name);
  }
  return {};
}

}  // namespace

std::optional<Bandwidth> parse_bandwidth(std::string_view text) {
  const std::optional<std::int64_t> value = parse_positive(text, byte_rates, other_rates);
  return value ? std::optional(Bandwidth{*value}) : std::nullopt;
}

std::optional<Bytes> parse_bytes(std::string_view text) {
  const std::optional<std::int64_t> value = parse_positive(text, decimal_sizes, binary_sizes);
  return value ? std::optional(Bytes{*value}) : std::nullopt;
}

std::optional<Duration> parse_duration(std::string_view text) {
  const std::optional<std::int64_t> value = parse(text, times, {});
  return value ? std::optional(Duration{*value}) : std::nullopt;
}

std::string to_string(Bandwidth bandwidth) { return in_largest_unit(bandwidth.value, byte_rates); }

std::string to_string(Bytes bytes) {
  std::string decimal = in_largest_unit(bytes.value, decimal_sizes);
  std::string binary = in_largest_unit(bytes.value, binary_sizes);
  return !binary.empty() && binary.size() < decimal.size() ? binary : decimal;
}

std::string to_string(Duration duration) { return in_largest_unit(duration.value, times); }

}  // namespace isthmus
