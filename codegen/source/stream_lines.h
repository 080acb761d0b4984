//===- stream_lines.h - Waits between streams, as lines ---------*- C++ -*-===//

#ifndef MTPLAN_CODEGEN_SOURCE_STREAM_LINES_H
#define MTPLAN_CODEGEN_SOURCE_STREAM_LINES_H

#include <string>
#include <vector>

#include "codegen/source/stage_names.h"
#include "codegen/source/text.h"
#include "runtime/plan/plan.h"

namespace mtplan::codegen {

/// Writes the forks, joins, waits and events of one program. All streams except
/// the first fork from the first stream when a run begins, and join it when the
/// run ends. A stream with only overlapped instructions joins later, when the
/// schedule ends.
class StreamLines {
public:
  /// \param theStreams  names of the constants for the streams of the plan
  StreamLines(const runtime::Program &theProgram, const StageNames &theNames,
              const std::vector<std::string> &theStreams, Text &theText);

  void begin() const;
  /// Writes the waits of instruction i, each with its cause.
  void before(std::size_t i) const;
  /// Returns the context in which instruction i runs, the first argument of its
  /// call: "now", or "now.on(kStream_data)".
  std::string runOf(std::size_t i) const;
  /// Records an event after instruction i if another instruction waits for i.
  void after(std::size_t i) const;
  /// Begins or ends a block of overlapped instructions, which run only in the
  /// last micro-batch.
  void turnOverlap(bool begins, int microBatches) const;
  void end() const;
  /// Returns the streams that join the first one when the schedule ends.
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
  std::vector<std::string> joined; ///< streams that join when a run ends
  std::vector<std::string> events; ///< by instruction; "" for no event
};

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_SOURCE_STREAM_LINES_H
