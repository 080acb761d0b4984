//===- machine.h - Devices and links of a cluster ---------------*- C++ -*-===//
//
// A machine file read into plain values. Every number in a file carries its
// source; a number without one is rejected by machine_json.cpp.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_MACHINE_MACHINE_H
#define MTPLAN_PLANNER_MACHINE_MACHINE_H

#include <array>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "planner/units.h"

namespace mtplan::planner {

/// fp8: products of the layers take operands of 8 bits, all else is bf16.
enum class Precision { fp32, fp16, bf16, fp8 };
const char *nameOf(Precision precision);
int bytesOf(Precision precision); ///< of one weight or activation
/// Of fp32, fp16 and bf16 the one that passes see: an index, fp8's is bf16's.
std::size_t storedAs(Precision precision);

/// Output of one unit in a matrix product, and the rate of a product made of
/// such tiles over that of the best.
struct Tile {
  int m = 1, n = 1;
  double rate = 1.0; ///< (0, 1]
};

/// Relative rates of products, (0, 1]. Sources: see the machine files.
struct ProductRates {
  /// Where n or k is no multiple of 64 elements, or not even of 8.
  double unaligned64 = 1.0, unaligned8 = 1.0;
  double batched = 1.0; ///< strided batched products
};

/// What the kernels of one software were measured to reach on a device: in
/// place of what its file says of kernels in general.
struct MeasuredKernels {
  struct Attention {
    double forward = 0.0, backward = 0.0; ///< shares of peak; 0: not measured
  };
  /// By Precision; fp8 has bf16's. Of attention that drops, where it is known.
  std::array<Attention, 3> attention, droppingAttention;
  /// By kernel, or kernel and variant ("activation.gelu"), and Precision: at
  /// which operands are read and results written, each once; 0: not measured.
  std::map<std::string, std::array<BytesPerSec, 3>, std::less<>> passes;
  /// By Precision, in alphabetical order, as joinName has them: kernels that
  /// are done at once with the one that makes what they take.
  std::array<std::vector<std::string>, 3> joins;
  std::string software; ///< "mtplan"; empty: nothing was measured
};

struct Device {
  std::string name;
  std::string architecture; ///< "ampere"; by which software knows its kernels
  Bytes memory;             ///< physical, before any reserve
  Bytes reserved;           ///< context, libraries, allocator slack
  /// Of that: the context and libraries' handles; buffers of collectives. What
  /// is left is slack. 0: not told apart.
  Bytes reservedContext, reservedBuffers;
  BytesPerSec bandwidth;            ///< of memory, peak
  double bandwidthEfficiency = 1.0; ///< reached share of it, (0, 1]
  /// Reached share of that by norms, activations and other passes, (0, 1].
  double elementwiseEfficiency = 1.0;
  int units = 1; ///< SMs or cores that tiles are spread over
  /// A product takes the fastest.
  std::vector<Tile> tiles = std::vector<Tile>(1);
  /// Of a wave of the first tile, whatever k: it fills and drains. Another
  /// tile's is in proportion to its area.
  Seconds wave;
  ProductRates products;
  Seconds launch;                 ///< between a kernel and the next
  double gemmEfficiency = 1.0;    ///< sustained share of peak by large products
  double gemmEfficiencyFp8 = 1.0; ///< the same of fp8
  /// The same by Precision where one has its own; 0: it has not.
  std::array<double, 3> ownGemmEfficiency{};
  /// The same by fused attention that software has no figure for.
  double attentionEfficiency = 1.0;
  MeasuredKernels kernels;
  /// Of devices of this kind, standard deviation of speed over the mean.
  double spread = 0.0;
  /// Peak rate by precision; absent: the device does not have it.
  std::optional<FlopsPerSec> fp32, fp16, bf16, fp8;

  std::optional<FlopsPerSec> peak(Precision precision) const;
  BytesPerSec streamRate() const { return bandwidth * bandwidthEfficiency; }
  BytesPerSec passRate() const { return streamRate() * elementwiseEfficiency; }
};

/// The slowest of `devices` sets the pace of a step: the time on it over the
/// time on a mean one, of a normal spread, 1 + spread * sqrt(2 ln devices).
double slowestOf(const Device &device, int devices);

/// One level of the network: groups of `ranks` consecutive devices reach each
/// other at this level; the last level reaches everything.
struct NetworkLevel {
  std::string name; ///< "nvswitch", "infiniband"
  int ranks = 0;    ///< devices within one domain; 0: unlimited
  BytesPerSec
      bandwidth; ///< per device, one direction, reached by large messages
  /// The same by a message from one device to one other; 0: as `bandwidth`.
  BytesPerSec pointToPoint;
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

/// A node's processors and their memory, which its devices share: where state
/// lives that is offloaded.
struct Host {
  Bytes memory;          ///< of a node, what a program may have of it
  BytesPerSec bandwidth; ///< of that memory, all sockets, peak
  /// Reached share of it by the update of an optimizer, (0, 1].
  double updateEfficiency = 1.0;
  /// Between one device and the host, one direction, reached by large copies
  /// while all devices copy.
  BytesPerSec link;
  Seconds linkLatency; ///< per copy
};

struct Machine {
  std::string name;
  Device device;
  std::optional<Host> host; ///< absent: nothing can be offloaded
  int devicesPerNode = 1;
  std::vector<NetworkLevel> levels; ///< innermost first
  Precision defaultPrecision = Precision::bf16;
};

/// Devices that share a node's host, of as many in all: what is the host's is
/// dealt out evenly among them.
int sharersOf(const Machine &machine, int devices);
/// Of its memory; 0: the machine says nothing of a host.
Bytes hostShareOf(const Machine &machine, int devices);

/// A machine file that cannot be used. what() is every violation, one a line,
/// each starting with the JSON pointer of the offending value.
class MachineError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_MACHINE_MACHINE_H
