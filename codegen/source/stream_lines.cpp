//===- stream_lines.cpp - Waits between streams, as lines -----------------===//

#include "codegen/source/stream_lines.h"

#include <algorithm>

#include "runtime/plan/plan_queries.h"

namespace mtplan::codegen {

using namespace runtime;

namespace {

/// Returns the ending of the name of an instruction's event.
const char *endOf(const Instruction &instruction) {
  if (const auto *call = std::get_if<Collective>(&instruction.what))
    switch (call->kind) {
    case CollectiveKind::allReduce:
      return " reduced";
    case CollectiveKind::allGather:
      return " gathered";
    case CollectiveKind::reduceScatter:
      return " scattered";
    case CollectiveKind::allToAll:
      return " exchanged";
    }
  if (const auto *transfer = std::get_if<Transfer>(&instruction.what))
    return transfer->sends ? " sent" : " received";
  return " done";
}

} // namespace

StreamLines::StreamLines(const Program &theProgram, const StageNames &theNames,
                         const std::vector<std::string> &theStreams,
                         Text &theText)
    : program(theProgram), names(theNames), streams(theStreams), text(theText),
      events(program.instructions.size()) {
  std::set<std::string> taken = {"now"};
  std::set<int> used, followed;
  for (const Instruction &instruction : program.instructions) {
    used.insert(instruction.stream);
    if (!instruction.overlapped)
      followed.insert(instruction.stream);
    for (const int early : instruction.waits) {
      const Instruction &awaited = program.instructions[indexed(early)];
      if (std::string &event = events[indexed(early)]; event.empty())
        event = identifierFor(awaited.label + endOf(awaited), taken);
    }
  }
  used.erase(0);
  for (const int stream : used) {
    others.push_back(streams[indexed(stream)]);
    if (followed.contains(stream))
      joined.push_back(streams[indexed(stream)]);
  }
}

const std::string &StreamLines::streamOf(std::size_t i) const {
  return streams[indexed(program.instructions[i].stream)];
}

void StreamLines::begin() const {
  if (!others.empty())
    text.line("now.fork(" + listText(others) + ");");
}

void StreamLines::before(std::size_t i, bool explains) const {
  const Instruction &late = program.instructions[i];
  for (const int early : late.waits) {
    const std::string wait =
        "now.wait(" + streamOf(i) + ", " + events[indexed(early)] + ");";
    if (explains)
      text.comment(causeOf(program.instructions[indexed(early)], late));
    text.line(wait);
  }
}

std::string StreamLines::runOf(std::size_t i) const {
  return program.instructions[i].stream == 0 ? "now"
                                             : "now.on(" + streamOf(i) + ")";
}

void StreamLines::after(std::size_t i) const {
  if (!events[i].empty())
    text.event(events[i], "now.done(" + streamOf(i) + ")");
}

void StreamLines::turnOverlap(bool begins, int microBatches) const {
  if (begins)
    text.comment("Reduces sums over all micro-batches. The backward pass of "
                 "other layers overlaps with this.");
  if (microBatches == 1)
    return;
  if (begins)
    text.open("if (now.microBatch == microBatches - 1) {");
  else
    text.close();
}

void StreamLines::end() const {
  if (!joined.empty())
    text.line("now.join(" + listText(joined) + ");");
}

std::vector<std::string> StreamLines::overlapped() const {
  std::vector<std::string> beside = others;
  std::erase_if(beside, [&](const std::string &stream) {
    return std::ranges::find(joined, stream) != joined.end();
  });
  return beside;
}

// Returns the cause of a wait, for a comment: `late` reads a part of a tensor
// that `early` writes, or `late` overwrites bytes that `early` uses. Returns ""
// if `late` reads the complete tensor that `early` writes.
std::string StreamLines::causeOf(const Instruction &early,
                                 const Instruction &late) const {
  for (const Tensor &made : early.outputs)
    for (const Tensor &read : late.inputs)
      if (names.isPartOf(made, read))
        return made.buffer == read.buffer
                   ? ""
                   : "Reads " + names.buffer(indexed(read.buffer)) + ".";
  for (const auto *some : {&early.inputs, &early.outputs})
    for (const Tensor &used : *some)
      for (const Tensor &made : late.outputs)
        if (names.overlap(used, made))
          return used.buffer == made.buffer
                     ? "Overwrites " + names.buffer(indexed(made.buffer)) + "."
                     : names.buffer(indexed(made.buffer)) +
                           " uses the bytes of " +
                           names.buffer(indexed(used.buffer)) + ".";
  return "";
}

} // namespace mtplan::codegen
