#include "planner/certificate.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "planner/certificate_classes.hpp"
#include "planner/certificate_paths.hpp"

namespace isthmus {
namespace {

/// Empty, or what is wrong with a list of prices.
std::string price_fault(const std::vector<LinkPrice>& prices, std::size_t links) {
  for (std::size_t i = 0; i < prices.size(); ++i) {
    if (prices[i].link.index() >= links) return fmt::format("link {} does not exist", prices[i].link.value);
    if (prices[i].price < 1 || prices[i].price > max_price) {
      return fmt::format("price {} of link {} is not in [1, {}]", prices[i].price, prices[i].link.value,
                         max_price);
    }
    if (i > 0 && prices[i - 1].link >= prices[i].link) return "prices are not in the order of links";
  }
  return "";
}

GpuList numbers(const std::vector<GpuId>& gpus) {
  GpuList list;
  for (const GpuId gpu : gpus) list.push_back(gpu.value);
  return list;
}

class CertificateVerifier {
 public:
  CertificateVerifier(const Refit& refit, const BoundCertificate& certificate)
      : refit_(refit), certificate_(certificate), needed_(needed_bytes(refit)), acting_(acting_gpus(refit)) {}

  CertificateVerdict run() {
    for (const std::string& fault : {form_fault(), model_fault(), class_fault(), split_fault()}) {
      if (!fault.empty()) return {fault, {}};
    }
    if (acting_.size() > max_verified_gpus) {
      return {fmt::format("{} GPUs take part; at most {} are verified", acting_.size(), max_verified_gpus),
              {}};
    }
    if (certificate_.prices.empty()) return verdict(0);
    paths_.emplace(refit_.fabric, acting_, certificate_.prices);
    paths_->solve();
    Int128 sum = 0;
    for (const auto& [sets, bytes] : needed_) sum += bytes * distance(sets.first, sets.second);
    return verdict(sum);
  }

 private:
  std::string form_fault() const {
    const std::vector<Link>& links = refit_.fabric.links();
    if (std::string fault = price_fault(certificate_.prices, links.size()); !fault.empty()) return fault;
    Int128 capacity = 0;
    for (const LinkPrice& each : certificate_.prices) {
      capacity += Int128{links[each.link.index()].nominal.value} * each.price;
    }
    if (capacity == certificate_.priced_capacity) return "";
    return fmt::format("capacity at these prices is {}, stated is {}", capacity,
                       certificate_.priced_capacity);
  }

  std::string model_fault() const {
    if (!certificate_.model.unicast) return "switches that copy messages are not in the model";
    if (certificate_.model == bound_model(refit_, certificate_.model.detours)) return "";
    return fmt::format(
        "it states another model than the refit's: relay, dtypes on the wire, or where they are quantised "
        "({}; {})",
        to_string(certificate_.model.quantised), to_string(quantised_where(refit_)));
  }

  std::string class_fault() const {
    Int128 bytes = 0;
    for (const auto& [sets, each] : needed_) bytes += each;
    if (needed_.size() == certificate_.classes && bytes == certificate_.bytes.value) return "";
    return fmt::format("{} classes of {} bytes have to move, stated are {} of {}", needed_.size(), bytes,
                       certificate_.classes, certificate_.bytes.value);
  }

  /// Shares must belong to a receiver of a class, once each, and add up to no more than the price.
  std::string split_fault() {
    for (const PriceSplit& split : certificate_.splits) {
      const std::pair key{numbers(split.holders), numbers(split.receivers)};
      if (!needed_.contains(key)) return "prices are split for a class that does not exist";
      if (!splits_.emplace(key, &split).second) return "prices of a class are split twice";
      std::map<LinkId, std::int64_t> sum;
      std::set<GpuId> seen;
      for (const PriceSplit::Share& share : split.shares) {
        const bool receives = std::find(split.receivers.begin(), split.receivers.end(), share.receiver) !=
                              split.receivers.end();
        if (!receives || !seen.insert(share.receiver).second) {
          return fmt::format("GPU {} is no receiver of the class, or has two shares", share.receiver.value);
        }
        std::string fault = price_fault(share.prices, refit_.fabric.links().size());
        if (!fault.empty()) return fault;
        for (const LinkPrice& each : share.prices) sum[each.link] += each.price;
      }
      for (const LinkPrice& each : certificate_.prices) {
        const auto at = sum.find(each.link);
        if (at != sum.end() && at->second <= each.price) sum.erase(at);
      }
      if (!sum.empty()) {
        return fmt::format("shares of link {} add up to more than its price", sum.begin()->first.value);
      }
    }
    return "";
  }

