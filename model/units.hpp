#pragma once
// Quantities and ids. Every quantity is a distinct 64-bit integer type, so that bytes, times and rates never
// mix:
//   Bytes      bytes
//   Duration   picoseconds (10^-12 s); a Duration is not a point in time
//   Instant    picoseconds since the start of a timeline
//   Bandwidth  bytes per second, per direction (1 GB/s = 10^9 B/s; never 2^30)
// Invariant: bytes / bandwidth rounds up, so a message never beats its wire.
// Ids (Rank, GpuId, ...) are distinct types as well; they index dense arrays.

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace isthmus {

/// 128-bit integers carry products such as bytes x picoseconds per second (up to 10^38) without rounding.
__extension__ typedef unsigned __int128 Uint128;
__extension__ typedef __int128 Int128;

template <class Tag>
struct Quantity {
  std::int64_t value = 0;

  friend constexpr auto operator<=>(Quantity, Quantity) = default;
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return {a.value + b.value}; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return {a.value - b.value}; }
  friend constexpr Quantity operator*(Quantity a, std::int64_t n) { return {a.value * n}; }
  constexpr Quantity& operator+=(Quantity other) { return value += other.value, *this; }
  constexpr Quantity& operator-=(Quantity other) { return value -= other.value, *this; }
};

using Bytes = Quantity<struct BytesTag>;
using Duration = Quantity<struct DurationTag>;
using Bandwidth = Quantity<struct BandwidthTag>;

inline constexpr std::int64_t picoseconds_per_second = 1'000'000'000'000;

struct Instant {
  std::int64_t value = 0;  // picoseconds
  friend constexpr auto operator<=>(Instant, Instant) = default;
  friend constexpr Instant operator+(Instant t, Duration d) { return {t.value + d.value}; }
  friend constexpr Duration operator-(Instant a, Instant b) { return {a.value - b.value}; }
};

/// Time to move `bytes` at `bandwidth`, rounded up to the next picosecond. Requires bandwidth > 0.
constexpr Duration operator/(Bytes bytes, Bandwidth bandwidth) {
  const Int128 scaled = Int128{bytes.value} * picoseconds_per_second;
  return {static_cast<std::int64_t>((scaled + bandwidth.value - 1) / bandwidth.value)};
}

/// Bytes that fit into `duration` at `bandwidth`, rounded up.
constexpr Bytes operator*(Bandwidth bandwidth, Duration duration) {
  const Int128 scaled = Int128{bandwidth.value} * duration.value;
  return {static_cast<std::int64_t>((scaled + picoseconds_per_second - 1) / picoseconds_per_second)};
}

constexpr double seconds(Duration d) { return static_cast<double>(d.value) * 1e-12; }
constexpr double seconds(Instant t) { return static_cast<double>(t.value) * 1e-12; }
constexpr double gigabytes(Bytes b) { return static_cast<double>(b.value) * 1e-9; }
constexpr Bandwidth gigabytes_per_second(double gb) { return {static_cast<std::int64_t>(gb * 1e9 + 0.5)}; }

template <class Tag>
struct Id {
  std::uint32_t value = 0;
  friend constexpr auto operator<=>(Id, Id) = default;
  constexpr std::size_t index() const { return value; }
};

using Rank = Id<struct RankTag>;          // a process: training ranks first, then generation ranks
using GpuId = Id<struct GpuTag>;          // a GPU of the fabric
using HostId = Id<struct HostTag>;        // one machine (operating system)
using DomainId = Id<struct DomainTag>;    // an NVLink domain
using LinkId = Id<struct LinkTag>;        // a directed capacity of the fabric (see model/fabric.hpp)
using TensorId = Id<struct TensorTag>;    // a tensor of the refit, in transfer order
using PatternId = Id<struct PatternTag>;  // a pattern of a plan
using LaneId = Id<struct LaneTag>;        // a lane of a plan: communicator x stream

/// Converts any integer to a dense index type; the caller states by the call that it is not negative.
template <class T>
constexpr std::size_t to_size(T n) {
  return static_cast<std::size_t>(n);
}

}  // namespace isthmus

template <class Tag>
struct std::hash<isthmus::Id<Tag>> {
  std::size_t operator()(isthmus::Id<Tag> id) const noexcept { return id.value; }
};
