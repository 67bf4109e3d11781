#include "planner/bound.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "planner/byte_classes.hpp"
#include "planner/crossings.hpp"
#include "planner/passages.hpp"

namespace isthmus {
namespace {

// With few GPUs every set is looked at exactly; with many, only where an estimate says that it may bind.
constexpr std::size_t few_gpus = 64;

std::string size_text(Bytes bytes) {
  const double amount = static_cast<double>(bytes.value);
  if (amount >= 1e7) return fmt::format("{:.2f} GB", amount * 1e-9);
  if (amount >= 1e4) return fmt::format("{:.2f} MB", amount * 1e-6);
  return fmt::format("{} B", bytes.value);
}

/// Rounded down: a bound may be too low by a picosecond, never too high.
Duration at_least(Bytes bytes, Bandwidth capacity) {
  if (bytes.value <= 0 || capacity.value <= 0) return {};
  return {static_cast<std::int64_t>(Int128{bytes.value} * picoseconds_per_second / capacity.value)};
}

class CutFamily {
 public:
  explicit CutFamily(const Refit& refit)
      : refit_(refit),
        classes_(byte_classes(refit)),
        sum_(count_crossings(refit, classes_)),
        passages_(refit),
        mask_(refit.fabric.gpu_count()),
        seen_(classes_.sets.size()) {}

  LowerBound run() {
    domains();
    gpus();
    sources();
    parts();
    holders();
    domains_less_holders();
    return std::move(best_);
  }

 private:
  template <class Text>
  void consider(Bytes bytes, const Passage& passage, bool nvlink_only, Text what) {
    const Duration time = at_least(bytes, passage.capacity);
    if (!nvlink_only && time > best_.any_route) {
      best_.any_route = time;
      best_.any_route_links = passage.links;
    }
    if (time <= best_.time) return;
    best_.time = time;
    best_.cut_bytes = bytes;
    best_.cut_capacity = passage.capacity;
    best_.links = passage.links;
    best_.binding = fmt::format("{}: {} through {:.6g} GB/s", what(), size_text(bytes),
                                static_cast<double>(passage.capacity.value) * 1e-9);
  }

  bool may_bind(Bytes at_most, Bandwidth capacity) const {
    return mask_.size() <= few_gpus || at_least(at_most, capacity) > best_.any_route;
  }

  void mark(std::span<const std::uint32_t> gpus, char value) {
    for (const std::uint32_t gpu : gpus) mask_[gpu] = value;
  }
  void mark_domains(const std::vector<char>& chosen, bool inside) {
    for (std::size_t g = 0; g < mask_.size(); ++g) mask_[g] = (chosen[passages_.domain(g)] != 0) == inside;
  }

  /// Into what is marked; nothing needs counting where even all that its GPUs miss would fit.
  template <class Text>
  void marked(Bytes at_most, const std::vector<LinkId>* cables, Text what) {
    const Passage passage = passages_.into(mask_, cables);
    if (at_least(at_most, passage.capacity) <= best_.any_route) return;
    consider(bytes_into(classes_, mask_), passage, false, what);
  }

  Bytes needed_by(const std::vector<char>& mask) const {
    Bytes sum;
    for (std::size_t g = 0; g < mask.size(); ++g) sum += mask[g] != 0 ? sum_.gpu_in[g] : Bytes{};
    return sum;
  }
  Bytes held_by(std::span<const std::uint32_t> gpus) const {
    Bytes sum;
    for (const std::uint32_t gpu : gpus) sum += sum_.gpu_holds[gpu];
    return sum;
  }

  void domains() {
    std::vector<char> chosen(refit_.fabric.domain_count());
    for (std::size_t d = 0; d < chosen.size(); ++d) {
      chosen[d] = 1;
      if (sum_.domain_in[d].value > 0) {
        mark_domains(chosen, true);
        consider(sum_.domain_in[d], passages_.into(mask_), false,
                 [&] { return fmt::format("into NVLink domain {}", d); });
      }
      if (sum_.domain_out[d].value > 0) {
        mark_domains(chosen, false);
        consider(sum_.domain_out[d], passages_.into(mask_), false,
                 [&] { return fmt::format("out of NVLink domain {}", d); });
      }
      chosen[d] = 0;
    }
  }

  void gpus() {
    for (std::size_t g = 0; g < mask_.size(); ++g) {
      consider(sum_.gpu_in[g], passages_.into_gpu(g), false, [&] { return fmt::format("into GPU {}", g); });
      consider(sum_.gpu_in_nvlink[g], passages_.nvlink(g, false), true,
               [&] { return fmt::format("into GPU {} over NVLink", g); });
      consider(sum_.gpu_out[g], passages_.out_of_gpu(g), false,
               [&] { return fmt::format("out of GPU {}", g); });
      consider(sum_.gpu_out_nvlink[g], passages_.nvlink(g, true), true,
               [&] { return fmt::format("out of GPU {} over NVLink", g); });
    }
  }

