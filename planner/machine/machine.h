//===- machine.h - Devices and links of a cluster ---------------*- C++ -*-===//
//
// A machine file read into plain values. Every number in a file carries its
// source; a number without one is rejected by machine_json.cpp.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_MACHINE_MACHINE_H
#define MTPLAN_PLANNER_MACHINE_MACHINE_H

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "planner/units.h"

namespace mtplan::planner {

enum class Precision { fp32, fp16, bf16 };
const char *nameOf(Precision precision);
int bytesOf(Precision precision); ///< of one weight or activation

struct Device {
  std::string name;
  Bytes memory;                     ///< physical, before any reserve
  Bytes reserved;                   ///< context, libraries, allocator slack
  BytesPerSec bandwidth;            ///< of memory, peak
  double bandwidthEfficiency = 1.0; ///< reached share of it, (0, 1]
  int units = 1;                    ///< SMs or cores that tiles are spread over
  int tileM = 1, tileN = 1;    ///< output tile of one unit in a matrix product
  Seconds launch;              ///< per kernel, paid by every operator
  double gemmEfficiency = 1.0; ///< reached share of peak by large products
  double attentionEfficiency = 1.0; ///< the same by fused attention
  /// Peak rate by precision; absent: the device does not have it.
  std::optional<FlopsPerSec> fp32, fp16, bf16;

  std::optional<FlopsPerSec> peak(Precision precision) const;
};

/// One level of the network: groups of `ranks` consecutive devices reach each
/// other at this level; the last level reaches everything.
struct NetworkLevel {
  std::string name; ///< "nvswitch", "infiniband"
  int ranks = 0;    ///< devices within one domain; 0: unlimited
  BytesPerSec
      bandwidth;   ///< per device, one direction, reached by large messages
  Seconds latency; ///< per step of a ring
  Seconds base;    ///< per pass, whatever its size; an all-reduce is two
  bool inSwitchReduction = false; ///< SHARP / NVLS
  /// Where inSwitchReduction is set, what replaces `bandwidth` and the latency
  /// of all steps of an all-reduce that the switch sums.
  BytesPerSec reductionBandwidth;
  Seconds reductionLatency;
  /// Switchless meshes of direct links: how many rings, each of `bandwidth`,
  /// the first g devices can form, for g = 2, 3, ... Empty: a switch, one ring.
  std::vector<double> rings;
};

struct Machine {
  std::string name;
  Device device;
  int devicesPerNode = 1;
  std::vector<NetworkLevel> levels; ///< innermost first
  Precision defaultPrecision = Precision::bf16;
};

/// A machine file that cannot be used. what() is every violation, one a line,
/// each starting with the JSON pointer of the offending value.
class MachineError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_MACHINE_MACHINE_H
