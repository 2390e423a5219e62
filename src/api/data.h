// What is behind the handles of both interfaces. It never changes after it is made; what takes time
// to make and is not always wanted is made when it is first asked for, once.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "api/ask.h"
#include "tidepool/tidepool.h"

namespace tidepool::api {

struct ProgramData {
  Program program;
};

struct MachineData {
  Machine machine;
};

struct Cells {
  std::vector<std::int64_t> cells;  ///< row by row
  std::size_t columns = 0;
  [[nodiscard]] std::size_t rows() const { return cells.size() / columns; }
};

class PlanData {
 public:
  explicit PlanData(Answer answer) : answer_(std::move(answer)), index_(answer_.file.program) {}

  [[nodiscard]] const Answer& answer() const { return answer_; }
  [[nodiscard]] const PlanFile& file() const { return answer_.file; }
  [[nodiscard]] const std::string& text() const;
  /// Of TP_INSTRUCTIONS to TP_DECISIONS.
  [[nodiscard]] const Cells& table(tp_table which) const;
  /// Most living bytes and workspace, addresses not counted.
  [[nodiscard]] Bytes load() const;
  /// Gaps in which something is decided: rows of TP_DECISIONS.
  [[nodiscard]] const std::vector<GapId>& decisions() const;
  /// Why, of one of them.
  [[nodiscard]] const std::string& reason(std::size_t decision) const;
  [[nodiscard]] const AccessIndex& index() const { return index_; }

 private:
  template <class T>
  struct Lazy {
    std::once_flag once;
    T value{};
    template <class Make>
    const T& get(Make make) {
      std::call_once(once, [&] { value = make(); });
      return value;
    }
  };
  static constexpr std::size_t kTables = TP_DECISIONS + 1;

  Answer answer_;
  AccessIndex index_;
  mutable Lazy<std::string> text_;
  mutable Lazy<Bytes> load_;
  mutable Lazy<std::vector<GapId>> decisions_;
  mutable std::array<Lazy<Cells>, kTables> tables_;
};

/// As of tp_plan_info, and its text living as long as `plan`.
tp_plan_info info_of(const PlanData& plan);

/// The op that sets the smallest budget of an error of planning; -1 where no single op does.
std::int32_t op_that_sets(const Error& error, const Program& program, const Machine& machine);

/// As of tp_program_info.
Result<tp_program_info> info_of(const Program& program, const Machine& machine);

}  // namespace tidepool::api
