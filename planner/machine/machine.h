//===- machine.h - Devices and links of a cluster ---------------*- C++ -*-===//
//
// Defines a machine: its devices, hosts and network, as read from a machine
// file. Every number in a file has a source; machine_json.cpp rejects a number
// without one.
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

/// With fp8, products of layers have 8-bit operands; everything else is bf16.
enum class Precision { fp32, fp16, bf16, fp8 };
/// Returns "fp32", "fp16", "bf16" or "fp8".
inline const char *nameOf(Precision precision) {
  constexpr const char *kNames[] = {"fp32", "fp16", "bf16", "fp8"};
  return kNames[static_cast<std::size_t>(precision)];
}

/// Returns the bytes of one weight or activation.
inline int bytesOf(Precision precision) {
  return precision == Precision::fp32 ? 4 : 2;
}

/// Returns the index, among fp32, fp16 and bf16, of the precision in which
/// values are stored; with fp8 they are stored as bf16.
inline std::size_t storedAs(Precision precision) {
  return static_cast<std::size_t>(precision == Precision::fp8 ? Precision::bf16
                                                              : precision);
}

/// The output tile that one unit computes in a matrix product, and the rate of
/// products of such tiles relative to the best tile.
struct Tile {
  int m = 1, n = 1;
  double rate = 1.0; ///< (0, 1]
};

/// Rates relative to aligned products without a batch, in (0, 1].
struct ProductRates {
  /// The rates if n or k is not a multiple of 64 elements, or of 8.
  double unaligned64 = 1.0, unaligned8 = 1.0;
  double batched = 1.0; ///< strided batched products
};

/// The measured rates of one software's kernels on a device, which replace the
/// software file's general figures.
struct MeasuredKernels {
  struct Attention {
    double forward = 0.0, backward = 0.0; ///< shares of peak; 0: not measured
  };
  /// Figures by Precision (fp8 uses bf16's), without and with dropout.
  std::array<Attention, 3> attention, droppingAttention;
  /// The rates at which kernels read every operand and write every result once,
  /// by kernel, or kernel and variant ("activation.gelu"), and by Precision; 0:
  /// not measured.
  std::map<std::string, std::array<BytesPerSec, 3>, std::less<>> passes;
  /// The kernels that are fused with the producer of their operand, by
  /// Precision, as sorted results of fusionName.
  std::array<std::vector<std::string>, 3> fusions;
  std::string software; ///< the measured software; empty: none
};

struct Device {
  std::string name;
  std::string architecture; ///< "ampere"; software files may refer to it
  Bytes memory;             ///< physical, before any reserve
  Bytes reserved;           ///< context, libraries, allocator slack
  /// The parts of `reserved` for the context and library handles, and for
  /// buffers of collectives; 0: unknown.
  Bytes reservedContext, reservedBuffers;
  BytesPerSec bandwidth; ///< peak memory bandwidth
  /// The share of the bandwidth that passes reach, (0, 1].
  double bandwidthEfficiency = 1.0;
  /// The share of that rate that norms, activations and other passes reach,
  /// (0, 1].
  double elementwiseEfficiency = 1.0;
  int units = 1; ///< SMs or cores that tiles are distributed over
  /// The tile shapes, of which a product uses the fastest.
  std::vector<Tile> tiles = std::vector<Tile>(1);
  /// The time to fill and drain a wave of the first tile, for any k. The time
  /// of other tiles is proportional to their area.
  Seconds wave;
  ProductRates products;
  Seconds launch;                 ///< the gap between two kernels
  double gemmEfficiency = 1.0;    ///< sustained share of peak of large products
  double gemmEfficiencyFp8 = 1.0; ///< the same share for fp8
  /// The same share by Precision; 0: gemmEfficiency applies.
  std::array<double, 3> ownGemmEfficiency{};
  /// The share of peak of fused attention, if the software has no figure.
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

/// Returns the time on the slowest of `devices` devices, for which a step
/// waits, relative to a mean device: 1 + spread * sqrt(2 ln devices), for
/// normally distributed speeds.
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
  Seconds base;    ///< per collective of any size; twice for an all-reduce
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
  BytesPerSec bandwidth; ///< peak memory bandwidth of all sockets
  /// The share of the bandwidth that an optimizer's update reaches, (0, 1].
  double updateEfficiency = 1.0;
  /// The rate of large copies between one device and the host, in one
  /// direction, while all devices copy.
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

/// Returns the number of devices, of `devices` in total, that share a node's
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

/// Reports an invalid machine file. what() lists every violation, one per line,
/// each starting with the JSON pointer of the offending value.
class MachineError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_MACHINE_MACHINE_H
