// A file below memory: what the bytes that leave the device are written to.
#pragma once

#include "cost/machine.h"

namespace tidepool {

struct SpillLink {
  LinkSpeed write;         ///< device to file
  LinkSpeed read;          ///< file to device
  bool duplex = false;     ///< both at the same time; otherwise they take turns
  LinkSpeed memory;        ///< between device and host, each way
  Bytes bytes = 0;         ///< largest file; 0: unknown
  Bytes alignment = 4096;  ///< of transfers, and so of all spaces
};

/// `machine`, which has one device, with a file as space 2 behind its host. Copies with the host
/// take turns with those with the file: both are work of the thread that carries out a direction.
Machine with_spill(const Machine& machine, const SpillLink& link);

/// A file behind host memory: what does not fit there goes on to it, and comes back through it.
struct FileTierLink {
  LinkSpeed write;         ///< host to file
  LinkSpeed read;          ///< file to host
  bool duplex = false;     ///< both at the same time; otherwise they take turns
  Bytes bytes = 0;         ///< largest file; 0: no limit
  Bytes alignment = 4096;  ///< of transfers
};

/// `machine`, which has no file, with one behind its host, on channels of its own.
Machine with_file_tier(const Machine& machine, const FileTierLink& link);

/// What leaves the device goes to a file, or there is one behind the host.
bool may_write_to_file(const Machine& machine);

}  // namespace tidepool
