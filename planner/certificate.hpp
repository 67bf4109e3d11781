#pragma once
// A lower bound as something a stranger can verify: prices for links, in integers. Any plan moves every byte
// of a class (holders H, receivers R, w bytes; planner/byte_classes.hpp) from H to each of R over whole
// routes of the fabric, GPU by GPU, so it carries over links, at these prices, at least w times a distance:
//     T * sum(capacity * price)  >=  sum over classes of w * distance(class)
// distance(class): where the certificate splits the prices over receivers, the sum over them of the shortest
// path from H to each at its share (shares of a link add up to no more than its price); else the longest of
// the shortest paths from H at full prices. A cut is price 1 on its links.
// verify_certificate takes nothing from whoever made it: it walks the regions of the layouts for classes of
// its own, asks the fabric for routes and adds up in 128-bit integers. It shares no code with the bound.

#include <string>
#include <string_view>
#include <vector>

#include "model/refit.hpp"

namespace isthmus {

/// Who makes MXFP8 of BF16: nobody; receivers, of the BF16 that travels; sources, before it travels.
enum class Quantised : std::uint8_t { none, target, source };
std::string_view to_string(Quantised quantised);
/// Of a refit: the bytes that travel, and so bounds and plans, are comparable only where it is the same.
Quantised quantised_where(const Refit& refit);

/// What a bound is a bound on. A plan outside its model may be faster.
struct BoundModel {
  bool unicast = true;        // no switch copies a message
  bool detours = false;       // what a domain alone holds may reach its GPUs through other domains
  Relay relay = Relay::any;   // as RefitSpec::relay
  std::vector<Dtype> wire{};  // dtypes that travel, ascending
  Quantised quantised = Quantised::none;
  friend bool operator==(const BoundModel&, const BoundModel&) = default;
};

struct LinkPrice {
  LinkId link;
  std::int64_t price = 0;  // 1 to max_price
  friend bool operator==(const LinkPrice&, const LinkPrice&) = default;
};
inline constexpr std::int64_t max_price = std::int64_t{1} << 30;

/// How the prices are split over the receivers of one class.
struct PriceSplit {
  struct Share {
    GpuId receiver;
    std::vector<LinkPrice> prices;  // by link, ascending
    friend bool operator==(const Share&, const Share&) = default;
  };
  std::vector<GpuId> holders, receivers;  // which class: ascending
  std::vector<Share> shares;
  friend bool operator==(const PriceSplit&, const PriceSplit&) = default;
};

struct BoundCertificate {
  BoundModel model;
  std::vector<LinkPrice> prices;  // by link, ascending; links without a price are free
  Int128 priced_capacity = 0;     // sum of capacity * price, bytes per second
  std::vector<PriceSplit> splits;
  std::size_t classes = 0;  // what has to move: distinct pairs of holders and receivers,
  Bytes bytes{};            // and their bytes, once each
  Duration time{};          // the bound
  friend bool operator==(const BoundCertificate&, const BoundCertificate&) = default;
};

/// The model that a certificate for this refit has to state.
BoundModel bound_model(const Refit& refit, bool detours);

struct CertificateVerdict {
  std::string refusal;  // why it proves nothing; empty when it holds
  Duration time{};      // what it proves: no less than it states
  bool holds() const { return refusal.empty(); }
};

/// The most GPUs that take part for which a certificate is verified: routes are as many as pairs of them.
inline constexpr std::size_t max_verified_gpus = 2048;

CertificateVerdict verify_certificate(const Refit& refit, const BoundCertificate& certificate);

}  // namespace isthmus
