// place: addresses for all instances of a timeline, inside the budget of each space, with the waits
// that shared addresses need.
//
// Packers: SmartPool's two orders up to 4,000 instances, above that the cycle sweep, which is
// n log n; orders again where it does not fit by the last rule and few pairs conflict.
#pragma once

#include <string>
#include <vector>

#include "lower/placing/sharing.h"

namespace tidepool {

/// Which packers there are, and how far to search for addresses that need no waits that may stall,
/// where those find none. Nothing: no search.
struct PackingSearch {
  Nanos time{0};
  /// So many rounds of the search, whatever the time: the addresses then repeat on any machine.
  int rounds = 0;
  std::uint64_t seed = 1;
  Stop stop{};                  ///< of the search; what was found without it counts
  Stop give_up{};               ///< then nothing fits: whoever asks this has a plan
  bool best_fit_alone = false;  ///< SmartPool's default; else all of what it has

  [[nodiscard]] bool wanted() const { return time > Nanos{0} || rounds > 0; }
};

/// Reused from one timeline to the next: the memory of its lists stays.
class Placer {
 public:
  /// All must outlive the placer, which may list the timeline's steps anew and add waits to them.
  struct Subject {
    const Program& program;
    const Strategy& strategy;
    const Expansion& expansion;
    Timeline& timeline;
  };

  /// Instances of one space into `budget` bytes. False when they do not fit, or when the strategy
  /// fixes addresses that cannot be had (see `refused`).
  bool place_device(const Subject& subject, SpaceId space, Bytes budget, Bytes alignment,
                    const PackingSearch& search);
  /// The same for a space whose copies nobody waits for longer than for their bytes: what is
  /// ordered anyway may share, and any others only where they must.
  bool place_away(const Subject& subject, SpaceId space, Bytes budget, Bytes alignment,
                  const PackingSearch& search);
  void begin(const Timeline& timeline) { offsets_.assign(timeline.instances.all.size(), 0); }

  /// Per instance.
  [[nodiscard]] const std::vector<Bytes>& offsets() const { return offsets_; }
  /// Of the space placed last.
  [[nodiscard]] Bytes footprint() const { return packing_.footprint; }
  [[nodiscard]] const std::string& packer() const { return packer_; }
  [[nodiscard]] int added_waits() const { return added_waits_; }
  /// The footprint where no wait may cost time.
  [[nodiscard]] Bytes free_footprint() const { return free_footprint_; }
  /// Why addresses that the strategy fixes cannot be had; empty when they can.
  [[nodiscard]] const std::string& refused() const { return refused_; }
  /// Proof that the space placed last has no two instances at the same bytes that may not share
  /// them; an error names the first offence.
  [[nodiscard]] Result<void> verify() const;

 private:
  void find_members(const Timeline& timeline, SpaceId space);
  bool has_fixed_outside(const Subject& subject, Bytes budget, Bytes alignment);
  bool has_fixed_clash(const Subject& subject);
  void make_problem(const Subject& subject, Bytes alignment, const SharingRule& rule);
  void pack(Bytes budget, bool only_what_fits, bool last_resort, const PackingSearch& packing);
  void search(Bytes budget, const PackingSearch& packing);
  void finish(const Subject& subject, bool adds_waits);

  std::vector<InstanceId> members_;
  PackProblem problem_;
  Packing packing_;
  std::vector<Bytes> offsets_;
  std::string packer_;
  std::string refused_;
  int added_waits_ = 0;
  Bytes free_footprint_ = 0;
};

}  // namespace tidepool
