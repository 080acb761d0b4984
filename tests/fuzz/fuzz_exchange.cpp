//===- fuzz_exchange.cpp - Fuzzes readers of trainers' configurations -----===//
//
// The first byte selects the trainer and the number of GPUs; the rest is the
// trainer's configuration. Reading returns errors or a configuration. If
// writing the configuration needs no note, the written text reads back as the
// same configuration.
//
//===----------------------------------------------------------------------===//

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "tools/exchange/deepspeed.h"
#include "tools/exchange/megatron.h"
#include "tools/exchange/torchtitan.h"

using namespace mtplan::tools;

namespace {

TrainerConfig read(int kind, const std::string &text, const Launch &launch) {
  switch (kind) {
  case 0:
    return readMegatron(text, launch.gpus);
  case 1:
    return readDeepSpeed(text, launch);
  default:
    return readTorchtitan(text, launch);
  }
}

Exported write(int kind, const TrainerConfig &config) {
  switch (kind) {
  case 0:
    return writeMegatron(config);
  case 1:
    return writeDeepSpeed(config);
  default:
    return writeTorchtitan(config);
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data,
                                      std::size_t size) {
  if (size == 0)
    return 0;
  int kind = data[0] % 3;
  Launch launch;
  launch.gpus = std::int64_t{1} << (data[0] / 3 % 11);
  launch.layers = 24;
  launch.sequence = 1024;
  const std::string text(reinterpret_cast<const char *>(data) + 1, size - 1);
  TrainerConfig config = read(kind, text, launch);
  if (!config.errors.empty())
    return 0;
  Exported written = write(kind, config);
  if (!written.notes.empty() || !written.refusals.empty())
    return 0;
  launch.stages = config.parallelism.pp;
  launch.globalBatch = config.parallelism.globalBatch;
  launch.microBatch = config.parallelism.microBatch;
  TrainerConfig again = read(kind, written.text, launch);
  if (!again.errors.empty() || again.parallelism != config.parallelism ||
      write(kind, again).text != written.text)
    std::abort();
  return 0;
}
