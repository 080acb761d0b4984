//===- machine.h - Devices and links of a cluster ---------------*- C++ -*-===//
//
// Defines a machine: its devices, hosts and network, as read from a machine
// file.
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

/// Names the number format of training. With fp8, the products of layers have
/// 8-bit operands, and all other values are bf16.
enum class Precision { fp32, fp16, bf16, fp8 };
inline const char *nameOf(Precision precision) {
  constexpr const char *kNames[] = {"fp32", "fp16", "bf16", "fp8"};
  return kNames[static_cast<std::size_t>(precision)];
}

/// Returns the bytes of one weight or activation.
inline int bytesOf(Precision precision) {
  return precision == Precision::fp32 ? 4 : 2;
}

/// Returns the index, among fp32, fp16 and bf16, of the precision in which
/// values are stored. Training with fp8 stores bf16.
inline std::size_t storedAs(Precision precision) {
  return static_cast<std::size_t>(precision == Precision::fp8 ? Precision::bf16
                                                              : precision);
}

/// Describes the output tile that one unit (Device::units) computes in a matrix
/// product. `rate` is the rate of products with this tile, relative to the best
/// tile.
struct Tile {
  int m = 1, n = 1;
  double rate = 1.0; ///< (0, 1]
};

/// Holds the relative rates of products, in (0, 1]. Aligned products without a
/// batch have the rate 1.
struct ProductRates {
  /// unaligned64 applies if rows of n or of k elements are no multiple of 128
  /// bytes (64 16-bit elements), unaligned8 if they are no multiple of 16 bytes
  /// (8 16-bit elements).
  double unaligned64 = 1.0, unaligned8 = 1.0;
  double batched = 1.0; ///< applies to strided batched products
};

/// Holds the measured rates of one software's kernels on a device, which
/// replace the software file's general figures.
struct MeasuredKernels {
  struct Attention {
    /// These are shares of the peak rate; 0 means not measured.
    double forward = 0.0, backward = 0.0;
  };
  /// These are the figures of attention without and with dropout, indexed by
  /// storedAs().
  std::array<Attention, 3> attention, droppingAttention;
  /// Holds the rates of memory-bound kernels: the bytes of all operands and
  /// results, divided by the time. The key is a variantName(), and the index is
  /// storedAs(). A rate of 0 means not measured.
  std::map<std::string, std::array<BytesPerSec, 3>, std::less<>> passes;
  /// Lists the fusionName() of each kernel that is fused with the producer of
  /// an operand, sorted. The index is storedAs().
  std::array<std::vector<std::string>, 3> fusions;
  std::string software; ///< name of the measured software; empty: none
};

struct Device {
  std::string name;
  std::string architecture; ///< "ampere"; software files may refer to it
  Bytes memory;             ///< physical, before any reserve
  Bytes reserved;           ///< context, libraries, allocator slack
  /// These are the parts of `reserved` for the context and library handles, and
  /// for buffers of collectives; 0 means unknown.
  Bytes reservedContext, reservedBuffers;
  BytesPerSec bandwidth;            ///< peak memory bandwidth
  double bandwidthEfficiency = 1.0; ///< share that a copy reaches, (0, 1]
  /// Holds the share of streamRate() that norms, activations and other
  /// memory-bound kernels reach, in (0, 1].
  double elementwiseEfficiency = 1.0;
  int units = 1; ///< SMs or cores that tiles are distributed over
  /// Lists the tile shapes. A product uses the fastest.
  std::vector<Tile> tiles = std::vector<Tile>(1);
  /// Holds the time to fill and drain one wave of the first tile shape, for any
  /// k. The times of other shapes are proportional to the areas of their tiles.
  Seconds wave;
  ProductRates products;
  Seconds launch;                 ///< the gap between two kernels
  double gemmEfficiency = 1.0;    ///< share of peak that large products reach
  double gemmEfficiencyFp8 = 1.0; ///< gemmEfficiency for fp8
  /// Holds gemmEfficiency per precision, indexed by storedAs(). If a value is
  /// 0, gemmEfficiency applies.
  std::array<double, 3> ownGemmEfficiency{};
  /// Holds the share of peak that fused attention reaches, if the software has
  /// no figure.
  double attentionEfficiency = 1.0;
  MeasuredKernels kernels;
  /// Holds the standard deviation of the speed among devices of this kind,
  /// divided by the mean speed.
  double spread = 0.0;
  /// These are the peak rates; a rate is absent if the device lacks the
  /// precision.
  std::optional<FlopsPerSec> fp32, fp16, bf16, fp8;

  std::optional<FlopsPerSec> peak(Precision precision) const {
    const std::optional<FlopsPerSec> *rates[] = {&fp32, &fp16, &bf16, &fp8};
    return *rates[static_cast<std::size_t>(precision)];
  }
  BytesPerSec streamRate() const { return bandwidth * bandwidthEfficiency; }
  BytesPerSec passRate() const { return streamRate() * elementwiseEfficiency; }
};

/// Returns the time of the slowest of `devices` devices relative to a mean
/// device, for normally distributed speeds. A step waits for the slowest
/// device.
inline double slowestOf(const Device &device, int devices) {
  assert(devices >= 1);
  return 1.0 + device.spread * std::sqrt(2.0 * std::log(devices));
}

/// Describes one level of the network. Groups of `ranks` consecutive devices
/// communicate at this level. At the last level, all devices communicate.
struct NetworkLevel {
  std::string name;         ///< "nvswitch", "infiniband"
  int ranks = 0;            ///< devices in one group (domain); 0: unlimited
  BytesPerSec bandwidth;    ///< per device and direction, with large messages
  BytesPerSec pointToPoint; ///< of a single send; 0: `bandwidth` applies
  Seconds latency;          ///< per step of a ring
  Seconds base; ///< fixed time of a collective; 2 * base in an all-reduce
  bool inSwitchReduction = false; ///< whether switches reduce (SHARP, NVLS)
  /// If inSwitchReduction is set, these are the bandwidth of an all-reduce that
  /// the switch sums, and the total latency of all steps of that all-reduce.
  BytesPerSec reductionBandwidth;
  Seconds reductionLatency;
  /// Holds the number of rings, each of `bandwidth`, that the first g devices
  /// of a switchless mesh can form, for g = 2, 3, ... An empty list means a
  /// switch with one ring.
  std::vector<double> rings;
};

/// Describes a node's processors and memory, which the node's devices share.
/// Offloaded state is stored in the memory.
struct Host {
  Bytes memory;                  ///< a node's memory that programs may use
  BytesPerSec bandwidth;         ///< peak memory bandwidth of all sockets
  double updateEfficiency = 1.0; ///< share that an update reaches, (0, 1]
  /// Holds the rate of large copies between one device and the host, in one
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

/// Returns how many of the `devices` devices of a run share one node's host.
/// Each has an equal share.
inline int sharersOf(const Machine &machine, int devices) {
  return std::max(1, std::min(machine.devicesPerNode, devices));
}

/// Returns one device's share of the host's memory; 0 if the machine file
/// describes no host.
inline Bytes hostShareOf(const Machine &machine, int devices) {
  return machine.host ? machine.host->memory / sharersOf(machine, devices)
                      : Bytes{};
}

/// Reports an invalid machine file. what() lists every violation on a line that
/// starts with the JSON pointer of the offending value.
class MachineError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_MACHINE_MACHINE_H
