//===- step_times.h - What each part of a step took -------------*- C++ -*-===//
//
// By the clock of what runs it. A device's streams take turns for that, so that
// nothing overlaps and the host need not wait for each: what a device is given
// ahead of time begins when what was before it ends. Where the host is not
// ahead, as with kernels shorter than it takes to queue them, a part's time is
// the host's.
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

/// One run of an instruction of the rank's stage. Where a backend has several
/// products, or updates, as one kernel, all of their time is that of the one
/// that runs first, of updates its first copy's; the others take none.
struct InstructionRun {
  std::int32_t program = 0, instruction = 0;
  std::int32_t copy = 0; ///< within the segment
  std::int32_t microBatch = 0;
  double start = 0.0, end = 0.0; ///< seconds of this process's clock
};

class StepTimes {
public:
  /// So many parts at a time: then the host waits once. A mark of a device is
  /// an object of its driver.
  static constexpr std::size_t kMost = 8192;

  /// \param theQueue  outlives this
  /// \param theTurn   an event of it that nobody else uses
  StepTimes(Queue &theQueue, int theTurn)
      : queue(theQueue), turn(theTurn), clock(theQueue.clock()) {}

  /// Waits for all that was queued. Until the next time, parts are timed, or
  /// nothing here does anything.
  /// \param theTrace  also gets their runs; may be null
  void begin(bool areTimed, std::vector<InstructionRun> *theTrace);

  /// The selected stream has been `before`, and is now `to`: what it is given
  /// from now on follows all that `before` has been given.
  void turnTo(int before, int to);

  /// The part begins.
  void start();
  /// It ends, its seconds are to be added to `spent`, and `run`, if it is not
  /// null, is what the trace says of it.
  void stop(double &spent, const InstructionRun *run);
  /// There was nothing to do.
  void pass(double &spent, const InstructionRun *run);

  /// Waits, and adds up.
  void end();

private:
  struct Part {
    double *spent = nullptr;
    InstructionRun run;
    bool isTraced = false;
    int from = 0, to = 0; ///< marks
  };

  void setZero();
  void add(double &spent, const InstructionRun *run, int to);
  /// Between two marks that follow each other.
  double secondsOfNothing() const;
  void collect();

  Queue &queue;
  const int turn;
  const std::unique_ptr<StreamClock> clock;
  bool on = false;
  std::vector<InstructionRun> *trace = nullptr;
  std::vector<Part> parts;
  int from = 0;        ///< mark of what began last
  int zero = 0;        ///< a mark
  double atZero = 0.0; ///< of this process's clock
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXECUTOR_STEP_TIMES_H
