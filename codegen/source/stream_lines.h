//===- stream_lines.h - Who waits for whom, as lines ------------*- C++ -*-===//

#ifndef MTPLAN_CODEGEN_SOURCE_STREAM_LINES_H
#define MTPLAN_CODEGEN_SOURCE_STREAM_LINES_H

#include <string>
#include <vector>

#include "codegen/source/stage_names.h"
#include "codegen/source/text.h"
#include "runtime/plan/plan.h"

namespace mtplan::codegen {

/// Of one program's run, around its instructions. Streams beside the first fork
/// from it and join it again, those of which all is overlapped when the
/// schedule ends.
class StreamLines {
public:
  /// \param theStreams  constants of the program, by stream of the plan
  StreamLines(const runtime::Program &theProgram, const StageNames &theNames,
              const std::vector<std::string> &theStreams, Text &theText);

  void begin() const;
  /// Writes the waits of instruction i, each with its cause.
  void before(std::size_t i) const;
  /// "now", or "now.on(kStream_data)": what its call is given.
  std::string runOf(std::size_t i) const;
  /// Marks its end, where another stream waits for that.
  void after(std::size_t i) const;
  /// Before what is overlapped, which the last micro-batch alone has, and
  /// after.
  void turnOverlap(bool begins, int microBatches) const;
  void end() const;
  /// Streams that are to be joined when the schedule ends.
  std::vector<std::string> overlapped() const;

private:
  const std::string &streamOf(std::size_t i) const;
  std::string causeOf(const runtime::Instruction &early,
                      const runtime::Instruction &late) const;

  const runtime::Program &program;
  const StageNames &names;
  const std::vector<std::string> &streams;
  Text &text;
  std::vector<std::string> others; ///< streams beside the first
  std::vector<std::string> joined; ///< of those, when the run ends
  std::vector<std::string> events; ///< by instruction; "": nobody waits
};

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_SOURCE_STREAM_LINES_H
