// The device list of these tests: a CPU device, "watched", that says which arenas were opened.
#pragma once

#include <vector>

#include "base/bytes.h"

namespace tidepool::testing {

struct OpenedArenas {
  Bytes device = 0;
  Bytes host = 0;
  Bytes file = 0;
};

/// Of every device opened in this process since the last `forget_opened`.
std::vector<OpenedArenas> opened_devices();
void forget_opened();
/// Devices made from now on say the times of a virtual clock: each op takes what its number in the
/// program says, each copy what its link is told. What runs takes no longer than it has to.
void keep_virtual_time(bool yes);
/// What is copied to and from files of devices made from now on is as slow as this, in bytes per
/// second, whatever they are told; 0: as they are told.
void pace_disk(double bytes_per_second);
/// Devices made from now on say that copies to and from files took as long as at this speed, in
/// bytes per second, whatever they took; 0: what they took. Disks and processors may be busy.
void say_disk_speed(double bytes_per_second);
/// Links of devices made from now on carry this part of what they are told; 1: all of it.
void pace_links(double part);
/// The most bytes of device arenas that were open at a time since then. A device takes and gives
/// back all of its arenas at once.
Bytes most_open_at_once();

}  // namespace tidepool::testing
