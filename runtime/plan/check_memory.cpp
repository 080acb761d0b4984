//===- check_memory.cpp - Checks the values that instructions read --------===//
//
// The check executes each stage's step symbolically. Every piece of a buffer
// (one entry in one slot) records which value it holds.
//
//===----------------------------------------------------------------------===//

#include <algorithm>
#include <set>
#include <tuple>

#include "runtime/plan/kernel_settings.h"
#include "runtime/plan/placement.h"
#include "runtime/plan/plan_words.h"

namespace mtplan::runtime {

namespace {

// These numbers are indices into phasesOf(); -1 means the time before the step.
constexpr int kBeforeStep = -1, kSchedule = 0, kApply = 2;
constexpr int kEveryMicroBatch = -1;

struct Value {
  enum { nothing, something, lost } state = nothing;
  ElementType type = ElementType::f32;
  int microBatch = 0;
  int phase = kBeforeStep; ///< the phase that wrote the value
  unsigned readIn = 0;     ///< bit set of the phases that read the piece
  std::int64_t entry = 0;
  std::int64_t elements = 0;
  std::size_t takenBy = 0; ///< the piece that overwrote this piece, if lost
};

bool isAdamw(const Instruction &instruction) {
  const auto *call = std::get_if<KernelCall>(&instruction.what);
  return call && call->kernel == "adamw";
}

// Returns whether this run of an accumulation overwrites its sum.
// \param copy  layer, counted in the model
bool begins(const Instruction &instruction, int microBatch, int copy) {
  return accumulates(instruction) &&
         firstTermOf(std::get<KernelCall>(instruction.what).settings)
             .isOf(microBatch, copy);
}

// Returns whether the instruction updates this output in place. The kernel then
// also reads the output (runtime/backend/kernels.md). Accumulations do not
// count.
bool updates(const Instruction &instruction, std::size_t output) {
  const auto *call = std::get_if<KernelCall>(&instruction.what);
  // The parameter, which is the first output, is write-only. The master and the
  // moments are updated in place.
  if (isAdamw(instruction))
    return output > 0;
  return call && call->kernel == "square_sum";
}

bool isAllReduce(const Instruction &instruction) {
  const auto *call = std::get_if<Collective>(&instruction.what);
  return call && call->kind == CollectiveKind::allReduce;
}

class StageMemory {
public:
  StageMemory(const Plan &whole, std::size_t number, Faults &list)
      : plan(whole), stage(plan.stages[number]), s(number), faults(list),
        placement(stage, s, list) {}

  void check() {
    if (!placement.complete())
      return;
    values.resize(placement.pieces());
    start();
    std::vector<Phase> phases = phasesOf(stage);
    for (std::size_t k = 0; k < phases.size(); ++k) {
      now.phase = static_cast<int>(k);
      for (std::size_t e = 0; e < phases[k].entries->size(); ++e) {
        const ScheduleEntry &entry = (*phases[k].entries)[e];
        now.entry = e;
        now.program = indexed(entry.program);
        now.microBatch = entry.microBatch;
        for (int i = 0; i < entry.count; ++i) {
          now.copy = entry.first + i * entry.step;
          run();
        }
      }
    }
    finish();
  }

private:
  // Identifies the instruction that the symbolic step has reached.
  struct Moment {
    int phase = 0;
    std::size_t entry = 0, program = 0, instruction = 0;
    int copy = 0, microBatch = 0;
  };

  template <typename Act> void forEachState(Act act) {
    for (std::size_t i = 0; i < stage.parameters.size(); ++i) {
      const Parameter &parameter = stage.parameters[i];
      for (int copy = 0; copy < parameter.copies; ++copy) {
        auto each = [&](const Tensor &tensor, const char *member) {
          std::int64_t entry =
              tensor.entry + std::int64_t{copy} * tensor.entryStep;
          if (entry >= 0) // checkParameters reports negative entries
            act(i, copy, tensor, entry, member);
        };
        each(parameter.value, "value");
        if (parameter.master)
          each(*parameter.master, "master");
        each(parameter.firstMoment, "first_moment");
        each(parameter.secondMoment, "second_moment");
        each(parameter.gradient, "gradient");
      }
    }
  }

