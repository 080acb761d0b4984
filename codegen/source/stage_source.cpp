//===- stage_source.cpp - A pipeline stage as functions -------------------===//

#include "codegen/source/stage_source.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "codegen/source/memory_lines.h"
#include "codegen/source/parameter_lines.h"
#include "codegen/source/pass_schedule.h"
#include "codegen/source/program_lines.h"
#include "codegen/source/schedule_lines.h"
#include "codegen/source/shared_functions.h"
#include "codegen/source/table_loops.h"
#include "codegen/source/update_calls.h"
#include "codegen/source/update_lines.h"
#include "runtime/plan/plan_queries.h"

namespace mtplan::codegen {

using namespace runtime;

namespace {

/// Returns the name of a function that reduces gradients or updates parameters:
/// "reduce_h" for segment h, "reduce_all" for several segments.
std::string nameOfUpdate(const Program &program, bool applies) {
  std::set<std::string> segments;
  for (const Instruction &one : program.instructions)
    if (!std::holds_alternative<Report>(one.what))
      segments.insert(one.label.substr(0, one.label.find('.')));
  return (applies ? "update_" : "reduce_") +
         (segments.size() == 1 ? *segments.begin() : "all");
}

/// Writes a stage. The kinds of functions are written in the order programs,
/// passes, directions, steps, because each kind calls the kinds before it.
class StageSource {
public:
  StageSource(const Plan &thePlan, std::size_t theStage,
              const SharedNames &theShared)
      : plan(thePlan), number(theStage), stage(plan.stages[theStage]),
        shared(theShared), schedule(passesOf(stage)),
        names(plan, theStage, runsBeforeBackward(schedule), shared.dimensions,
              shared.settings),
        members(membersOf(names)), loops(members) {
    for (std::size_t p = 0; p < stage.programs.size(); ++p)
      identifiers.push_back(identifierFor(nameOf(p), taken));
    updates.emplace(stage, names, identifiers, members);
  }

  std::vector<StageFunction> programs() {
    std::vector<StageFunction> all(stage.programs.size());
    for (std::size_t p = 0; p < all.size(); ++p) {
      all[p].name = identifiers[p];
      all[p].arguments = "const Run &now";
      writeProgram({plan, number, names, shared, *updates}, static_cast<int>(p),
                   all[p], needs, overlapped);
      if (schedule.parts == 1)
        all[p].part = 0;
    }
    std::set<std::size_t> ofSchedule;
    for (const Pass &pass : schedule.passes)
      for (const ScheduleEntry &entry : pass.entries) {
        setKind(pass, entry, all);
        ofSchedule.insert(indexed(entry.program));
      }
    for (const std::size_t p : ofSchedule)
      all[p].body = loops.withLoops(all[p].body, all[p].name,
                                    TableLoops::Calls::collectives);
    for (const auto *entries : {&stage.reduce, &stage.apply})
      for (const ScheduleEntry &entry : *entries)
        all[indexed(entry.program)].body =
            withShortEvents(all[indexed(entry.program)].body);
    reduces = updateCalls(stage.reduce, names, loops, all);
    applies = updateCalls(updates->schedule(), names, loops, all);
    return all;
  }

  std::vector<StageFunction> passes(std::vector<StageFunction> &programs) {
    std::vector<StageFunction> all;
    for (const Pass &pass : schedule.passes) {
      StageFunction &one = all.emplace_back();
      const std::string direction = pass.isBackward ? "backward" : "forward";
      const bool hasParts = schedule.parts > 1;
      one.name = identifierFor(
          direction + (hasParts ? "_" + std::to_string(pass.part) : ""), taken);
      if (hasParts)
        one.templateName = direction + "_part";
      one.arguments = "Rank &rank, int batch";
      one.part = pass.part;
      one.comment.comment(
          "Takes micro-batch `batch` " + direction + " through " +
          (hasParts ? "part " + std::to_string(pass.part) + " of " : "") +
          "the stage.");
      std::vector<std::string> callees, plain;
      for (const ScheduleEntry &entry : pass.entries) {
        const StageFunction &callee = programs[indexed(entry.program)];
        callees.push_back(callee.calleeFor(one));
        plain.push_back(callee.callee());
        if (isRecomputation(stage.programs[indexed(entry.program)]))
          continue;
        writeEntry(names, entry, std::exchange(callees, {}), "batch", one.body);
        writeEntry(names, entry, std::exchange(plain, {}), "batch",
                   one.plainBody);
      }
    }
    return all;
  }

