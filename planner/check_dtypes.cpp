// The checker's rules on dtypes: what a source quantises travels quantised, group by group.

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

#include <fmt/format.h>

#include "model/precision.hpp"
#include "planner/check_bound.hpp"
#include "planner/check_boxes.hpp"
#include "planner/check_order.hpp"

namespace isthmus {
namespace {

bool cuts_group(const Region& region) {
  const std::size_t last = region.dimensions - 1;
  return region.begin[last] % mxfp8_group != 0 || region.end[last] % mxfp8_group != 0;
}

/// The values that a box of scales is computed of.
Region values_of_scales(Region scales) {
  const std::size_t last = scales.dimensions - 1;
  scales.begin[last] *= mxfp8_group;
  scales.end[last] *= mxfp8_group;
  return scales;
}

class ScaleCheck {
 public:
  ScaleCheck(const Refit& refit, const Limits& limits, Proof& proof)
      : refit_(refit), limits_(limits), proof_(proof) {
    for (std::uint32_t t = 0; t < refit.tensors.size(); ++t) {
      if (refit.tensors[t].tensor.quantised == QuantisedPart::values)
        values_[refit.tensors[t].tensor.name] = t;
    }
  }

  void run() {
    for (std::uint32_t t = 0; t < refit_.tensors.size(); ++t) {
      if (refit_.tensors[t].tensor.quantised == QuantisedPart::scales) judge(t);
    }
  }

 private:
  void judge(std::uint32_t number) {
    const RefitEntry& scales = refit_.tensors[number];
    const auto found = values_.find(values_name(scales.tensor.name));
    if (found == values_.end()) {
      add(number, {}, "no tensor has the values that it scales");
      return;
    }
    const RefitEntry& values = refit_.tensors[found->second];
    const Geometry &of_scales = refit_.geometries[scales.geometry],
                   &of_values = refit_.geometries[values.geometry];
    if (values_of_scales(whole(of_scales.source.shape)) != whole(of_values.source.shape)) {
      add(number, {},
          fmt::format("its shape is {}, that of its values {}; one scale for {} values is needed",
                      to_string(whole(of_scales.source.shape)), to_string(whole(of_values.source.shape)),
                      mxfp8_group));
      return;
    }
    const std::int64_t apart = std::int64_t{scales.source_base.value} - values.source_base.value;
    if (right_.contains({scales.geometry, values.geometry, apart})) return;
    if (held(number, values)) right_.insert({scales.geometry, values.geometry, apart});
  }

  bool held(std::uint32_t number, const RefitEntry& values) {
    const RefitEntry& scales = refit_.tensors[number];
    std::map<std::uint32_t, Region> shards;  // of values, by rank
    const Layout &layout = refit_.geometries[values.geometry].source,
                 &of_scales = refit_.geometries[scales.geometry].source;
    for (std::size_t i = 0; i < layout.mesh.size(); ++i)
      shards[values.source_base.value + layout.mesh.ranks[i].value] = layout.region(i);
    bool all = true;
    for (std::size_t i = 0; i < of_scales.mesh.size(); ++i) {
      const Region shard = of_scales.region(i);
      const std::uint32_t rank = scales.source_base.value + of_scales.mesh.ranks[i].value;
      const auto at = shards.find(rank);
      if (shard.empty() || (at != shards.end() && at->second.contains(values_of_scales(shard)))) continue;
      all = false;
      add(number, first_element(shard),
          fmt::format("rank {} has the scales {}, but of the values {}; it has to hold whole groups of {}",
                      rank, to_string(shard), at == shards.end() ? "nothing" : to_string(at->second),
                      mxfp8_group));
    }
    return all;
  }

  void add(std::uint32_t number, std::vector<std::int64_t> element, const std::string& what) {
    report(proof_, limits_, [&] {
      return Violation{Fault::group_cut,
                       {number},
                       std::move(element),
                       {},
                       fmt::format("tensor {}: {}", refit_.tensors[number].tensor.name, what)};
    });
  }

  const Refit& refit_;
  const Limits& limits_;
  Proof& proof_;
  std::map<std::string, std::uint32_t> values_;  // by name
  std::set<std::tuple<std::uint32_t, std::uint32_t, std::int64_t>> right_;
};

}  // namespace

void find_wrong_dtypes(const BoundPattern& bound, QuantisedPart quantised, PlanFindings& findings) {
  for (std::uint32_t i = 0; i < bound.pattern.steps.size(); ++i) {
    const Step& step = bound.step(i);
    const auto add = [&](Fault fault, std::string detail) {
      findings.add({fault, bound.relative(step.source), {}, {i}, std::move(detail)});
    };
    if (step.kind == StepKind::quantize) {
      if (quantised == QuantisedPart::none)
        add(Fault::wrong_dtype,
            fmt::format("step {} quantises it; it travels in {}", i, to_string(bound.geometry.source.dtype)));
      if (quantised == QuantisedPart::values && cuts_group(step.region))
        add(Fault::group_cut,
            fmt::format("step {} quantises {}; whole groups of {} along the last dimension are needed", i,
                        to_string(step.region), mxfp8_group));
    } else if (step.from == Buffer::source && quantised != QuantisedPart::none) {
      add(Fault::wrong_dtype, fmt::format("step {} reads the source shard, which is {}; it travels in {}: "
                                          "quantise it first, and read staging",
                                          i, to_string(Dtype::bf16), to_string(bound.geometry.source.dtype)));
    }
  }
}

void check_scales(const Refit& refit, const Limits& limits, Proof& proof) {
  ScaleCheck(refit, limits, proof).run();
}

}  // namespace isthmus