  void start() {
    stepWide.resize(stage.buffers.size());
    for (std::size_t b = 0; b < stage.buffers.size(); ++b)
      stepWide[b] = placement.keeps(static_cast<int>(b)) ||
                    stage.arenas[indexed(stage.buffers[b].arena)].memoryClass ==
                        MemoryClass::gradients;
    // All micro-batches share an accumulated sum.
    for (const Program &program : stage.programs)
      for (const Instruction &one : program.instructions)
        for (std::size_t t = 0; t < one.outputs.size(); ++t)
          if (accumulatesInto(one, t))
            stepWide[indexed(one.outputs[t].buffer)] = true;
    forEachState([&](std::size_t, int, const Tensor &tensor, std::int64_t entry,
                     std::string_view member) {
      if (member != "gradient")
        set(placement.pieceOf(tensor.buffer, entry, 0), tensor, entry,
            kBeforeStep);
    });
  }

  // Checks that the step has read all gradients and updated all parameters.
  void finish() {
    forEachState([&](std::size_t i, int copy, const Tensor &tensor,
                     std::int64_t entry, std::string_view member) {
      const Value &value = values[placement.pieceOf(tensor.buffer, entry, 0)];
      const bool isGradient = member == "gradient";
      auto isReadIn = [&](int phase) {
        return (value.readIn >> static_cast<unsigned>(phase)) % 2 == 1;
      };
      std::string what;
      if (isGradient ? value.phase == kBeforeStep : value.phase != kApply)
        what = isGradient ? "is never written" : "is not written by /apply";
      else if (value.type != tensor.type ||
               value.elements != elementsOf(tensor))
        what = "is " + std::to_string(elementsOf(tensor)) + " elements of " +
               std::string(wordOf(tensor.type)) + ", but is written as " +
               std::to_string(value.elements) + " of " +
               std::string(wordOf(value.type));
      else if (isGradient && !isReadIn(kApply))
        what = "is not read by /apply";
      else if (member == "value" && !isReadIn(kSchedule))
        what = "is not read by /schedule";
      if (!what.empty() &&
          reported.insert({stage.programs.size(), i, std::string(member)})
              .second)
        faults.add(at("stages", s, "parameters", i, member),
                   what + ", for copy " + std::to_string(copy) + " of " +
                       std::to_string(stage.parameters[i].copies));
    });
  }

  // Reports each operand at most once, because the same fault recurs in many
  // runs.
  void fail(const std::string &member, const std::string &what) {
    if (!reported.insert({now.program, now.instruction, member}).second)
      return;
    faults.add(at("stages", s, "programs", now.program, "instructions",
                  now.instruction) +
                   member,
               what + ", in " +
                   at("stages", s, phasesOf(stage)[indexed(now.phase)].name,
                      now.entry) +
                   " (micro-batch " + std::to_string(now.microBatch) +
                   ", copy " + std::to_string(now.copy) + ")");
  }

  std::string nameOf(std::size_t piece) const {
    return bufferName(stage, placement.bufferOf(piece));
  }

  std::int64_t entryOf(const Tensor &tensor) const {
    return tensor.entry + std::int64_t{now.copy} * tensor.entryStep;
  }
  std::size_t pieceOf(const Tensor &tensor) const {
    return placement.pieceOf(tensor.buffer, entryOf(tensor), now.microBatch);
  }
  int microBatchOf(const Tensor &tensor) const {
    return stepWide[indexed(tensor.buffer)] ? kEveryMicroBatch : now.microBatch;
  }

  void run() {
    const std::vector<Instruction> &list =
        stage.programs[now.program].instructions;
    for (now.instruction = 0; now.instruction < list.size();
         ++now.instruction) {
      const Instruction &what = list[now.instruction];
      if (!runsFor(now.microBatch, what, plan.microBatches))
        continue;
      if (!reaches(what.inputs, "/inputs/") ||
          !reaches(what.outputs, "/outputs/"))
        continue;
      for (std::size_t t = 0; t < what.inputs.size(); ++t)
        read(what.inputs[t], true, t);
      for (std::size_t t = 0; t < what.outputs.size(); ++t)
        if (accumulatesInto(what, t))
          addTo(what, t);
        else if (updates(what, t))
          read(what.outputs[t], false, t);
      for (const Tensor &tensor : what.outputs)
        write(tensor);
      for (std::size_t t = 0; t < what.outputs.size(); ++t)
        checkApart(what, t);
    }
  }

  bool reaches(const std::vector<Tensor> &tensors, const char *list) {
    for (std::size_t t = 0; t < tensors.size(); ++t)
      if (entryOf(tensors[t]) < 0) {
        fail(list + std::to_string(t) + "/entry_step",
             "reaches entry " + std::to_string(entryOf(tensors[t])) +
                 "; entries start at 0");
        return false;
      }
    return true;
  }

