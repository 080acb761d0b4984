//===- stream_lines.h - Waits between streams, as lines ---------*- C++ -*-===//

#ifndef MTPLAN_CODEGEN_SOURCE_STREAM_LINES_H
#define MTPLAN_CODEGEN_SOURCE_STREAM_LINES_H

#include <string>
#include <vector>

#include "codegen/source/stage_names.h"
#include "codegen/source/text.h"
#include "runtime/plan/plan.h"

namespace mtplan::codegen {

/// Writes the forks, joins, waits and events of one program. When a run begins,
/// all other streams fork from the first stream. When the run ends, these
/// streams join the first stream. A stream that has only overlapped
/// instructions joins later, when the schedule ends.
class StreamLines {
public:
  StreamLines(const runtime::Program &theProgram, const StageNames &theNames,
              const std::vector<std::string> &theStreams, Text &theText);

  void begin() const;
  /// Writes the waits of instruction i.
  /// \param explains  whether a comment states the cause of each wait
  void before(std::size_t i, bool explains = true) const;
  /// Returns the first argument of instruction i's call, which selects the
  /// stream: "now", or "now.on(kStream_data)".
  std::string runOf(std::size_t i) const;
  /// Records an event after instruction i if another instruction waits for i.
  void after(std::size_t i) const;
  /// Begins or ends a block of overlapped instructions, which run in the last
  /// micro-batch only.
  void turnOverlap(bool begins, int microBatches) const;
  void end() const;
  /// Returns the streams that join the first stream when the schedule ends.
  std::vector<std::string> overlapped() const;

private:
  const std::string &streamOf(std::size_t i) const;
  std::string causeOf(const runtime::Instruction &early,
                      const runtime::Instruction &late) const;

  const runtime::Program &program;
  const StageNames &names;
  const std::vector<std::string> &streams;
  Text &text;
  std::vector<std::string> others; ///< all streams except the first
  std::vector<std::string> joined; ///< the streams that join when a run ends
  std::vector<std::string> events; ///< by instruction; "" for no event
};

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_SOURCE_STREAM_LINES_H
