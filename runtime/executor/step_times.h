//===- step_times.h - Times of the parts of a step --------------*- C++ -*-===//
//
// StepTimes measures the parts of a step, mostly instructions, by the clock of
// the device that runs them. The device's streams are serialized, so that
// nothing overlaps. The host need not wait for each part: a part that is queued
// early begins when the previous part ends. If the host falls behind, the time
// of a part includes the host's time to queue the part. The host falls behind
// if kernels are shorter than their launch.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_EXECUTOR_STEP_TIMES_H
#define MTPLAN_RUNTIME_EXECUTOR_STEP_TIMES_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/backend/queue.h"

namespace mtplan::runtime {

/// Returns seconds of a monotonic clock since an arbitrary moment.
double monotonicSeconds();

/// Describes one run of an instruction of the rank's stage. If several
/// instructions are one launch, the run of the first instruction has the time
/// of the launch, and the runs of the other instructions take 0 s.
struct InstructionRun {
  std::int32_t program = 0, instruction = 0;
  std::int32_t copy = 0; ///< layer within the segment
  std::int32_t microBatch = 0;
  double start = 0.0, end = 0.0; ///< seconds on the process's clock
};

class StepTimes {
public:
  /// After this many queued parts, the host waits for them and frees their
  /// marks, because each mark is an object of the device's driver.
  static constexpr std::size_t kMost = 8192;

  /// \param theQueue  must outlive this object
  /// \param theTurn   an event of the queue that nothing else uses
  StepTimes(Queue &theQueue, int theTurn)
      : queue(theQueue), turn(theTurn), clock(theQueue.clock()) {}

  /// If `areTimed`, waits for all queued work, and times parts until end().
  /// Otherwise the calls before the next begin() do nothing.
  /// \param theTrace  receives the runs of timed parts; may be null
  void begin(bool areTimed, std::vector<InstructionRun> *theTrace);

  /// Selects stream `to`, and makes later work on `to` wait for everything
  /// queued on `before`, so that parts run one after another.
  void switchStream(int before, int to);

  void start();
  /// Ends the part, adds its seconds to `spent`, and adds `run` to the trace
  /// unless `run` is null.
  void stop(double &spent, const InstructionRun *run);
  /// Records a part that takes 0 s.
  void pass(double &spent, const InstructionRun *run);

  /// Waits for all queued work, and adds each part's seconds to its sum.
  void end();

private:
  struct Part {
    double *spent = nullptr;
    InstructionRun run;
    bool isTraced = false;
    int from = 0, to = 0; ///< marks of the clock
  };

  void setZero();
  void add(double &spent, const InstructionRun *run, int to);
  /// Returns the median time between two marks without work between them.
  double secondsOfNothing() const;
  void collect();

  Queue &queue;
  const int turn;
  const std::unique_ptr<StreamClock> clock;
  bool on = false;
  std::vector<InstructionRun> *trace = nullptr;
  std::vector<Part> parts;
  int from = 0;        ///< mark at the start of the current part
  int zero = 0;        ///< mark at the origin of trace times
  double atZero = 0.0; ///< seconds of mark `zero` on the process's clock
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXECUTOR_STEP_TIMES_H