  /// Without detours a domain that alone holds a class brings it to its own GPUs by itself.
  std::optional<DomainId> sole_domain(const GpuList& holders) const {
    const DomainId domain = refit_.fabric.domain_of(GpuId{holders.front()});
    const bool sole = std::all_of(holders.begin(), holders.end(), [&](std::uint32_t gpu) {
      return refit_.fabric.domain_of(GpuId{gpu}) == domain;
    });
    return sole && !certificate_.model.detours ? std::optional(domain) : std::nullopt;
  }

  const PricedPaths& paths_inside(DomainId domain) {
    const auto known = inside_.find(domain);
    if (known != inside_.end()) return known->second;
    GpuList gpus;
    for (const std::uint32_t gpu : acting_) {
      if (refit_.fabric.domain_of(GpuId{gpu}) == domain) gpus.push_back(gpu);
    }
    PricedPaths& paths =
        inside_.emplace(domain, PricedPaths(refit_.fabric, gpus, certificate_.prices)).first->second;
    paths.solve();
    return paths;
  }

  Int128 distance(const GpuList& holders, const GpuList& receivers) {
    const std::optional<DomainId> sole = sole_domain(holders);
    const auto paths_to = [&](std::uint32_t receiver) -> const PricedPaths& {
      const bool inside = sole && refit_.fabric.domain_of(GpuId{receiver}) == *sole;
      return inside ? paths_inside(*sole) : *paths_;
    };
    // Where no way leads no plan exists, and any bound holds; such a receiver proves nothing here.
    const auto proven = [](std::int64_t length) { return length >= PricedPaths::beyond ? 0 : length; };
    Int128 longest = 0, sum = 0;
    for (const std::uint32_t receiver : receivers) {
      longest = std::max<Int128>(longest, proven(paths_to(receiver).distance(holders, receiver)));
    }
    const auto split = splits_.find({holders, receivers});
    if (split == splits_.end()) return longest;
    for (const PriceSplit::Share& share : split->second->shares) {
      const std::uint32_t receiver = share.receiver.value;
      sum += proven(paths_to(receiver).distance(holders, receiver, share.prices));
    }
    return std::max(longest, sum);
  }

  CertificateVerdict verdict(Int128 priced_bytes) const {
    Duration time;
    if (certificate_.priced_capacity > 0) {
      constexpr Int128 most = (Int128{1} << 126) / picoseconds_per_second;
      if (priced_bytes > most) return {"prices are too high to be added up", {}};
      time.value =
          static_cast<std::int64_t>(priced_bytes * picoseconds_per_second / certificate_.priced_capacity);
    }
    if (time < certificate_.time) {
      return {
          fmt::format("it proves {:.9f} s, stated is {:.9f} s", seconds(time), seconds(certificate_.time)),
          time};
    }
    return {"", time};
  }

  const Refit& refit_;
  const BoundCertificate& certificate_;
  NeededBytes needed_;
  GpuList acting_;
  std::map<std::pair<GpuList, GpuList>, const PriceSplit*> splits_;
  std::optional<PricedPaths> paths_;
  std::map<DomainId, PricedPaths> inside_;
};

}  // namespace

std::string_view to_string(Quantised quantised) {
  constexpr std::array<std::string_view, 3> names{"none", "target", "source"};
  return names.at(static_cast<std::size_t>(quantised));
}

Quantised quantised_where(const Refit& refit) {
  if (refit.sources_quantise()) return Quantised::source;
  const bool receivers = std::any_of(refit.tensors.begin(), refit.tensors.end(),
                                     [](const RefitEntry& entry) { return entry.tensor.receiver_quantises; });
  return receivers ? Quantised::target : Quantised::none;
}

BoundModel bound_model(const Refit& refit, bool detours) {
  BoundModel model;
  model.detours = detours;
  model.relay = refit.settings.relay;
  std::set<Dtype> wire;
  for (const RefitEntry& entry : refit.tensors) wire.insert(entry.tensor.dtype);
  model.quantised = quantised_where(refit);
  model.wire.assign(wire.begin(), wire.end());
  return model;
}

CertificateVerdict verify_certificate(const Refit& refit, const BoundCertificate& certificate) {
  return CertificateVerifier(refit, certificate).run();
}

}  // namespace isthmus