  void sources() {
    for (std::size_t stage = 0; stage < sum_.stage_out.size(); ++stage) {
      mark_domains(sum_.stage_domains[stage], false);
      consider(sum_.stage_out[stage], passages_.into(mask_), false,
               [&] { return fmt::format("out of the domains of stage {}", stage); });
      std::fill(mask_.begin(), mask_.end(), 1);
      mark(sum_.stage_gpus[stage], 0);
      marked(held_by(sum_.stage_gpus[stage]), nullptr,
             [&] { return fmt::format("out of the GPUs of stage {}", stage); });
    }
    mark_domains(sum_.source_domains, false);
    consider(sum_.source_out, passages_.into(mask_), false, [] { return "out of all source domains"; });
    std::fill(mask_.begin(), mask_.end(), 1);
    for (const auto& gpus : sum_.stage_gpus) mark(gpus, 0);
    marked(needed_by(mask_), nullptr, [] { return "out of all source GPUs"; });
  }

  void parts() {
    for (const NetworkPart& part : passages_.parts()) {
      std::fill(mask_.begin(), mask_.end(), 0);
      mark(part.gpus, 1);
      marked(needed_by(mask_), &part.in, [&] { return "into what is behind " + part.name; });
      for (char& each : mask_) each = each == 0;
      marked(held_by(part.gpus), &part.out, [&] { return "out of what is behind " + part.name; });
    }
    for (std::size_t stage = 0; stage < sum_.stage_gpus.size(); ++stage) source_parts(stage);
  }

  /// Out of all parts of one tier that hold something of a stage.
  void source_parts(std::size_t stage) {
    for (std::size_t first = 0; first < passages_.parts().size();) {
      const VertexKind tier = passages_.parts()[first].tier;
      std::fill(mask_.begin(), mask_.end(), 1);
      std::vector<LinkId> cables;
      Bytes held;
      for (; first < passages_.parts().size() && passages_.parts()[first].tier == tier; ++first) {
        const NetworkPart& part = passages_.parts()[first];
        const auto& sources = sum_.stage_gpus[stage];
        const bool source = std::any_of(part.gpus.begin(), part.gpus.end(), [&](std::uint32_t gpu) {
          return std::binary_search(sources.begin(), sources.end(), gpu);
        });
        if (!source) continue;
        mark(part.gpus, 0);
        held += held_by(part.gpus);
        cables.insert(cables.end(), part.out.begin(), part.out.end());
      }
      marked(held, &cables, [&] {
        return fmt::format("out of the {} switches of stage {} with what is behind them", to_string(tier),
                           stage);
      });
    }
  }

  void holders() {
    for (const ByteClass& each : classes_.list) {
      if (std::exchange(seen_[each.holders], 1) != 0) continue;
      const auto set = classes_.sets[each.holders];
      if (!may_bind(held_by(set), passages_.roughly_out_of(set))) continue;
      std::fill(mask_.begin(), mask_.end(), 1);
      mark(set, 0);
      const auto text = [&] { return fmt::format("out of the {} holders of a class", set.size()); };
      marked(held_by(set), nullptr, text);
      std::vector<char> chosen(refit_.fabric.domain_count());
      for (const std::uint32_t gpu : set) chosen[passages_.domain(gpu)] = 1;
      mark_domains(chosen, false);
      marked(needed_by(mask_), nullptr, [&] { return text() + ", with their domains"; });
    }
  }

  void domains_less_holders() {
    std::set<std::vector<std::uint32_t>> known;
    std::vector<std::size_t> held_in(refit_.fabric.domain_count());  // by domain: the last class held there
    for (std::size_t number = 1; number <= classes_.list.size(); ++number) {
      const ByteClass& each = classes_.list[number - 1];
      const auto held = classes_.sets[each.holders];
      for (const std::uint32_t gpu : held) held_in[passages_.domain(gpu)] = number;
      for (const std::uint32_t receiver : classes_.sets[each.receivers]) {
        const std::size_t d = passages_.domain(receiver);
        if (held_in[d] != number) continue;
        std::vector<std::uint32_t> key{static_cast<std::uint32_t>(d)};
        for (const std::uint32_t gpu : held) {
          if (passages_.domain(gpu) == d) key.push_back(gpu);
        }
        if (!known.insert(key).second) continue;
        for (std::size_t g = 0; g < mask_.size(); ++g) mask_[g] = passages_.domain(g) == d;
        mark(held, 0);
        marked(needed_by(mask_), nullptr, [&] {
          return fmt::format("into NVLink domain {} without the {} holders of a class there", d,
                             key.size() - 1);
        });
      }
    }
  }

  const Refit& refit_;
  ByteClasses classes_;
  Crossings sum_;
  Passages passages_;
  LowerBound best_;
  std::vector<char> mask_;  // per GPU: in the set that is looked at
  std::vector<char> seen_;  // per set: its holders were looked at
};

}  // namespace

LowerBound lower_bound(const Refit& refit) { return CutFamily(refit).run(); }

}  // namespace isthmus