  /// If the schedule takes groups of micro-batches through the virtual stages
  /// in turn, writes a function for each direction.
  std::vector<StageFunction>
  directions(const std::vector<StageFunction> &passes) const {
    std::vector<StageFunction> all;
    if (schedule.groupSize == 0)
      return all;
    const std::string group = groupText();
    const std::string parts = std::to_string(schedule.parts);
    const std::string batch = "const int batch = run / (" + group + " * " +
                              parts + ") * " + group + " + run % " + group +
                              ";",
                      call = "parts[run / " + group + " % " + parts +
                             "](rank, batch);";
    for (const bool isBackward : {false, true}) {
      StageFunction &one = all.emplace_back();
      one.name = isBackward ? "backward" : "forward";
      one.arguments = "Rank &rank, int run";
      one.base = "parts";
      one.comment.comment("Run number `run` of a part " + one.name +
                          ": groups of " + group +
                          " micro-batches take turns through the "
                          "parts" +
                          (isBackward ? ", the last part first." : "."));
      std::vector<std::string> calls(schedule.parts), plain(schedule.parts);
      for (std::size_t p = 0; p < passes.size(); ++p) {
        const Pass &pass = schedule.passes[p];
        if (pass.isBackward != isBackward)
          continue;
        const std::size_t turn =
            isBackward ? schedule.parts - 1 - pass.part : pass.part;
        calls[turn] = passes[p].calleeFor(one);
        plain[turn] = passes[p].callee();
      }
      for (Text *to : {&one.body, &one.plainBody}) {
        to->line(batch);
        to->call("constexpr void (*parts[])(Rank &, int) = {",
                 to == &one.body ? calls : plain, "};");
        to->line(call);
      }
    }
    return all;
  }

  std::vector<StageFunction>
  steps(const std::vector<StageFunction> &programs,
        const std::vector<StageFunction> &passes,
        const std::vector<StageFunction> &both) const {
    std::vector<StageFunction> all(2);
    for (StageFunction &one : all) {
      one.arguments = "Rank &rank";
      if (schedule.parts == 1)
        one.part = 0;
      if (!both.empty())
        one.base = "parts";
    }
    StageFunction &runs = all[0], &update = all[1];
    runs.name = "forwardAndBackward";
    runs.comment.comment(
        "Runs forward and backward of all micro-batches" +
        std::string(plan.stages.size() > 1
                        ? ", in the order of the pipeline schedule"
                        : "") +
        ", then reduces gradients over ranks.");
    update.name = "update";
    update.comment.comment(
        "Updates all parameters, after squares() and the all-gather of the "
        "gradient norm. AdamW multiplies each gradient by "
        "rank.numbers->update.gradientFactor, which clips it.");
    for (const bool isPlain : {false, true}) {
      const auto calleeOf = [&](const StageFunction &callee,
                                StageFunction &caller) {
        return isPlain ? callee.callee() : callee.calleeFor(caller);
      };
      Text &body = isPlain ? runs.plainBody : runs.body;
      std::vector<std::string> functions;
      for (const StageFunction &one : both.empty() ? passes : both)
        functions.push_back(calleeOf(one, runs));
      writeRuns(plan.microBatches, schedule, functions, body);
      if (!overlapped.empty())
        body.line("rank.streams.join(" +
                  listText(std::vector(overlapped.begin(), overlapped.end())) +
                  ");");
      const auto writeAll = [&](const std::vector<UpdateCalls> &calls,
                                StageFunction &caller) {
        for (const UpdateCalls &one : calls) {
          std::vector<std::string> callees;
          for (const UpdateCall &call : one.functions)
            callees.push_back(calleeOf(programs[call.function], caller));
          writeUpdateCalls(names, one, callees,
                           isPlain ? caller.plainBody : caller.body);
        }
      };
      writeAll(reduces, runs);
      writeAll(applies, update);
    }
    return all;
  }

  /// Writes the functions that stages do not share, and the stage's parameters
  /// and memory. `functions` has one item for each kind of function.
  void write(const std::vector<const std::vector<StageFunction> *> &functions,
             const FunctionSharing &sharing, StageTexts &texts) {
    const std::string space = "namespace stage" + std::to_string(number);
    const auto begin = [&](Text &to) { to.line(space + " {"); };
    const auto end = [&](Text &to) {
      to.line();
      to.line("} // " + space);
      to.line();
    };
    begin(texts.parameters);
    texts.parameters.line();
    writeInitialise(stage, names, texts.parameters);
    writeSquares(plan, stage, names, texts.parameters);
    end(texts.parameters);
    Text own;
    for (const std::vector<StageFunction> *kind : functions)
      for (const StageFunction &one : *kind)
        if (one.isPlain())
          one.write(own);
    if (!own.items().empty()) {
      begin(texts.step);
      texts.step.add(own);
      end(texts.step);
    }
    begin(texts.memory);
    writeMemory(functions, sharing, texts);
    end(texts.memory);
    texts.needed.merge(needs.files);
  }

private:
  /// Returns the number of micro-batches of a group: "pp" if the axis pp has
  /// this size, else a number literal.
  std::string groupText() const {
    for (std::size_t a = 0; a < plan.mesh.size(); ++a)
      if (plan.mesh[a].name == "pp" && plan.mesh[a].size == schedule.groupSize)
        return shared.dimensions.axis(static_cast<int>(a));
    return std::to_string(schedule.groupSize);
  }

  static std::set<std::string> membersOf(const StageNames &names) {
    std::set<std::string> all = {"parts"};
    for (const std::string &one : names.memberNames())
      all.insert(one);
    for (const StageConstant &one : names.constants())
      all.insert(one.name);
    return all;
  }

