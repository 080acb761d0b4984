//===- step_times.h - Times of the parts of a step --------------*- C++ -*-===//
//
// Uses the clock of the device that runs the parts. The streams of a device
// take turns, so that nothing overlaps and the host need not wait for each
// part: a part that is queued early begins when the one before it ends. If the
// host is not ahead, as with kernels shorter than their launch, a part takes
// the host's time.
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

/// One run of an instruction of the rank's stage. If a backend runs several
/// products or updates as one kernel, the earliest one (for updates, in the
/// first layer) has the time of all, and the others have none.
struct InstructionRun {
  std::int32_t program = 0, instruction = 0;
  std::int32_t copy = 0; ///< layer within the segment
  std::int32_t microBatch = 0;
  double start = 0.0, end = 0.0; ///< seconds of this process's clock
};

class StepTimes {
public:
  /// The host waits after this many parts, because each mark is an object of
  /// the device's driver.
  static constexpr std::size_t kMost = 8192;

  /// \param theQueue  outlives this object
  /// \param theTurn   an event of it that is used only here
  StepTimes(Queue &theQueue, int theTurn)
      : queue(theQueue), turn(theTurn), clock(theQueue.clock()) {}

  /// Waits for all queued work. Until the next call, parts are timed or
  /// ignored.
  /// \param theTrace  also receives their runs; may be null
  void begin(bool areTimed, std::vector<InstructionRun> *theTrace);

  /// Changes the selected stream from `before` to `to`: later work follows
  /// everything queued on `before`.
  void turnTo(int before, int to);

  /// Begins a part.
  void start();
  /// Ends the part and adds its seconds to `spent`. The trace describes it by
  /// `run`, unless it is null.
  void stop(double &spent, const InstructionRun *run);
  /// Records a part without work.
  void pass(double &spent, const InstructionRun *run);

  /// Waits, and adds up the times.
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
  /// Returns the time between two consecutive marks.
  double secondsOfNothing() const;
  void collect();

  Queue &queue;
  const int turn;
  const std::unique_ptr<StreamClock> clock;
  bool on = false;
  std::vector<InstructionRun> *trace = nullptr;
  std::vector<Part> parts;
  int from = 0;        ///< mark of the current part
  int zero = 0;        ///< a mark
  double atZero = 0.0; ///< of this process's clock
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXECUTOR_STEP_TIMES_H
