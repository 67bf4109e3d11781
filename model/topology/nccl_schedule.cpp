#include "model/topology/nccl_schedule.hpp"

#include <bit>
#include <numeric>

#include <fmt/format.h>

#include "model/error.hpp"

namespace isthmus {

std::uint32_t schedule_group(std::span<const std::uint32_t> ranks_per_domain, const NcclSettings& settings) {
  if (ranks_per_domain.size() == 1) return ranks_per_domain.front();
  std::uint32_t group = settings.schedule_group_size;
  for (const std::uint32_t ranks : ranks_per_domain) {
    if (ranks % group != 0) group = std::gcd(group, ranks);  // also where ranks < group
  }
  return group;
}

std::vector<std::uint32_t> group_deltas(std::uint32_t groups) {
  const std::uint32_t rounded = std::bit_ceil(groups);
  std::vector<std::uint32_t> deltas;
  std::uint32_t delta = 0;
  for (std::uint32_t i = 0; i < rounded; ++i) {
    if (delta < groups) deltas.push_back(delta);
    delta = (delta + i + 1) % rounded;
  }
  return deltas;
}

std::vector<NcclRound> peer_rounds(std::uint32_t position, std::uint32_t ranks, std::uint32_t group) {
  ISTHMUS_ASSERT(group > 0 && ranks % group == 0, "{} ranks in groups of {}", ranks, group);
  const std::uint32_t groups = ranks / group, own = position / group, place = position % group;
  std::vector<NcclRound> rounds;
  for (const std::uint32_t delta : group_deltas(groups)) {
    const std::uint32_t after = (own + delta) % groups, before = (own + groups - delta) % groups;
    for (std::uint32_t step = 0; step < group; ++step) {
      rounds.push_back(
          {after * group + (place + step) % group, before * group + (place + group - step) % group});
    }
  }
  return rounds;
}

std::uint32_t base_channel(std::uint32_t round, const NcclChannelRule& rule) {
  const std::uint32_t number =
      rule.domains > 1 ? round / rule.group * ((rule.group + 7) / 8) + round % rule.group / 8 : round;
  const auto bits = static_cast<std::uint32_t>(std::countr_zero(rule.total_channels));
  std::uint32_t base = 0;
  for (std::uint32_t bit = 0; bit < bits; ++bit) base |= ((number >> bit) & 1u) << (bits - 1 - bit);
  return base;
}

std::uint32_t part_channel(std::uint32_t base, std::uint32_t part, const NcclChannelRule& rule) {
  return (base + part) % rule.total_channels;
}

}  // namespace isthmus