  void setKind(const Pass &pass, const ScheduleEntry &entry,
               std::vector<StageFunction> &functions) const {
    const Program &program = stage.programs[indexed(entry.program)];
    StageFunction &function = functions[indexed(entry.program)];
    const bool isMessage =
        std::holds_alternative<Transfer>(program.instructions.front().what);
    function.part = pass.part;
    function.kind = isMessage         ? functionNameOf(program, names)
                    : pass.isBackward ? "backward"
                                      : "forward";
  }

  std::string nameOf(std::size_t program) const {
    const auto isIn = [&](const std::vector<ScheduleEntry> &entries) {
      return std::ranges::find(entries, static_cast<int>(program),
                               &ScheduleEntry::program) != entries.end();
    };
    const Program &one = stage.programs[program];
    return isIn(stage.reduce)  ? nameOfUpdate(one, false)
           : isIn(stage.apply) ? nameOfUpdate(one, true)
                               : functionNameOf(one, names);
  }

  void
  writeMemory(const std::vector<const std::vector<StageFunction> *> &functions,
              const FunctionSharing &sharing, StageTexts &texts) const {
    Text open, tables;
    updates->writeTables(tables);
    tables.add(loops.tables());
    writeOpen(stage, needs, open);
    std::vector<const Text *> readers = {&texts.parameters, &open};
    for (const std::vector<StageFunction> *kind : functions)
      for (const StageFunction &one : *kind)
        if (!one.isUnused)
          readers.push_back(&one.body);
    texts.memory.line();
    writeBuffers(stage, names, readers, tables, texts.memory);
    sharing.writeStructs(number, "buf", texts.memory);
    if (schedule.groupSize > 0) {
      texts.memory.line();
      texts.memory.comment(
          "Each part of the stage has its own buffers under the same names.");
      texts.memory.open("struct parts : buf {");
      for (std::size_t part = 0; part < schedule.parts; ++part)
        texts.memory.line("using part" + std::to_string(part) + " = stage" +
                          std::to_string(number) +
                          "::" + sharing.structOf(number, part) + ";");
      texts.memory.close("};");
      sharing.writeStructs(number, "parts", texts.memory);
    }
    texts.memory.add(open);
  }

  const Plan &plan;
  const std::size_t number;
  const Stage &stage;
  const SharedNames &shared;
  Needs needs;
  const PassSchedule schedule;
  const StageNames names;
  std::set<std::string> members; ///< the members of `buf`
  TableLoops loops;
  std::set<std::string> taken = {
      "buf",    "initialise", "gradients", "wideGradients",
      "update", "squares",    "open",      "forwardAndBackward"};
  std::vector<std::string> identifiers; ///< names of functions, by program
  std::optional<UpdateLines> updates;   ///< constructed from `identifiers`
  std::vector<UpdateCalls> reduces, applies;
  std::set<std::string> overlapped; ///< streams that join after the schedule
};

} // namespace

void writeStages(const Plan &plan, const SharedNames &shared,
                 StageTexts &texts) {
  std::vector<std::unique_ptr<StageSource>> stages;
  for (std::size_t s = 0; s < plan.stages.size(); ++s)
    stages.push_back(std::make_unique<StageSource>(plan, s, shared));
  using Functions = std::vector<std::vector<StageFunction>>; // by stage
  Functions programs, passes, directions, steps;
  FunctionSharing sharing(stages.size());
  const auto write = [&](Functions &all, auto functionsOf) {
    for (std::size_t s = 0; s < stages.size(); ++s)
      all.push_back(functionsOf(s));
    sharing.share(all);
  };
  write(programs, [&](std::size_t s) { return stages[s]->programs(); });
  write(passes, [&](std::size_t s) { return stages[s]->passes(programs[s]); });
  write(directions,
        [&](std::size_t s) { return stages[s]->directions(passes[s]); });
  write(steps, [&](std::size_t s) {
    return stages[s]->steps(programs[s], passes[s], directions[s]);
  });
  Text templates;
  for (const Functions *kind : {&programs, &passes, &directions, &steps})
    for (const std::vector<StageFunction> &stage : *kind)
      for (const StageFunction &one : stage)
        if (one.isTemplate)
          one.write(templates);
  texts.steps.resize(stages.size());
  if (!templates.items().empty()) {
    texts.step.comment("Several stages, or several parts of a stage, share "
                       "these functions. Each gives its buffers as the "
                       "argument of the template.");
    texts.step.add(templates);
    texts.step.line();
  }
  for (std::size_t s = 0; s < stages.size(); ++s) {
    stages[s]->write({&programs[s], &passes[s], &directions[s], &steps[s]},
                     sharing, texts);
    const std::string space = "stage" + std::to_string(s) + "::";
    for (const StageFunction &one : steps[s])
      texts.steps[s].push_back(one.isPlain() ? space + one.call
                                             : one.call + "<" + space +
                                                   one.buffers + ">");
  }
}

} // namespace mtplan::codegen