  void read(const Tensor &tensor, bool isInput, std::size_t t) {
    const std::size_t piece = pieceOf(tensor);
    Value &value = values[piece];
    value.readIn |= 1U << static_cast<unsigned>(now.phase);
    const bool right =
        value.state == Value::something && value.entry == entryOf(tensor) &&
        value.microBatch == microBatchOf(tensor) && value.type == tensor.type &&
        value.elements == elementsOf(tensor);
    if (right)
      return;
    const std::string member = at(isInput ? "inputs" : "outputs", t);
    const std::string name = "reads " + nameOf(piece);
    if (value.state == Value::nothing)
      fail(member, name + ", which nothing has written");
    else if (value.state == Value::lost)
      fail(member, name + ", whose memory " + nameOf(value.takenBy) +
                       " has overwritten");
    else if (value.microBatch != microBatchOf(tensor))
      fail(member, name + ", which has the value of micro-batch " +
                       std::to_string(value.microBatch) + " in its " +
                       std::to_string(slotsOf(tensor)) + " slots");
    else if (value.entry != entryOf(tensor))
      fail(member, name + " as entry " + std::to_string(entryOf(tensor)) +
                       ", which has entry " + std::to_string(value.entry) +
                       " there");
    else
      fail(member, name + " as " + std::to_string(elementsOf(tensor)) +
                       " elements of " + std::string(wordOf(tensor.type)) +
                       ", written as " + std::to_string(value.elements) +
                       " of " + std::string(wordOf(value.type)));
  }

  // Checks an accumulation: before the run that overwrites the sum, the sum
  // holds no value; before every other run, the sum holds the terms of earlier
  // runs.
  void addTo(const Instruction &what, std::size_t t) {
    const Tensor &sum = what.outputs[t];
    const std::size_t piece = pieceOf(sum);
    if (!begins(what, now.microBatch,
                stage.programs[now.program].firstCopy + now.copy))
      read(sum, false, t);
    else if (values[piece].state == Value::something)
      fail(at("outputs", t),
           "begins " + nameOf(piece) + " anew, to which was added before");
  }

  int slotsOf(const Tensor &tensor) const {
    return stage.buffers[indexed(tensor.buffer)].slots;
  }

  void set(std::size_t piece, const Tensor &tensor, std::int64_t entry,
           int phase) {
    Value &value = values[piece];
    value.state = Value::something;
    value.type = tensor.type;
    value.microBatch = microBatchOf(tensor);
    value.phase = phase;
    value.entry = entry;
    value.elements = elementsOf(tensor);
  }

  void write(const Tensor &tensor) {
    std::size_t piece = pieceOf(tensor);
    set(piece, tensor, entryOf(tensor), now.phase);
    for (std::size_t other : placement.overlaps(piece))
      if (values[other].state == Value::something) {
        values[other].state = Value::lost;
        values[other].takenBy = piece;
      }
  }

  // Checks that an output overlaps no other operand. There are two exceptions:
  // an all-reduce may work in place, and the value of a parameter may also be
  // the master.
  void checkApart(const Instruction &what, std::size_t t) {
    const std::size_t piece = pieceOf(what.outputs[t]);
    const std::string_view rule = "; it needs bytes of its own";
    auto meets = [&](const Tensor &other) {
      std::size_t there = pieceOf(other);
      return there == piece || (values[there].state == Value::lost &&
                                values[there].takenBy == piece);
    };
    for (std::size_t u = 0; u < what.inputs.size(); ++u)
      if (meets(what.inputs[u]) &&
          !(isAllReduce(what) && pieceOf(what.inputs[u]) == piece))
        fail("/outputs/" + std::to_string(t),
             "overlaps input " + std::to_string(u) + std::string(rule));
    for (std::size_t u = 0; u < t; ++u) {
      bool isMaster = isAdamw(what) && u == 0 && t == 1 &&
                      pieceOf(what.outputs[u]) == piece;
      if (meets(what.outputs[u]) && !isMaster)
        fail("/outputs/" + std::to_string(t),
             "overlaps output " + std::to_string(u) + std::string(rule));
    }
  }

  const Plan &plan;
  const Stage &stage;
  std::size_t s;
  Faults &faults;
  Placement placement;
  std::vector<Value> values;  ///< by piece
  std::vector<bool> stepWide; ///< by buffer: all micro-batches share one value
  Moment now;
  std::set<std::tuple<std::size_t, std::size_t, std::string>> reported;
};

} // namespace

void checkMemory(const Plan &plan, Faults &faults) {
  for (std::size_t s = 0; s < plan.stages.size(); ++s)
    StageMemory(plan, s, faults).check();
}

} // namespace mtplan::runtime
