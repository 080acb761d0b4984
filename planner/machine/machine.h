//===- machine.h - Devices and links of a cluster ---------------*- C++ -*-===//
//
// A machine is a machine file, read into plain values. Every number in a file
// carries its source; machine_json.cpp rejects a number without one.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_MACHINE_MACHINE_H
#define MTPLAN_PLANNER_MACHINE_MACHINE_H

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "planner/units.h"

namespace mtplan::planner {

/// With fp8, products of the layers take 8-bit operands; all else is in bf16.
enum class Precision { fp32, fp16, bf16, fp8 };
inline const char *nameOf(Precision precision) {
  constexpr const char *kNames[] = {"fp32", "fp16", "bf16", "fp8"};
  return kNames[static_cast<std::size_t>(precision)];
}

/// Returns the bytes of one weight or activation.
inline int bytesOf(Precision precision) {
  return precision == Precision::fp32 ? 4 : 2;
}

/// Returns the index of the precision that passes see, out of fp32, fp16 and
/// bf16; fp8's is bf16's.
inline std::size_t storedAs(Precision precision) {
  return static_cast<std::size_t>(precision == Precision::fp8 ? Precision::bf16
                                                              : precision);
}

/// One unit's output in a matrix product, and the rate of products of such
/// tiles over that of the best tile.
struct Tile {
  int m = 1, n = 1;
  double rate = 1.0; ///< (0, 1]
};

/// Relative rates of products, (0, 1]. Sources: see the machine files.
struct ProductRates {
  /// The rate where n or k is not a multiple of 64 elements, or not even of 8.
  double unaligned64 = 1.0, unaligned8 = 1.0;
  double batched = 1.0; ///< strided batched products
};

/// The rates that one software's kernels were measured to reach on a device.
/// They replace the software file's general figures.
struct MeasuredKernels {
  struct Attention {
    double forward = 0.0, backward = 0.0; ///< shares of peak; 0: not measured
  };
  /// By Precision; fp8 uses bf16's. The figures of attention with dropout,
  /// where they are known.
  std::array<Attention, 3> attention, droppingAttention;
  /// The rate of reading every operand and writing every result once, by
  /// kernel, or kernel and variant ("activation.gelu"), and Precision; 0: not
  /// measured.
  std::map<std::string, std::array<BytesPerSec, 3>, std::less<>> passes;
  /// The kernels that are fused with the producer of their operand, by
  /// Precision, in alphabetical order, as fusionName spells them.
  std::array<std::vector<std::string>, 3> fusions;
  std::string software; ///< "mtplan"; empty: nothing was measured
};

struct Device {
  std::string name;
  std::string architecture; ///< "ampere"; by which software knows its kernels
  Bytes memory;             ///< physical, before any reserve
  Bytes reserved;           ///< context, libraries, allocator slack
  /// The part of `reserved` for the context and library handles, and for
  /// buffers of collectives. The rest is slack. 0: not told apart.
  Bytes reservedContext, reservedBuffers;
  BytesPerSec bandwidth; ///< of memory, peak
  /// The share of the bandwidth that passes reach, (0, 1].
  double bandwidthEfficiency = 1.0;
  /// The share of that rate that norms, activations and other passes reach,
  /// (0, 1].
  double elementwiseEfficiency = 1.0;
  int units = 1; ///< SMs or cores that tiles are distributed over
  /// A product uses the fastest tile.
  std::vector<Tile> tiles = std::vector<Tile>(1);
  /// The time to fill and drain a wave of the first tile, whatever k is. Other
  /// tiles scale with their area.
  Seconds wave;
  ProductRates products;
  Seconds launch;                 ///< between one kernel and the next
  double gemmEfficiency = 1.0;    ///< sustained share of peak of large products
  double gemmEfficiencyFp8 = 1.0; ///< the same share for fp8
  /// The share by Precision; 0: the precision has no figure of its own.
  std::array<double, 3> ownGemmEfficiency{};
  /// The share of fused attention for which the software has no figure.
  double attentionEfficiency = 1.0;
  MeasuredKernels kernels;
  /// Standard deviation over mean of the speed of devices of this kind.
  double spread = 0.0;
  /// Peak rate by precision; absent if the device lacks it.
  std::optional<FlopsPerSec> fp32, fp16, bf16, fp8;

  std::optional<FlopsPerSec> peak(Precision precision) const {
    const std::optional<FlopsPerSec> *rates[] = {&fp32, &fp16, &bf16, &fp8};
    return *rates[static_cast<std::size_t>(precision)];
  }
  BytesPerSec streamRate() const { return bandwidth * bandwidthEfficiency; }
  BytesPerSec passRate() const { return streamRate() * elementwiseEfficiency; }
};

/// Returns the time on the slowest of `devices`, which sets the pace of a step,
/// over that on a mean one. Speeds are normally distributed: 1 + spread *
/// sqrt(2 ln devices).
inline double slowestOf(const Device &device, int devices) {
  assert(devices >= 1);
  return 1.0 + device.spread * std::sqrt(2.0 * std::log(devices));
}

/// One level of the network: groups of `ranks` consecutive devices communicate
/// at this level; the last level reaches all devices.
struct NetworkLevel {
  std::string name;      ///< "nvswitch", "infiniband"
  int ranks = 0;         ///< devices within one domain; 0: unlimited
  BytesPerSec bandwidth; ///< per device and direction, with large messages
  /// The bandwidth of a message from one device to one other; 0: as
  /// `bandwidth`.
  BytesPerSec pointToPoint;
  Seconds latency; ///< per step of a ring
  Seconds base;    ///< per pass, whatever its size; an all-reduce has two
  bool inSwitchReduction = false; ///< SHARP / NVLS
  /// If inSwitchReduction is set, these replace `bandwidth` and the latency of
  /// all steps of an all-reduce that the switch sums.
  BytesPerSec reductionBandwidth;
  Seconds reductionLatency;
  /// The number of rings, each of `bandwidth`, that the first g devices of a
  /// switchless mesh can form, for g = 2, 3, ... Empty: a switch, one ring.
  std::vector<double> rings;
};

/// A node's processors and memory, which its devices share and in which
/// offloaded state is stored.
struct Host {
  Bytes memory;          ///< of a node, available to a program
  BytesPerSec bandwidth; ///< of that memory, all sockets, peak
  /// The share of the bandwidth that an optimizer's update reaches, (0, 1].
  double updateEfficiency = 1.0;
  /// The rate between one device and the host, in one direction, of large
  /// copies while all devices copy.
  BytesPerSec link;
  Seconds linkLatency; ///< per copy
};

struct Machine {
  std::string name;
  Device device;
  std::optional<Host> host; ///< absent: no offload
  int devicesPerNode = 1;
  std::vector<NetworkLevel> levels; ///< innermost first
  Precision defaultPrecision = Precision::bf16;
};

/// Returns how many of `devices` devices share a node's host. They divide the
/// host evenly.
inline int sharersOf(const Machine &machine, int devices) {
  return std::max(1, std::min(machine.devicesPerNode, devices));
}

/// Returns one device's share of the host's memory; 0: the machine describes no
/// host.
inline Bytes hostShareOf(const Machine &machine, int devices) {
  return machine.host ? machine.host->memory / sharersOf(machine, devices)
                      : Bytes{};
}

/// A machine file that cannot be used. what() is every violation, one a line,
/// each starting with the JSON pointer of the offending value.
class MachineError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_MACHINE_MACHINE_H
