#include "model/topology/nccl_batches.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "model/error.hpp"

namespace isthmus {

namespace {

constexpr std::int64_t argument_bytes = 4096 - 32, batch_bytes = 16, item_bytes = 48;

// NCCL's results by ops of the batch; from six warps per op on, and at three, one of them only synchronises.
constexpr std::array<NcclWarps, nccl_batch_ops> pair_warps{
    {{10, 9}, {5, 4}, {3, 2}, {3, 2}, {2, 2}, {1, 1}, {1, 1}, {1, 1}}};

struct ChannelBatch {
  std::uint32_t number = 0, epoch = 0, span = 0;
  std::vector<std::uint32_t> rounds{};  // empty: closed, or none yet
};

bool joins(const ChannelBatch& batch, const NcclQueuedOp& op) {
  if (batch.rounds.empty() || batch.rounds.size() == nccl_batch_ops) return false;
  if (batch.epoch != op.epoch || batch.span != op.round / nccl_batch_ops) return false;
  return std::find(batch.rounds.begin(), batch.rounds.end(), op.round) == batch.rounds.end();
}

bool kernel_holds(std::int64_t batches, std::int64_t items, std::uint32_t channels_per_peer,
                  const NcclSettings& settings) {
  const std::int64_t list = (batches + channels_per_peer) * batch_bytes, work = items * item_bytes;
  if (list + work <= argument_bytes) return true;
  return list <= argument_bytes && work <= settings.work_fifo.value / 2;
}

class Group {
 public:
  Group(const NcclChannelRule& rule, std::uint32_t channels_per_peer, const NcclSettings& settings)
      : rule_(rule),
        channels_per_peer_(channels_per_peer),
        settings_(settings),
        current_(rule.total_channels),
        opened_(rule.total_channels, 0) {}

  NcclPlacedOp place(const NcclQueuedOp& op, std::uint32_t parts) {
    NcclPlacedOp placed;
    const std::uint32_t base = base_channel(op.round, rule_);
    for (std::uint32_t part = 0; part < parts; ++part) {
      placed.channels.push_back(part_channel(base, part, rule_));
    }
    std::int64_t fresh = openings(op, placed.channels);
    if (items_ > 0 && !kernel_holds(batches_ + fresh, items_ + 1, channels_per_peer_, settings_)) {
      close();
      fresh = openings(op, placed.channels);
    }
    for (const std::uint32_t channel : placed.channels) placed.batches.push_back(add(op, channel));
    placed.kernel = kernel_;
    batches_ += fresh;
    ++items_;
    return placed;
  }

 private:
  std::int64_t openings(const NcclQueuedOp& op, const std::vector<std::uint32_t>& channels) const {
    return std::count_if(channels.begin(), channels.end(),
                         [&](std::uint32_t channel) { return !joins(current_[channel], op); });
  }
  std::uint32_t add(const NcclQueuedOp& op, std::uint32_t channel) {
    ChannelBatch& batch = current_[channel];
    if (!joins(batch, op)) batch = {opened_[channel]++, op.epoch, op.round / nccl_batch_ops, {}};
    batch.rounds.push_back(op.round);
    return batch.number;
  }
  void close() {
    ++kernel_;
    batches_ = items_ = 0;
    for (ChannelBatch& batch : current_) batch.rounds.clear();
  }

  NcclChannelRule rule_;
  std::uint32_t channels_per_peer_;
  NcclSettings settings_;
  std::vector<ChannelBatch> current_;
  std::vector<std::uint32_t> opened_;  // batches per channel so far
  std::int64_t batches_ = 0, items_ = 0;
  std::uint32_t kernel_ = 0;
};

}  // namespace

std::vector<NcclQueuedOp> queue_of(std::span<const std::uint32_t> ops_per_round) {
  std::uint32_t epochs = 0;
  for (const std::uint32_t ops : ops_per_round) epochs = std::max(epochs, ops);
  std::vector<NcclQueuedOp> queue;
  for (std::uint32_t epoch = 0; epoch < epochs; ++epoch) {
    for (std::uint32_t round = 0; round < ops_per_round.size(); ++round) {
      if (ops_per_round[round] > epoch) queue.push_back({round, epoch});
    }
  }
  return queue;
}

std::vector<NcclPlacedOp> place_group(std::span<const NcclQueuedOp> queue,
                                      std::span<const std::uint32_t> parts, std::uint32_t channels_per_peer,
                                      const NcclChannelRule& rule, const NcclSettings& settings) {
  ISTHMUS_ASSERT(queue.size() == parts.size(), "{} ops, parts of {}", queue.size(), parts.size());
  Group group(rule, channels_per_peer, settings);
  std::vector<NcclPlacedOp> placed;
  for (std::size_t op = 0; op < queue.size(); ++op) placed.push_back(group.place(queue[op], parts[op]));
  return placed;
}

NcclWarps warps_of_pair(std::uint32_t ops) {
  ISTHMUS_ASSERT(ops >= 1 && ops <= nccl_batch_ops, "{} ops in a batch", ops);
  return pair_warps[ops - 1];
}

std::uint32_t warps_of_one(std::uint32_t ops) {
  ISTHMUS_ASSERT(ops >= 1 && ops <= nccl_batch_ops, "{} ops in a batch", ops);
  return 20 / ops;
}

}  // namespace isthmus
